import type { z } from "zod";
import type { Caller, WorkerIdentity } from "../auth/caller.ts";
import type { CallerRole } from "../config/kinds.ts";
import type { EngineError, ErrorCode } from "../core/errors.ts";
import type { HttpRequest, HttpResponse } from "../io/http/http.ts";
import type { WebSocketAnswer } from "../io/http/websocket.ts";

/**
 * A route as a process has it: the router matches by it, inputs are checked by it, and OpenAPI and the reference page are
 * printed from it. Features declare theirs by `defineRoute`.
 */
export type Route = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Segments in braces are parameters: `/v1/admin/databases/{database}`. */
  path: string;
  /** The least role a caller needs; `none` for routes that are always open, `worker` for those of workers alone. */
  role: Role;
  /** Not for tokens that are limited to databases. */
  unscoped?: true;
  /** Takes the tokens of the agent's runs, too, and judges them itself: such a request comes as `RUN_CALLER`. */
  runTokens?: true;
  /** Answered whatever `Origin` and `Host` say, for those who ask about the process by addresses of their own. */
  anyOrigin?: true;
  /** Asked so often, about the process itself, that the log has its requests at `debug` only. */
  quiet?: true;
  /**
   * Where a password is shown: of pages only this server's own and those of origins that are listed by name may ask, also
   * where tokens are asked for and where `*` lets in all others.
   */
  ownPages?: true;
  /** Refused but to pages of this server itself, whatever else the request has: it makes or ends a browser's session. */
  ownPageOnly?: true;
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
  /** How errors are told, where a protocol has a form of its own for them. */
  failures?: RouteFailures;
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

export type RouteFailures = {
  /** Media types of the answers; `application/json` is of the schema. */
  types: readonly string[];
  schema: z.ZodType;
  /** The status of an error of that code. */
  statusOf: (code: ErrorCode) => number;
  respond: (request: HttpRequest, error: EngineError) => HttpResponse;
};

export type RouteResponse = {
  status: number;
  description: string;
  /** Media type; absent when there is no body. */
  type?: string;
  schema?: z.ZodType;
  headers?: Readonly<Record<string, string>>;
};

/** What a handler gets: inputs checked and typed by the route's schemas. */
export type Call<P = unknown, Q = unknown, H = unknown, J = unknown> = {
  /** Who asks; has the route's role. */
  caller: Caller;
  /** Of a route for workers: the one that asks. See `workerOf`. */
  worker: WorkerIdentity | undefined;
  /** The cookie of a browser that signed in, where a page of this server made the request: see `web-session.ts`. */
  webSession: string | undefined;
  /** For answers that last: who asks, if asked again now. Rejects when the request would be refused. */
  authenticateAgain: () => Promise<Caller>;
  request: HttpRequest;
  requestId: string;
  /** Where the request was sent from, past the proxies that are trusted; empty where somebody else answers it. */
  clientAddress: string;
  params: P;
  query: Q;
  headers: H;
  json: J;
  /** The media type of the body, without parameters, lower case; one of the route's. */
  bodyType: string;
};

type Output<T extends z.ZodType | undefined> = T extends z.ZodType ? z.output<T> : unknown;
type Fields = z.ZodObject | undefined;

/** What is said about a route, whoever answers it. */
export type RouteDescription<
  P extends Fields = Fields,
  Q extends Fields = Fields,
  H extends Fields = Fields,
  J extends z.ZodType | undefined = z.ZodType | undefined,
> = Omit<Route, "params" | "query" | "headers" | "json" | "handle"> & { params?: P; query?: Q; headers?: H; json?: J };

/**
 * A route as its feature declares it, in one value: its description, and how a process that has `Deps` answers it. What
 * is served, what an edge forwards, OpenAPI, the reference page and the tests of access all derive from it.
 */
export type RouteDefinition<Deps> = RouteDescription & { handler: (deps: Deps) => Route["handle"] };

type Typed<
  P extends Fields,
  Q extends Fields,
  H extends Fields,
  J extends z.ZodType | undefined,
  Deps,
> = RouteDescription<P, Q, H, J> & {
  handler: (deps: Deps) => (call: Call<Output<P>, Output<Q>, Output<H>, Output<J>>) => Promise<HttpResponse>;
};

/** Types the handler by the description's own schemas. */
export function defineRoute<
  P extends Fields = undefined,
  Q extends Fields = undefined,
  H extends Fields = undefined,
  J extends z.ZodType | undefined = undefined,
  Deps = unknown,
>(definition: Typed<P, Q, H, J, Deps>): RouteDefinition<Deps> {
  return definition as unknown as RouteDefinition<Deps>;
}

/** The route as this process answers it. */
export function bindRoute<Deps>({ handler, ...description }: RouteDefinition<Deps>, deps: Deps): Route {
  return { ...described(description), handle: handler(deps) };
}

/** A route that needs nothing of the process. */
export function plainRoute({ handle, ...description }: RouteDescription & Pick<Route, "handle">): Route {
  return { ...described(description), handle };
}

/** Has somebody else answer a request of a route. */
export type ForwardCall = (call: {
  request: HttpRequest;
  requestId: string;
  /** Whether the route's answer is a WebSocket, or may be one. */
  isWebSocket: boolean;
}) => Promise<HttpResponse>;

/**
 * The route as it is documented, answered elsewhere. Inputs are not looked at: peers may be of a newer version, and know
 * more of them.
 */
export function forwardRoute<Deps>(definition: RouteDefinition<Deps>, forward: ForwardCall): Route {
  const { handler: _, ...description } = definition;
  const isWebSocket = description.webSocket !== undefined;
  return {
    ...described(description),
    passThrough: true,
    handle: ({ request, requestId }) => forward({ request, requestId, isWebSocket }),
  };
}

/** Who answers a group of routes: this process, a peer, or (undefined) nobody, and then they are not there. */
export type Answerer<Deps> = { here: Deps } | { forward: ForwardCall } | undefined;

/** The routes of a group as a process has them, in the group's order. */
export function routesOf<Deps>(group: readonly RouteDefinition<Deps>[], answerer: Answerer<Deps>): Route[] {
  if (answerer === undefined) return [];
  if ("here" in answerer) return group.map((definition) => bindRoute(definition, answerer.here));
  return group.map((definition) => forwardRoute(definition, answerer.forward));
}

/** Without the keys of schemas that it does not have. */
function described({ params, query, headers, json, ...rest }: RouteDescription): Omit<Route, "handle"> {
  return {
    ...rest,
    ...(params !== undefined && { params }),
    ...(query !== undefined && { query }),
    ...(headers !== undefined && { headers }),
    ...(json !== undefined && { json }),
  };
}

/** The worker that asks; the route's role must be `worker`. */
export function workerOf({ worker }: Pick<Call, "worker">): WorkerIdentity {
  if (worker === undefined) throw new Error("the route is not one for workers");
  return worker;
}

/** Makes the connection a WebSocket; of a route that says so. */
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
