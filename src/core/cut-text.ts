/** Texts that are longer than there is room for. A character is never cut in half: of a surrogate pair both halves stay, or none. */

const MARK = "…";

/** The first `chars` characters, in UTF-16. */
export function beginningOf(text: string, chars: number): string {
  return text.length <= chars ? text : text.slice(0, chars).replace(/[\ud800-\udbff]$/, "");
}

/** The text, or its first `chars` characters and a mark after them. */
export function cutAfter(text: string, chars: number): string {
  return text.length <= chars ? text : `${beginningOf(text, chars).toWellFormed()}${MARK}`;
}

/** The text, or as much of it as has room in `maxChars` characters with a mark. */
export function cutWithin(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : cutAfter(text, maxChars - MARK.length);
}
