import { isIP } from "node:net";
import { EngineError } from "../core/errors.ts";
import type { HttpRequest } from "../io/http/http.ts";
import type { AllowedOrigins } from "./cors.ts";
import { cameFromEdge } from "./edge/forward-headers.ts";
import type { Route } from "./route.ts";

/**
 * Keeps web pages from driving a server that asks for no token, and from signing in at any. Whoever runs a browser on the machine, or in the
 * network, visits pages of other people; those can send requests to every address that the browser reaches, and without
 * tokens nothing else tells them from the user's own. Browsers say where a request comes from, and no page can change it:
 *
 * - `Origin` is on every request of a script, and on every form that is posted. One that is neither this server's own nor
 *   allowed is refused. `null` (a sandbox, a file) is nobody's.
 * - A request for an image, or of somebody who follows a link, has no `Origin` but `Sec-Fetch-Site`. From another site it
 *   is refused where it would read or change something.
 * - A page whose name is made to point to this server after it was loaded (DNS rebinding) is of the server's own origin,
 *   as far as the browser can tell. It has the wrong name in `Host`. An attack needs a name, so addresses are good.
 *
 * Where tokens are asked for, no page can do anything without one, and the cookie of a browser that signed in counts for
 * this server's own pages alone (`web-session.ts`). So these rules hold for a request of a page that shows a
 * password (`ownPages`) and for no other: a page whose name was made to point here could try those that everybody knows.
 *
 * A request that an edge passes on was judged there: browsers let no page write `Via`.
 */
export type OriginGuardOptions = {
  allowed: AllowedOrigins;
  /** Those that are allowed by name. */
  named: ReadonlySet<string>;
  /** Origins under which browsers reach this server; their hosts are its names too. */
  ownOrigins: readonly string[];
  /** Further names of this server. */
  hosts: readonly string[];
  tokensAreAsked: boolean;
};

/** Throws `forbidden`. The route is undefined for a preflight of any but the routes for own pages. */
export type OriginGuard = (request: HttpRequest, route: Route | undefined) => void;

export function createOriginGuard(options: OriginGuardOptions): OriginGuard {
  const { allowed, named, ownOrigins, hosts, tokensAreAsked } = options;
  const own = new Set([...ownOrigins, ...named]);
  const names = new Set(["localhost", ...hosts.map(foldHost)]);
  for (const origin of own) names.add(foldHost(new URL(origin).hostname));
  // Where a page needs a token as everybody does, and where its operator asks for it, every page may call.
  const isOpen = tokensAreAsked || allowed === "all";
  return (request, route) => {
    const isForOwnPages = route?.ownPages === true;
    if (isOpen && !(isForOwnPages && isOfPage(request))) return;
    if (route?.anyOrigin === true || cameFromEdge(request)) return;
    const why = isForOwnPages ? AT_SIGN_IN : WHILE_OFF;
    const host = request.header("host");
    if (host !== undefined && !isOwnHost(host, names)) throw unknownHost(host, why);
    const origin = request.header("origin");
    if (origin === undefined) {
      const isGuarded = route !== undefined && (route.role !== "none" || isForOwnPages);
      if (isGuarded && isOfOtherSite(request)) throw foreign("of another site", why);
    } else if (!own.has(origin) && origin !== originOf(request, host)) {
      throw foreign(`of ${shown(origin)}`, why);
    }
  };
}

/** Whether a browser says that a page made it send the request; programs say nothing of the kind. */
function isOfPage(request: HttpRequest): boolean {
  return request.header("origin") !== undefined || isOfOtherSite(request);
}

const WHILE_OFF = "because authentication is off here";
const AT_SIGN_IN = "because passwords are shown to this server's own pages only";

/** The origin of a page that this server itself has given to the browser. */
function originOf({ scheme }: HttpRequest, host = ""): string {
  return `${scheme}://${host.toLowerCase()}`;
}

/** Whether the browser says that a page of another site made it send the request. */
function isOfOtherSite(request: HttpRequest): boolean {
  const site = request.header("sec-fetch-site");
  return site !== undefined && site !== "same-origin" && site !== "none";
}

const HOST_AND_PORT = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]+))(?::\d{1,5})?$/i;

function isOwnHost(header: string, names: ReadonlySet<string>): boolean {
  const [, v6, other = ""] = HOST_AND_PORT.exec(header) ?? [];
  if (v6 !== undefined) return isIP(v6) === 6;
  const name = foldHost(other);
  return isIP(name) === 4 || names.has(name) || name.endsWith(".localhost");
}

/** A dot at the end changes nothing about a name. */
function foldHost(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

const SHOWN_CHARS = 100;

function shown(text: string): string {
  return JSON.stringify(text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text);
}

function foreign(whose: string, why: string): EngineError {
  return new EngineError(
    "forbidden",
    `requests from pages ${whose} are refused, ${why}; ENGINE_CORS_ALLOWED_ORIGINS names ` +
      "the origins whose pages may call",
  );
}

function unknownHost(host: string, why: string): EngineError {
  return new EngineError(
    "forbidden",
    `requests for the host ${shown(host)} are refused, ${why}, and that is none of this ` +
      "server's names; ENGINE_HTTP_ALLOWED_HOSTS names more",
  );
}
