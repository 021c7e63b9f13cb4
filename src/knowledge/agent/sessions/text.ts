/** Texts of people and models, as records keep them. */

/** What both databases take as text. */
export function storable(text: string): string {
  return text.replaceAll("\0", "").toWellFormed();
}

/** The first line with words in it, on one line and at most so many characters long; `…` marks what was cut off. */
export function lineOf(text: string, maxChars: number): string {
  const lines = storable(text).split(/[\r\n]+/);
  const line = lines.map(wordsOf).find((words) => words !== "") ?? "";
  const points = Array.from(line);
  if (points.length <= maxChars) return line;
  const kept = points.slice(0, maxChars - 1).join("");
  return `${kept.trimEnd()}…`;
}

function wordsOf(line: string): string {
  return line.replace(/[\p{Cc}\s]+/gu, " ").trim();
}

/** The beginning of a text, in at most so many bytes of UTF-8; `…` marks what was cut off. */
export function cutToBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  const mark = "…";
  let end = maxBytes - Buffer.byteLength(mark);
  // Not within a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, Math.max(end, 0)) + mark;
}
