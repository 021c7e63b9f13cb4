import type { HttpRequest } from "../../../io/http/http.ts";
import { passedHeaders, responseHeaders } from "../../../server/edge/forward-headers.ts";

/**
 * Headers between a client and a program in a sandbox, which is hostile to both: it gets nothing by which the client
 * shows who it is, nor learns where it is; and what it says means nothing for this server's origin.
 */

/** What the client shows to this server, or its browser tells of it. */
const KEPT_BACK = new Set(["authorization", "cookie", "origin", "referer", "forwarded"]);

/** What a browser would take for this origin: its cookies, its credentials, its workers, its other addresses. */
const NOT_TAKEN = new Set([
  "alt-svc",
  "clear-site-data",
  "content-security-policy",
  "content-security-policy-report-only",
  "nel",
  "report-to",
  "reporting-endpoints",
  "service-worker-allowed",
  "set-cookie",
  "set-cookie2",
  "www-authenticate",
]);

/** A page from a sandbox is of no origin, runs no script and sends no form. */
const INERT = { "Content-Security-Policy": "sandbox", "Cache-Control": "no-store" };

export function portRequestHeaders(
  request: HttpRequest,
  { port, prefix }: { port: number; prefix: string },
): [string, string][] {
  const passed = passedHeaders(request).filter(([name]) => !KEPT_BACK.has(name) && !name.startsWith("x-forwarded-"));
  return [
    ...passed.map(([name, value]): [string, string] => [name, value]),
    ["host", `localhost:${port}`],
    ["x-forwarded-prefix", prefix],
    ["x-forwarded-proto", request.scheme],
  ];
}

/** `pairs`: name, value, name, value… as they came. */
export function portResponseHeaders(
  pairs: readonly string[],
  { port, prefix }: { port: number; prefix: string },
): Record<string, string> {
  const headers: Record<string, string> = { ...INERT };
  for (const [name, value] of Object.entries(responseHeaders(pairs))) {
    const folded = name.toLowerCase();
    if (NOT_TAKEN.has(folded) || folded === "cache-control") continue;
    headers[name] = folded === "location" ? withPrefix(value, port, prefix) : value;
  }
  return headers;
}

/** A place of the program's own is one below the address of its port. */
function withPrefix(location: string, port: number, prefix: string): string {
  const own = new RegExp(`^http://(?:localhost|127\\.0\\.0\\.1):${port}(?=/|$)`).exec(location)?.[0] ?? "";
  const path = location.slice(own.length);
  if (own !== "") return `${prefix}${path === "" ? "/" : path}`;
  return path.startsWith("/") && !path.startsWith("//") ? `${prefix}${path}` : location;
}
