import type { z } from "zod";
import type { Caller, WorkerIdentity } from "../auth/caller.ts";
import type { CallerRole } from "../config/kinds.ts";
import type { ErrorCode } from "../core/errors.ts";
import type { HttpRequest, HttpResponse } from "../io/http/http.ts";
import type { WebSocketAnswer } from "../io/http/websocket.ts";

/**
 * One row per route. Everything that is said about a route is said here once: the router matches by it, the inputs are
 * checked by it, and OpenAPI and the reference page are printed from it.
 */
export type Route = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Segments in braces are parameters: `/v1/admin/databases/{database}`. */
  path: string;
  /** The least role a caller needs; `none` for routes that are always open, `worker` for those of workers alone. */
  role: Role;
  /** Not for tokens that are limited to databases. */
  unscoped?: true;
  /** Answered whatever `Origin` and `Host` say, for those who ask about the process by addresses of their own. */
  anyOrigin?: true;
  /** Asked so often, about the process itself, that the log has its requests at `debug` only. */
  quiet?: true;
  /**
   * Where a password is shown: of pages only this server's own and those of origins that are listed by name may ask, also
   * where tokens are asked for and where `*` lets in all others.
   */
  ownPages?: true;
  tag: string;
  summary: string;
  description?: string;
  params?: z.ZodObject;
  query?: z.ZodObject;
  /** Keys are lower-case header names. */
  headers?: z.ZodObject;
  /** A body that the handler reads itself. */
  body?: RouteBody;
  /** A JSON body, which is read and checked before the handler runs; `optional()` lets it be empty. */
  json?: z.ZodType;
  /** What is said of such a body that is no JSON object, and of one that is not accepted; `bad_request_body` otherwise. */
  jsonErrors?: { unreadable: ErrorCode; invalid: ErrorCode };
  responses: readonly RouteResponse[];
  /** Errors beyond those that every route can give. */
  errors: readonly ErrorCode[];
  /** Most bytes of such a body; `LIMITS.jsonBodyBytes` unless given. */
  jsonLimitBytes?: number;
  /**
   * Answered with a WebSocket (`webSocketResponse`); requests that ask for none are refused. `optional`: a request that
   * asks for one may be answered so, the others are answered like those of any route.
   */
  webSocket?: true | "optional";
  /** Its answers are compressed for clients that take that: see `compress.ts`. */
  compress?: true;
  /** The handler passes the request on as it came: whoever answers it checks its inputs. */
  passThrough?: true;
  handle: (call: Call) => Promise<HttpResponse>;
};

export type Role = "none" | "worker" | CallerRole;

export type RouteBody = {
  /** Media types that are accepted; the first is assumed when the request names none. */
  types: readonly string[];
  description: string;
  limitBytes: number;
  example?: string;
  /** What is said of one that comes as `application/json`; the handler reads that too. */
  jsonSchema?: z.ZodType;
};

export type RouteResponse = {
  status: number;
  description: string;
  /** Media type; absent when there is no body. */
  type?: string;
  schema?: z.ZodType;
  headers?: Readonly<Record<string, string>>;
};

/** What a handler gets: inputs checked and typed by the row's schemas. */
export type Call<P = unknown, Q = unknown, H = unknown, J = unknown> = {
  /** Who asks; has the route's role. */
  caller: Caller;
  /** Of a route for workers: the one that asks. See `workerOf`. */
  worker: WorkerIdentity | undefined;
  request: HttpRequest;
  requestId: string;
  /** Where the request was sent from, past the proxies that are trusted; empty where somebody else answers it. */
  clientAddress: string;
  params: P;
  query: Q;
  headers: H;
  json: J;
  /** The media type of the body, without parameters, lower case; one of the row's. */
  bodyType: string;
};

type Output<T extends z.ZodType | undefined> = T extends z.ZodType ? z.output<T> : unknown;
type Fields = z.ZodObject | undefined;

/** A row without its handler: what is said about a route, whoever answers it. */
export type RouteRow<
  P extends Fields = Fields,
  Q extends Fields = Fields,
  H extends Fields = Fields,
  J extends z.ZodType | undefined = z.ZodType | undefined,
> = Omit<Route, "params" | "query" | "headers" | "json" | "handle"> & { params?: P; query?: Q; headers?: H; json?: J };

/** Keeps the row's own schemas in its type, for `defineRoute`. */
export function describeRoute<
  P extends Fields = undefined,
  Q extends Fields = undefined,
  H extends Fields = undefined,
  J extends z.ZodType | undefined = undefined,
>(row: RouteRow<P, Q, H, J>): RouteRow<P, Q, H, J> {
  return row;
}

/** Types the handler by the row's own schemas. */
export function defineRoute<
  P extends Fields = undefined,
  Q extends Fields = undefined,
  H extends Fields = undefined,
  J extends z.ZodType | undefined = undefined,
>(
  row: RouteRow<P, Q, H, J> & {
    handle: (call: Call<Output<P>, Output<Q>, Output<H>, Output<J>>) => Promise<HttpResponse>;
  },
): Route {
  return row as unknown as Route;
}

/** The worker that asks; the row's role must be `worker`. */
export function workerOf({ worker }: Pick<Call, "worker">): WorkerIdentity {
  if (worker === undefined) throw new Error("the route is not one for workers");
  return worker;
}

/** Makes the connection a WebSocket; of a route whose row says so. */
export function webSocketResponse(answer: WebSocketAnswer): HttpResponse {
  return { status: 101, headers: {}, webSocket: answer };
}

export function jsonResponse(status: number, value: unknown, headers: Record<string, string> = {}): HttpResponse {
  return {
    status,
    headers: { "Content-Type": "application/json; charset=utf-8", ...headers },
    body: JSON.stringify(value),
  };
}
