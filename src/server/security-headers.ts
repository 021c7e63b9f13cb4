import type { HttpRequest } from "../io/http/http.ts";

/**
 * What every answer tells browsers, whoever asks; other clients ignore it. A route may say more (its own policy for a
 * page), or something else.
 *
 * - Content is what its type says, and nothing is taken for a script that is none.
 * - Addresses, which may hold names of databases, are not told to other sites.
 * - No page shows an answer in a frame.
 * - No page of another origin embeds an answer. One that may read answers does so by CORS, which this does not touch.
 */
const ALWAYS = {
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "X-Frame-Options": "DENY",
  "Cross-Origin-Resource-Policy": "same-origin",
} as const;

/**
 * A year, for this host alone: other hosts of the domain are not this server's to speak for. Over plain HTTP it means
 * nothing (RFC 6797 §7.2).
 */
const OVER_TLS = { ...ALWAYS, "Strict-Transport-Security": "max-age=31536000" } as const;

export function securityHeaders(scheme: HttpRequest["scheme"]): Readonly<Record<string, string>> {
  return scheme === "https" ? OVER_TLS : ALWAYS;
}

const NAMES: ReadonlySet<string> = new Set(Object.keys(OVER_TLS).map((name) => name.toLowerCase()));

/** Whether every server says this itself, so that one that passes an answer on leaves it out. */
export function isSecurityHeader(lowerCaseName: string): boolean {
  return NAMES.has(lowerCaseName);
}
