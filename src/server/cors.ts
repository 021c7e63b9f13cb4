/**
 * Cross-origin requests (Fetch standard, HTTP extensions). `Access-Control-Allow-Credentials` is never sent, and
 * `X-Engine-Web` is not among the headers that may be: a cookie says who a caller is to pages of this server's own origin
 * alone (`web-session.ts`), so no other page can have its visitor's browser act for it.
 */

/** The origins whose pages may call. */
export type AllowedOrigins = "all" | ReadonlySet<string>;

/**
 * What the option means; `*` among the origins is all of them. Unset, it depends: a caller who must show a token can be
 * called from any page, since a page has no token but those that it was given; while authentication is off, whoever
 * reaches the server may do everything, and a page that its user happens to visit is not meant by that.
 */
export function allowedOrigins(configured: readonly string[] | undefined, tokensAreAsked: boolean): AllowedOrigins {
  if (configured === undefined) return tokensAreAsked ? "all" : new Set();
  return configured.includes("*") ? "all" : new Set(configured);
}

/** Those that are listed by name, for where `*` is not enough: an origin is asked for by its user, all are by nobody. */
export function namedOrigins(configured: readonly string[] | undefined): ReadonlySet<string> {
  return new Set((configured ?? []).filter((origin) => origin !== "*"));
}

const EXPOSED =
  "X-Request-ID, X-Engine-Query-ID, X-Engine-Rows, X-Engine-Truncated, X-Engine-Render, X-Engine-Budget-Limit, Retry-After, WWW-Authenticate, ETag, Link, " +
  "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin";
const ALLOWED_HEADERS =
  "Authorization, Content-Type, Content-Encoding, If-Match, If-None-Match, Last-Event-ID, X-Database, X-Table, X-Idempotency-Key, X-Auto-Create, " +
  "X-Schema-Evolve, X-Engine-Infer-Types, X-Request-ID, X-Engine-Max-Wall-Clock-Ms, X-Engine-Max-Memory-Bytes, X-Engine-Max-Object-Store-Bytes, " +
  "X-Engine-Query-ID, X-Engine-Row-Limit, " +
  "X-Grpc-Web, X-User-Agent, Grpc-Timeout, MCP-Protocol-Version, Mcp-Method, Mcp-Name";
const PREFLIGHT_SECONDS = "600";

const NOTHING: Readonly<Record<string, string>> = {};
const VARIES: Readonly<Record<string, string>> = { Vary: "Origin" };

/** Headers for a response to a request from `origin`; without a grant when the origin is absent or not allowed. */
export function corsHeaders(allowed: AllowedOrigins, origin: string | undefined): Readonly<Record<string, string>> {
  if (allowed === "all") {
    if (origin === undefined) return NOTHING;
    return { "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": EXPOSED };
  }
  // The answer is the same for everybody.
  if (allowed.size === 0) return NOTHING;
  if (origin === undefined || !allowed.has(origin)) return VARIES;
  return { "Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": EXPOSED, ...VARIES };
}

/** Of the headers that a page wants to send, those with values for a query: their names are the page's own. */
function parameterHeaders(wanted: string): string[] {
  return wanted
    .split(",")
    .map((name) => name.trim())
    .filter((name) => /^x-engine-param-\w{1,100}$/i.test(name));
}

/** Further headers for a preflight (`OPTIONS`) of a path that takes `methods`; none for an origin that is not allowed. */
export function preflightHeaders(
  allowed: AllowedOrigins,
  origin: string | undefined,
  methods: readonly string[],
  wanted = "",
): Readonly<Record<string, string>> {
  if (origin === undefined || (allowed !== "all" && !allowed.has(origin))) return NOTHING;
  return {
    "Access-Control-Allow-Methods": methods.join(", "),
    "Access-Control-Allow-Headers": [ALLOWED_HEADERS, ...parameterHeaders(wanted)].join(", "),
    "Access-Control-Max-Age": PREFLIGHT_SECONDS,
  };
}
