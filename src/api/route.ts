import type { z } from "zod";
import type { ErrorCode } from "../core/errors.ts";
import type { HttpRequest, HttpResponse } from "../io/http/http.ts";

/**
 * One row per route. Everything that is said about a route is said here once: the router matches by it, the inputs are
 * checked by it, and OpenAPI and the reference page are printed from it.
 */
export type Route = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Segments in braces are parameters: `/v1/admin/databases/{database}`. */
  path: string;
  /** The least role a caller needs; `none` for routes that are always open. */
  role: Role;
  tag: string;
  summary: string;
  description?: string;
  params?: z.ZodObject;
  query?: z.ZodObject;
  /** Keys are lower-case header names. */
  headers?: z.ZodObject;
  body?: RouteBody;
  responses: readonly RouteResponse[];
  /** Errors beyond those that every route can give. */
  errors: readonly ErrorCode[];
  /** The handler passes the request on as it came: whoever answers it checks its inputs. */
  passThrough?: true;
  handle: (call: Call) => Promise<HttpResponse>;
};

/** `read` ⊆ `write` ⊆ `admin`. */
export type Role = "none" | "read" | "write" | "admin";

export type RouteBody = {
  /** Media types that are accepted; the first is assumed when the request names none. */
  types: readonly string[];
  description: string;
  limitBytes: number;
  example?: string;
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
export type Call<P = unknown, Q = unknown, H = unknown> = {
  request: HttpRequest;
  requestId: string;
  params: P;
  query: Q;
  headers: H;
  /** The media type of the body, without parameters, lower case; one of the row's. */
  bodyType: string;
};

type Output<T extends z.ZodObject | undefined> = T extends z.ZodObject ? z.output<T> : unknown;

/** A row without its handler: what is said about a route, whoever answers it. */
export type RouteRow<
  P extends z.ZodObject | undefined = z.ZodObject | undefined,
  Q extends z.ZodObject | undefined = z.ZodObject | undefined,
  H extends z.ZodObject | undefined = z.ZodObject | undefined,
> = Omit<Route, "params" | "query" | "headers" | "handle"> & { params?: P; query?: Q; headers?: H };

/** Keeps the row's own schemas in its type, for `defineRoute`. */
export function describeRoute<
  P extends z.ZodObject | undefined = undefined,
  Q extends z.ZodObject | undefined = undefined,
  H extends z.ZodObject | undefined = undefined,
>(row: RouteRow<P, Q, H>): RouteRow<P, Q, H> {
  return row;
}

/** Types the handler by the row's own schemas. */
export function defineRoute<
  P extends z.ZodObject | undefined = undefined,
  Q extends z.ZodObject | undefined = undefined,
  H extends z.ZodObject | undefined = undefined,
>(row: RouteRow<P, Q, H> & { handle: (call: Call<Output<P>, Output<Q>, Output<H>>) => Promise<HttpResponse> }): Route {
  return row as unknown as Route;
}

export function jsonResponse(status: number, value: unknown, headers: Record<string, string> = {}): HttpResponse {
  return {
    status,
    headers: { "Content-Type": "application/json; charset=utf-8", ...headers },
    body: JSON.stringify(value),
  };
}
