import type { HttpRequest } from "../io/http/http.ts";
import { cameFromEdge } from "./edge/forward-headers.ts";

/**
 * The cookie of a browser that signed in (`auth/web/`), and when it counts.
 *
 * A browser sends a cookie with whatever page asks for it, so the cookie alone says who sits there and not that they want
 * it. `SameSite=Strict` keeps it from pages of other sites, but a site is a host of any port: a page of another program on
 * `localhost` is of the same one, and so are all hosts of a domain. So a request must show besides that a page of this
 * very origin made it, in a way that no other page can imitate:
 *
 * 1. `Sec-Fetch-Site: same-origin`, which browsers write themselves. Any other value of it refuses: `none` is an address
 *    that somebody typed, or was brought to type, and nothing that a page of ours needs.
 * 2. Over plain HTTP browsers send no such header but to `localhost`. Then an `Origin` counts, whose host and port are
 *    those of `Host`, or which the operator has named as this server's (`ENGINE_OAUTH_REDIRECT_BASE`). Every other one
 *    refuses, whatever comes along.
 * 3. A page's own GET has no `Origin` either. `X-Engine-Web: 1` is the page's word for it: a page of another origin may
 *    send a header of its own only where CORS lets it, and CORS never lets it send this one (`cors.ts`).
 *
 * A request without that goes on as one without a cookie, and one with `Authorization` goes by that alone. The same
 * holds for all methods and for WebSockets, whose `Origin` browsers always send. `auth/web/` says what a cookie is worth.
 *
 * An edge passes all of it on, and whoever answers judges: by `X-Forwarded-Host`, which names what the browser asked for,
 * where an edge says so in `Via`. No page can write `Via`.
 */
export const WEB_HEADER = "x-engine-web";

/** Browsers keep no cookie for longer. When a session ends is the server's to say. */
const COOKIE_SECS = 400 * 86_400;

const HOST = /^(?:\[[0-9a-f:.]+\]|[^\s:@/?#[\]\\]+)(?::\d{1,5})?$/i;

/** Whether a page of this server made the request. */
export function isOfOwnPage(request: HttpRequest, ownOrigins: ReadonlySet<string>): boolean {
  const site = request.header("sec-fetch-site");
  if (site !== undefined) return site === "same-origin";
  const origin = request.header("origin");
  if (origin !== undefined) return ownOrigins.has(origin) || isOfHost(origin, request);
  return request.header(WEB_HEADER) === "1";
}

/**
 * The cookie of the session, whoever made the request. More than one is none: programs of other ports and hosts can set
 * cookies for this one, and nobody can say which of two is the server's.
 */
export function sessionCookieOf(request: HttpRequest): string | undefined {
  const found = cookiesOf(request, cookieName(request));
  return found.length === 1 ? found[0] : undefined;
}

/** The values of the cookies of that name. */
export function cookiesOf(request: HttpRequest, name: string): string[] {
  const prefix = `${name}=`;
  // A driver joins repeated headers by commas, which no cookie of ours has.
  const pairs = (request.header("cookie") ?? "").split(/[;,]/).map((text) => text.trim());
  return pairs.flatMap((pair) => (pair.startsWith(prefix) ? [pair.slice(prefix.length)] : []));
}

/** Sets the cookie, or takes it away. */
export function setSessionCookie(request: HttpRequest, value: string | undefined): string {
  const ageSecs = value === undefined ? 0 : COOKIE_SECS;
  return `${cookieName(request)}=${value ?? ""}; Path=/; ${secureIn(request)}HttpOnly; SameSite=Strict; Max-Age=${ageSecs}`;
}

/** Of a cookie over TLS. */
export function secureIn(request: HttpRequest): "Secure; " | "" {
  return schemeOf(request) === "https" ? "Secure; " : "";
}

/** The origin that the browser asked for, as far as the request tells. */
export function askedOrigin(request: HttpRequest): string {
  return `${schemeOf(request)}://${hostOf(request)}`;
}

/**
 * Cookies know no ports, so the name has the one that the browser asked for: two servers of one host, or two ports that
 * lead to servers in containers, would overwrite each other's. It is that of `Host`, for behind an edge each peer listens
 * on another one.
 */
function cookieName(request: HttpRequest): string {
  const port = URL.parse(askedOrigin(request))?.port ?? "";
  return `engine_session_${port === "" ? DEFAULT_PORTS[schemeOf(request)] : port}`;
}

const DEFAULT_PORTS = { http: "80", https: "443" } as const;

/**
 * A proxy that ends TLS says so in `X-Forwarded-Proto`. Anybody may: it only ever asks for more, a cookie that goes over
 * TLS alone and an origin that is https, so there is nothing to gain by it.
 */
function schemeOf(request: HttpRequest): "http" | "https" {
  const [first = ""] = (request.header("x-forwarded-proto") ?? "").split(",");
  return request.scheme === "https" || first.trim().toLowerCase() === "https" ? "https" : "http";
}

/** What the browser asked for; empty where it is no name and port. */
function hostOf(request: HttpRequest): string {
  const asked = cameFromEdge(request) ? request.header("x-forwarded-host") : undefined;
  const host = asked ?? request.header("host") ?? "";
  return HOST.test(host) ? host : "";
}

function isOfHost(origin: string, request: HttpRequest): boolean {
  const url = URL.parse(origin);
  const host = hostOf(request);
  // `null`, and whatever is spelled otherwise than browsers do.
  if (url === null || url.origin !== origin || host === "") return false;
  // Over TLS a page without it is one that somebody on the way may have written.
  if (schemeOf(request) === "https" && url.protocol !== "https:") return false;
  return URL.parse(`${url.protocol}//${host}`)?.host === url.host;
}
