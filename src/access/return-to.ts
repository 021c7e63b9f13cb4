/**
 * Where a page wants to be after signing in: a place below `/ui/` of this server, and nothing else. Whoever writes a link
 * that signs in writes this too, so it must not lead anywhere that somebody else has.
 */
export const HOME = "/ui/";

const MOST_CHARS = 1_000;
/** Encoded slashes, backslashes, dots and control characters: programs differ in when they decode them. */
const ENCODED = /%(?:2f|5c|2e|[01][0-9a-f]|7f)/i;
/** Printable ASCII but the backslash, which browsers take for a slash. */
const PLAIN = /^[\x21-\x5b\x5d-\x7e]+$/;

/** The place as it is sent to a browser; undefined for any other. */
export function returnTo(text: string): string | undefined {
  if (text.length > MOST_CHARS || !text.startsWith(HOME) || !PLAIN.test(text)) return undefined;
  // As browsers resolve it, `..` and empty segments included.
  const url = URL.parse(text, "http://self.invalid");
  if (url === null || url.origin !== "http://self.invalid") return undefined;
  if (!url.pathname.startsWith(HOME) || url.pathname.includes("//") || ENCODED.test(url.pathname)) return undefined;
  return url.pathname + url.search + url.hash;
}
