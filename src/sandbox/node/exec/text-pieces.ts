import { isUtf8 } from "node:buffer";

/** A piece of output: its text; or base64, where it is not UTF-8. `at`: bytes of the stream up to and with it. */
export type TextPiece = { data: string; encoding?: "base64"; at: number };

const PIECE_BYTES = 32 * 1024;

/**
 * Turns one stream of bytes into pieces of text. A character that came in two parts is kept together: its beginning
 * waits for the rest, and is not counted before.
 */
export class TextPieces {
  #at: number;
  #held: Uint8Array = new Uint8Array();

  /** `at`: bytes of the stream that were had before. */
  constructor(at = 0) {
    this.#at = at;
  }

  push(bytes: Uint8Array): TextPiece[] {
    return this.#cut(this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]));
  }

  /** What waits is all that comes. */
  end(): TextPiece[] {
    const held = this.#held;
    this.#held = new Uint8Array();
    return held.length === 0 ? [] : [this.#piece(held)];
  }

  /** Bytes are missing here: what waits for them comes first. */
  skip(count: number): TextPiece[] {
    const pieces = this.end();
    this.#at += count;
    return pieces;
  }

  #cut(bytes: Uint8Array): TextPiece[] {
    const pieces: TextPiece[] = [];
    let rest = bytes;
    while (rest.length > 0) {
      const some = rest.subarray(0, PIECE_BYTES);
      const whole = some.subarray(0, some.length - begunBytes(some));
      if (whole.length > 0) pieces.push(this.#piece(whole));
      rest = rest.subarray(whole.length);
      if (some.length < PIECE_BYTES) break;
    }
    // Not a view of what may be large.
    this.#held = Uint8Array.from(rest);
    return pieces;
  }

  #piece(bytes: Uint8Array): TextPiece {
    this.#at += bytes.length;
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (isUtf8(buffer)) return { data: buffer.toString("utf8"), at: this.#at };
    return { data: buffer.toString("base64"), encoding: "base64", at: this.#at };
  }
}

/** How many bytes at the end may be the beginning of a character whose rest is missing. */
function begunBytes(bytes: Uint8Array): number {
  for (let count = 1; count <= Math.min(3, bytes.length); count++) {
    const byte = bytes[bytes.length - count] ?? 0;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return count < lengthBy(byte) ? count : 0;
  }
  return 0;
}

/** Of a character, by its first byte; 0 for one that begins none. */
function lengthBy(lead: number): number {
  if (lead < 0xc2 || lead > 0xf4) return 0;
  if (lead < 0xe0) return 2;
  return lead < 0xf0 ? 3 : 4;
}
