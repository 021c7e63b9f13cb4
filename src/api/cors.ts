/**
 * Cross-origin requests (Fetch standard, HTTP extensions). Unset origins mean that every origin is allowed, which the
 * specification calls "development only"; a list allows exactly those, and the answer then varies by `Origin`.
 */
export type CorsPolicy = { origins: readonly string[] | undefined };

const EXPOSED = "X-Request-ID, X-Engine-Rows, X-Engine-Budget-Limit, Retry-After";
const ALLOWED_HEADERS =
  "Authorization, Content-Type, Content-Encoding, X-Database, X-Table, X-Idempotency-Key, X-Auto-Create, " +
  "X-Schema-Evolve, X-Request-ID, X-Engine-Max-Wall-Clock-Ms, X-Engine-Max-Memory-Bytes, X-Engine-Max-Object-Store-Bytes";
const PREFLIGHT_SECONDS = "600";

/** Headers for a response to a request from `origin`; empty when the origin is absent or not allowed. */
export function corsHeaders(policy: CorsPolicy, origin: string | undefined): Record<string, string> {
  if (policy.origins === undefined) {
    if (origin === undefined) return {};
    return { "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": EXPOSED };
  }
  if (origin === undefined || !policy.origins.includes(origin)) return { Vary: "Origin" };
  return { "Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": EXPOSED, Vary: "Origin" };
}

/** Further headers for a preflight (`OPTIONS`) of a path that takes `methods`. */
export function preflightHeaders(methods: readonly string[]): Record<string, string> {
  return {
    "Access-Control-Allow-Methods": methods.join(", "),
    "Access-Control-Allow-Headers": ALLOWED_HEADERS,
    "Access-Control-Max-Age": PREFLIGHT_SECONDS,
  };
}
