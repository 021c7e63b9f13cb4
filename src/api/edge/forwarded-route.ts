import type { HttpRequest, HttpResponse } from "../../io/http/http.ts";
import type { Route, RouteRow } from "../route.ts";

/** Has somebody else answer a request of that row. */
export type ForwardCall = (call: {
  request: HttpRequest;
  requestId: string;
  /** Whether the row's answer is a WebSocket, or may be one. */
  isWebSocket: boolean;
}) => Promise<HttpResponse>;

/**
 * The row as it is documented, answered elsewhere. Inputs are not looked at: peers may be of a newer version, and know
 * more of them.
 */
export function forwardedRoute(row: RouteRow, forward: ForwardCall): Route {
  const { params, query, headers, json, ...rest } = row;
  return {
    ...rest,
    ...(params === undefined ? {} : { params }),
    ...(query === undefined ? {} : { query }),
    ...(headers === undefined ? {} : { headers }),
    ...(json === undefined ? {} : { json }),
    passThrough: true,
    handle: ({ request, requestId }) => forward({ request, requestId, isWebSocket: row.webSocket !== undefined }),
  };
}
