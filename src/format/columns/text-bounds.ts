/** Short bounds of UTF-8 text, for extent statistics. Text orders by code point, which is the order of its bytes. */

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const LAST_CODE_POINT = 0x10_ffff;

/** At most `limit` bytes that order no later than `utf8`: its longest prefix of whole characters. */
export function lowerBound(utf8: Uint8Array, limit: number): string {
  return decoder.decode(utf8.subarray(0, prefixLength(utf8, limit)));
}

/**
 * At most `limit` bytes that order no earlier than `utf8`, nor than any text that begins like it; the text itself when
 * it is short enough. Undefined when there are none, because the prefix is all U+10FFFF.
 */
export function upperBound(utf8: Uint8Array, limit: number): string | undefined {
  if (utf8.length <= limit) return decoder.decode(utf8);
  // A successor may take a byte more than the character it replaces (U+007F to U+0080).
  for (const bound of textsAfter(lowerBound(utf8, limit))) if (Buffer.byteLength(bound) <= limit) return bound;
  return undefined;
}

/** Texts that order after all that begin with the prefix: the first of them, then ever shorter and later ones. */
export function* textsAfter(prefix: string): Generator<string> {
  const characters = Array.from(prefix);
  for (let last = characters.pop(); last !== undefined; last = characters.pop()) {
    const successor = codePointAfter(last.codePointAt(0) ?? LAST_CODE_POINT);
    if (successor !== undefined) yield characters.join("") + successor;
  }
}

/** Length of the longest prefix of at most `limit` bytes that does not cut a character. */
function prefixLength(utf8: Uint8Array, limit: number): number {
  if (utf8.length <= limit) return utf8.length;
  let length = limit;
  while (length > 0 && ((utf8[length] ?? 0) & 0xc0) === 0x80) length--;
  return length;
}

function codePointAfter(codePoint: number): string | undefined {
  if (codePoint === LAST_CODE_POINT) return undefined;
  return String.fromCodePoint(codePoint === 0xd7ff ? 0xe000 : codePoint + 1);
}
