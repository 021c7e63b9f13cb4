import { isUtf8 } from "node:buffer";
import { specialBytes } from "../word-search.ts";

/** Compact JSON under construction, as bytes. */
export class JsonOut {
  bytes = new Uint8Array(INITIAL_BYTES);
  /** The same bytes. */
  view = new DataView(this.bytes.buffer);
  length = 0;

  /** Begins anew. What a huge value has blown up is let go. */
  clear(): void {
    this.length = 0;
    if (this.bytes.length <= KEPT_BYTES) return;
    this.#use(new Uint8Array(INITIAL_BYTES));
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

  /**
   * The shortest digits of a finite double, and `-0`. Most numbers of logs have few digits: those below 2^21 with up to three
   * digits behind the point are written here, for making a string of each took a tenth of reading a record (2026-11).
   */
  number(value: number): void {
    const thousandths = value * 1_000;
    if (Object.is(value, -0)) this.ascii("-0");
    else if (thousandths === (thousandths | 0) && thousandths / 1_000 === value) this.#thousandths(thousandths);
    else this.ascii(String(value));
  }

  #thousandths(value: number): void {
    if (value < 0) this.byte(MINUS);
    const digits = Math.abs(value);
    let power = 1_000;
    while (power * 10 <= digits) power *= 10;
    for (; power >= 1_000; power = (power / 10) | 0) this.byte(ZERO + (((digits / power) | 0) % 10));
    let fraction = digits % 1_000;
    if (fraction > 0) this.byte(POINT);
    for (; fraction > 0; power = (power / 10) | 0) {
      this.byte(ZERO + ((fraction / power) | 0));
      fraction %= power;
    }
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
  quoted(source: DataView, start: number, end: number): boolean {
    this.byte(QUOTE);
    let isAscii = true;
    for (let at = start; at < end; at += CHUNK_BYTES) {
      isAscii = this.#characters(source, at, Math.min(at + CHUNK_BYTES, end)) && isAscii;
    }
    this.byte(QUOTE);
    return isAscii || isUtf8(new Uint8Array(source.buffer, source.byteOffset + start, end - start));
  }

  /** The same of well-formed text. */
  quotedText(text: string): void {
    const json = Buffer.from(JSON.stringify(text));
    this.json(json, 0, json.length);
  }

  /** False when one of them is no ASCII character. */
  #characters(source: DataView, start: number, end: number): boolean {
    const most = (end - start) * ESCAPED_BYTES;
    if (this.length + most > this.bytes.length) this.#grow(most);
    const { bytes, view } = this;
    let to = this.length;
    let at = start;
    // Four at a time up to the first that needs an escape, or is no ASCII character.
    for (; at + 4 <= end; at += 4, to += 4) {
      const word = source.getInt32(at, true);
      if (((specialBytes(word) | word) & 0x80808080) !== 0) break;
      view.setInt32(to, word, true);
    }
    let all = 0;
    for (; at < end; at++) {
      const byte = source.getUint8(at);
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
    this.#use(larger);
  }

  #use(bytes: Uint8Array<ArrayBuffer>): void {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer);
  }
}

const INITIAL_BYTES = 4 * 1024;
const KEPT_BYTES = 1024 * 1024;
/** Strings are escaped in pieces, so that room for the worst case is not made for all of a long one. */
const CHUNK_BYTES = 4 * 1024;
/** The longest escape of one byte: `\u001f`. */
const ESCAPED_BYTES = 6;

const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
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
