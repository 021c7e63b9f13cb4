import type { IdSource } from "../../core/ids.ts";
import type { HttpRequest } from "../../io/http/http.ts";
import { isSecurityHeader } from "../security-headers.ts";

/**
 * Headers between a client and a peer. They pass as they are, but for those that are about one connection (RFC 9110
 * §7.6.1), which each side has its own of, and what an intermediary adds: `Via`, `X-Forwarded-For`, `-Host`, `-Proto`
 * and `X-Request-ID`.
 */

/** About one connection, or made by whoever writes the message. */
const HOP_BY_HOP = new Set([
  "connection",
  "expect",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

const NOT_ASCII = /[^\x20-\x7e\t]/;

/** Those that are made anew for the peer. */
const MADE_HERE = new Set(["via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-request-id"]);

/** The headers of a request that are not about its connection, and not made anew for whoever it is passed on to. */
export function passedHeaders(request: HttpRequest): (readonly [name: string, value: string])[] {
  const named = namedByConnection(request.header("connection"));
  return request.headerNames().flatMap((name) => {
    const value = request.header(name);
    const isLeftOut = HOP_BY_HOP.has(name) || MADE_HERE.has(name) || named.has(name);
    return value === undefined || isLeftOut ? [] : [[name, latin1Of(value)] as const];
  });
}

/** The headers of the request for a peer: name, value, name, value…, values as Latin-1. */
export function requestHeaders(request: HttpRequest, requestId: string, edgeId: string): string[] {
  const headers: string[] = passedHeaders(request).flat();
  const add = (name: string, value: string) => headers.push(name, latin1Of(value));
  const before = (name: string) => {
    const value = request.header(name);
    return value === undefined ? "" : `${value}, `;
  };
  add("via", `${before("via")}1.1 ${edgeId}`);
  add("x-forwarded-for", before("x-forwarded-for") + request.remoteAddress);
  // The first intermediary knows what the client asked for.
  add("x-forwarded-host", request.header("x-forwarded-host") ?? request.header("host") ?? "");
  add("x-forwarded-proto", request.header("x-forwarded-proto") ?? request.scheme);
  add("x-request-id", requestId);
  return headers;
}

/** UTF-8 as the Latin-1 of its bytes, which is what goes on the wire. */
function latin1Of(value: string): string {
  return NOT_ASCII.test(value) ? Buffer.from(value, "utf8").toString("latin1") : value;
}

/** What an edge calls itself in `Via`; one word, another for each process. */
export function newEdgeId(newId: IdSource): string {
  return `engine-${newId()}`;
}

/** Whether an edge, and nobody else, handed the request on to here. No page can make a browser say so. */
export function cameFromEdge(request: HttpRequest): boolean {
  return /(?:^|,)\s*1\.1 engine-[0-9a-f-]{36}\s*$/.test(request.header("via") ?? "");
}

/** Whether the request has been here before. */
export function cameBack(request: HttpRequest, edgeId: string): boolean {
  const via = request.header("via") ?? "";
  return via.split(",").some((hop) => hop.trim().split(/\s+/)[1] === edgeId);
}

/** The cookies of a peer's answer, each by itself. */
export function responseCookies(pairs: readonly string[]): string[] {
  return pairs.flatMap((item, i) => (i % 2 === 1 && pairs[i - 1]?.toLowerCase() === "set-cookie" ? [item] : []));
}

/** The headers of a peer's answer for the client but its cookies; repeated ones are joined. */
export function responseHeaders(pairs: readonly string[]): Record<string, string> {
  const spelled = new Map<string, string>();
  const headers: Record<string, string> = {};
  const named = namedByConnection(valueOf(pairs, "connection"));
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    const [name = "", value = ""] = [pairs[i], pairs[i + 1]];
    const folded = name.toLowerCase();
    if (HOP_BY_HOP.has(folded) || named.has(folded) || isEdges(folded) || folded === "set-cookie") continue;
    const spelling = spelled.get(folded) ?? name;
    spelled.set(folded, spelling);
    headers[spelling] = headers[spelling] === undefined ? value : `${headers[spelling]}, ${value}`;
  }
  return headers;
}

/** What this server says itself, whatever the peer says: what browsers may do, and whose request it was. */
function isEdges(name: string): boolean {
  return name === "x-request-id" || name === "date" || name.startsWith("access-control-") || isSecurityHeader(name);
}

function valueOf(pairs: readonly string[], name: string): string | undefined {
  const at = pairs.findIndex((item, i) => i % 2 === 0 && item.toLowerCase() === name);
  return at < 0 ? undefined : pairs[at + 1];
}

/** The headers that a `Connection` header says are about the connection too. */
function namedByConnection(value: string | undefined): ReadonlySet<string> {
  return new Set((value ?? "").split(",").map((name) => name.trim().toLowerCase()));
}
