/**
 * What pages may load (Content Security Policy): this server's own scripts, styles, fonts and answers, and nothing of
 * anybody else. Styles that CodeMirror makes while it runs carry the nonce of their page. Text becomes a script's address
 * only through the one Trusted Types policy (`client/base/trusted-types.ts`), and HTML never.
 */
export function pagePolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "font-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types engine",
  ].join("; ");
}

/** A worker has the policy that its own file comes with. */
export const ASSET_POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'";

/** A page that has nothing but text. */
export const TEXT_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
