/** A part of a file that is sent as one request: whole lines. */
export type Piece = {
  /** Where it begins in the file, and where the next one does. */
  offset: number;
  end: number;
  /** Lines of the file before it. */
  linesBefore: number;
  bytes: Uint8Array<ArrayBuffer>;
};

/** What is read of a file. */
export type Source = Pick<File, "name" | "size" | "lastModified" | "slice">;

/** A request of more would be refused by the server. */
const MOST_LINE_BYTES = 64 * 1024 * 1024;
export const PIECE_BYTES = 4 * 1024 * 1024;
const NEWLINE = 0x0a;

/** A line that no request can carry. */
export class LongLineError extends Error {
  override readonly name = "LongLineError";
}

/**
 * The piece that begins at `offset`, which is 0 or the end of another: at most 4 MiB, unless its first line is longer.
 * Undefined at the end of the file. The same file is cut in the same way each time: keys of pieces depend on it.
 */
export async function pieceAt(
  file: Pick<Source, "size" | "slice">,
  offset: number,
  linesBefore: number,
  pieceBytes = PIECE_BYTES,
): Promise<Piece | undefined> {
  if (offset >= file.size) return undefined;
  for (let length = pieceBytes; ; length *= 2) {
    const end = Math.min(offset + Math.min(length, MOST_LINE_BYTES), file.size);
    const bytes = new Uint8Array(await file.slice(offset, end).arrayBuffer());
    // A file that became shorter meanwhile.
    if (bytes.length < end - offset) throw new Error("the file has changed while it was read: choose it again");
    if (end === file.size) return { offset, end, linesBefore, bytes };
    const last = bytes.lastIndexOf(NEWLINE);
    if (last !== -1) return { offset, end: offset + last + 1, linesBefore, bytes: bytes.slice(0, last + 1) };
    if (length >= MOST_LINE_BYTES) throw new LongLineError(`line ${linesBefore + 1} is longer than 64 MiB`);
  }
}

/** Line breaks in the bytes. */
export function countLines(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) count++;
  return count;
}

/** Without one of its lines, counted from 1. */
export function withoutLine(bytes: Uint8Array<ArrayBuffer>, line: number): Uint8Array<ArrayBuffer> {
  let from = 0;
  for (let number = 1; number < line; number++) {
    const end = bytes.indexOf(NEWLINE, from);
    if (end === -1) return bytes;
    from = end + 1;
  }
  const end = bytes.indexOf(NEWLINE, from);
  // The line break stays: the lines after it keep their numbers.
  const rest = end === -1 ? new Uint8Array() : bytes.subarray(end);
  const kept = new Uint8Array(from + rest.length);
  kept.set(bytes.subarray(0, from));
  kept.set(rest, from);
  return kept;
}

/**
 * The idempotency key of a piece: the same for the same piece of the same file, so that sending it again stores nothing
 * twice, and another for any other bytes, so that nothing is taken for what it is not. `web1` stands for the way in which
 * files are cut. (`crypto.subtle` has digests, but not on pages over plain HTTP of another host.)
 */
export function pieceKey(
  { name, size, lastModified }: Pick<Source, "name" | "size" | "lastModified">,
  { offset, bytes }: Pick<Piece, "offset" | "bytes">,
): string {
  const digest = `${hashOf(new TextEncoder().encode(name))}-${hashOf(bytes)}`;
  return `web1-${size}-${lastModified}-${offset}-${digest}`;
}

/** 64 bits of FNV-1a in two halves with different beginnings; not against those who want two pieces to be one. */
function hashOf(bytes: Uint8Array): string {
  let [a, b] = [0x811c9dc5, 0xcbf29ce4];
  for (const byte of bytes) {
    a = Math.imul(a ^ byte, 0x01000193);
    b = Math.imul(b ^ byte, 0x85ebca6b) + (a >>> 7);
  }
  return [a, b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
}
