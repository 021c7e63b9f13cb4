import { EngineError } from "./errors.ts";

const TAGS = /^\s*(?:W\/)?"[^"]*"(?:\s*,\s*(?:W\/)?"[^"]*")*\s*$/;

/**
 * What `If-Match` and `If-None-Match` name (RFC 9110 §13.1): any, or some. Weak tags are left out:
 * they do not match where bytes must be the same. Throws `invalid_header`.
 */
export function parseEtags(header: string): "*" | readonly string[] {
  if (header.trim() === "*") return "*";
  if (!TAGS.test(header)) throw new EngineError("invalid_header", `${header.slice(0, 100)} is no list of entity tags`);
  return [...header.matchAll(/(W\/)?("[^"]*")/g)].flatMap(([, weak, tag = ""]) => (weak === undefined ? [tag] : []));
}

export function matchesEtag(header: string, etag: string): boolean {
  const tags = parseEtags(header);
  return tags === "*" || tags.includes(etag);
}

/** The same where an answer may be in other bytes (`If-None-Match` of `GET`): weak tags count as strong ones do. */
export function matchesWeakly(header: string, etag: string): boolean {
  return matchesEtag(asStrong(header), asStrong(etag));
}

function asStrong(tags: string): string {
  return tags.replaceAll('W/"', '"');
}
