import { isUtf8 } from "node:buffer";

/** Compact JSON under construction, as bytes. */
export class JsonOut {
  bytes = new Uint8Array(INITIAL_BYTES);
  length = 0;

  /** Begins anew. What a huge value has blown up is let go. */
  clear(): void {
    this.length = 0;
    if (this.bytes.length <= KEPT_BYTES) return;
    this.bytes = new Uint8Array(INITIAL_BYTES);
  }

  byte(code: number): void {
    if (this.length === this.bytes.length) this.#grow(1);
    this.bytes[this.length++] = code;
  }

  /** Text of ASCII characters, as it is. */
  ascii(text: string): void {
    const { length } = text;
    if (this.length + length > this.bytes.length) this.#grow(length);
    const { bytes } = this;
    for (let i = 0, to = this.length; i < length; i++, to++) bytes[to] = text.charCodeAt(i);
    this.length += length;
  }

  /** Bytes that are JSON already. */
  json(source: Uint8Array, start: number, end: number): void {
    const length = end - start;
    if (this.length + length > this.bytes.length) this.#grow(length);
    this.bytes.set(source.subarray(start, end), this.length);
    this.length += length;
  }

  /** ASCII characters in quotes; none of them may need an escape. */
  quotedAscii(text: string): void {
    this.byte(QUOTE);
    this.ascii(text);
    this.byte(QUOTE);
  }

  /**
   * The UTF-8 text `source[start, end)` as a JSON string. False when it is not UTF-8: then nothing of use was written.
   */
  quoted(source: Uint8Array, start: number, end: number): boolean {
    this.byte(QUOTE);
    let isAscii = true;
    for (let at = start; at < end; at += CHUNK_BYTES) {
      isAscii = this.#characters(source, at, Math.min(at + CHUNK_BYTES, end)) && isAscii;
    }
    this.byte(QUOTE);
    return isAscii || isUtf8(source.subarray(start, end));
  }

  /** False when one of them is no ASCII character. */
  #characters(source: Uint8Array, start: number, end: number): boolean {
    const most = (end - start) * ESCAPED_BYTES;
    if (this.length + most > this.bytes.length) this.#grow(most);
    const { bytes } = this;
    let to = this.length;
    let all = 0;
    for (let at = start; at < end; at++) {
      const byte = source[at] as number;
      all |= byte;
      if (PLAIN[byte] === 1) bytes[to++] = byte;
      else to = putEscape(bytes, to, byte);
    }
    this.length = to;
    return all < 0x80;
  }

  #grow(more: number): void {
    const larger = new Uint8Array(Math.max(this.length + more, this.bytes.length * 2));
    larger.set(this.bytes.subarray(0, this.length));
    this.bytes = larger;
  }
}

const INITIAL_BYTES = 4 * 1024;
const KEPT_BYTES = 1024 * 1024;
/** Strings are escaped in pieces, so that room for the worst case is not made for all of a long one. */
const CHUNK_BYTES = 4 * 1024;
/** The longest escape of one byte: `\u001f`. */
const ESCAPED_BYTES = 6;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** 1 for bytes that stand for themselves in a JSON string. */
const PLAIN = new Uint8Array(256).fill(1, 0x20);
PLAIN[QUOTE] = 0;
PLAIN[BACKSLASH] = 0;

/** By control character: the letter of its short escape, as JSON.stringify has them; 0 for the others. */
const SHORT = new Uint8Array(0x20);
for (const [letter, character] of ["b\b", "f\f", "n\n", "r\r", "t\t"]) {
  SHORT[(character ?? "").charCodeAt(0)] = (letter ?? "").charCodeAt(0);
}

function putEscape(bytes: Uint8Array, start: number, byte: number): number {
  let to = start;
  bytes[to++] = BACKSLASH;
  const letter = byte < 0x20 ? (SHORT[byte] as number) : byte;
  if (letter !== 0) {
    bytes[to++] = letter;
    return to;
  }
  for (const character of [0x75, 0x30, 0x30, 0x30 + (byte >> 4)]) bytes[to++] = character;
  const digit = byte & 0x0f;
  bytes[to++] = digit < 10 ? 0x30 + digit : 0x61 + digit - 10;
  return to;
}
