/** Of the JSON of what an event says: half of what the control plane takes, for what stands around a text. */
export const EVENT_BYTES = 32 * 1_024;

/** Bytes of a value as JSON. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? "");
}

/** A control character is six bytes of JSON. */
const MOST_BYTES_PER_CHAR = 6;
const PIECE_CHARS = Math.floor(EVENT_BYTES / MOST_BYTES_PER_CHAR);

/** A text in pieces, each of which an event can say; no character is cut in two. */
export function piecesOf(text: string): string[] {
  if (text.length <= PIECE_CHARS || jsonBytes(text) <= EVENT_BYTES) return text === "" ? [] : [text];
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    const isCut = isHighSurrogate(text.charCodeAt(at + PIECE_CHARS - 1));
    const end = at + PIECE_CHARS - (isCut ? 1 : 0);
    pieces.push(text.slice(at, end));
    at = end;
  }
  return pieces;
}

/** As much of the text as an event can say, with how much is missing. */
export function shortened(text: string): string {
  const [first = ""] = piecesOf(text);
  return first.length === text.length ? text : `${first}… (${text.length - first.length} more characters)`;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00;
}
