import { LIMITS } from "../../core/limits.ts";
import { firstHit, specialBytes } from "../word-search.ts";
import { newNumberToken, readNumber } from "./number-bytes.ts";

/**
 * JSON values read from bytes: is it JSON, where does it end, and is it compact already? The bytes must be UTF-8 and
 * end in a line feed, which stops every loop, because JSON has it nowhere but between values of different lines.
 *
 * A reader answers "no" also to what is legal but rare, and leaves it to the text functions: escapes that
 * JSON.stringify would write differently, duplicate keys, very many keys, very deep nesting.
 */
export const BYTE = {
  lineFeed: 0x0a,
  quote: 0x22,
  comma: 0x2c,
  minus: 0x2d,
  zero: 0x30,
  nine: 0x39,
  colon: 0x3a,
  openBracket: 0x5b,
  backslash: 0x5c,
  closeBracket: 0x5d,
  f: 0x66,
  n: 0x6e,
  t: 0x74,
  u: 0x75,
  openBrace: 0x7b,
  closeBrace: 0x7d,
} as const;

/** Below this, bytes are control characters: in a string only as escapes. */
const FIRST_PRINTABLE = 0x20;
/** Objects with more keys than this are left to the text functions, which look duplicates up in a map. */
const MAX_KEYS = 64;

/** First position from `at` on that is no white space (a line feed is none here). */
export function skipSpaceBytes(source: Uint8Array, start: number): number {
  let at = start;
  let byte = source[at];
  while (byte === 0x20 || byte === 0x09 || byte === 0x0d) byte = source[++at];
  return at;
}

const SLASH = 0x2f;
/** What the letter of a short escape stands for; 0 where there is none. */
const ESCAPES = new Uint8Array(256);
for (const pair of ['""', "\\\\", "//", "b\b", "f\f", "n\n", "r\r", "t\t"]) {
  ESCAPES[pair.charCodeAt(0)] = pair.charCodeAt(1);
}

/** Bytes that may follow a backslash and that JSON.stringify writes in the same way: `" \ b f n r t`. */
function isPlainEscape(byte: number): boolean {
  return ESCAPES[byte] !== 0 && byte !== SLASH;
}

/** Position after the literal `true`, `false` or `null` at `at`; -1 when there is none. */
export function literalEnd(source: Uint8Array, at: number): number {
  switch (source[at] as number) {
    case BYTE.t:
      return source[at + 1] === 0x72 && source[at + 2] === 0x75 && source[at + 3] === 0x65 ? at + 4 : -1;
    case BYTE.f:
      return source[at + 1] === 0x61 && source[at + 2] === 0x6c && source[at + 3] === 0x73 && source[at + 4] === 0x65
        ? at + 5
        : -1;
    case BYTE.n:
      return source[at + 1] === 0x75 && source[at + 2] === 0x6c && source[at + 3] === 0x6c ? at + 4 : -1;
    default:
      return -1;
  }
}

export class JsonReader {
  /** Position after the value last read. */
  end = -1;
  /** Whether it had no white space outside of strings. */
  compact = true;
  readonly #number = newNumberToken();
  readonly #isObject = new Uint8Array(LIMITS.jsonNesting + 1);
  /** Per level: index of its first key. */
  readonly #firstKey = new Int32Array(LIMITS.jsonNesting + 1);
  #keyStarts = new Int32Array(256);
  #keyEnds = new Int32Array(256);
  #keys = 0;

  /** Reads the value at `start`, which stands `level` containers deep. False: no JSON, or not for this reader. */
  read(source: Uint8Array, start: number, level: number): boolean {
    this.compact = true;
    this.#keys = 0;
    let depth = 0;
    let at = start;
    for (;;) {
      const first = source[at] as number;
      if (first === BYTE.openBrace || first === BYTE.openBracket) {
        if (++depth + level > LIMITS.jsonNesting) return false;
        this.#isObject[depth] = first === BYTE.openBrace ? 1 : 0;
        this.#firstKey[depth] = this.#keys;
        at = this.#skip(source, at + 1);
        const isEmpty = source[at] === first + 2;
        if (!isEmpty) {
          if (first === BYTE.openBrace && (at = this.#key(source, at, depth)) < 0) return false;
          continue;
        }
        at++;
        depth--;
      } else if ((at = this.#scalar(source, at, first)) < 0) {
        return false;
      }
      // After a value: close containers until one goes on.
      for (;;) {
        if (depth === 0) {
          this.end = at;
          return true;
        }
        at = this.#skip(source, at);
        const isObject = this.#isObject[depth] === 1;
        const byte = source[at];
        if (byte === BYTE.comma) {
          at = this.#skip(source, at + 1);
          if (isObject && (at = this.#key(source, at, depth)) < 0) return false;
          break;
        }
        if (byte !== (isObject ? BYTE.closeBrace : BYTE.closeBracket)) return false;
        this.#keys = this.#firstKey[depth] as number;
        depth--;
        at++;
      }
    }
  }

  #scalar(source: Uint8Array, at: number, first: number): number {
    if (first === BYTE.quote) return canonicalStringEnd(source, at);
    if (first === BYTE.minus || (first >= BYTE.zero && first <= BYTE.nine)) {
      readNumber(source, at, this.#number);
      return this.#number.end;
    }
    return literalEnd(source, at);
  }

  /** Reads a key and its colon; position of the value, or -1. */
  #key(source: Uint8Array, start: number, depth: number): number {
    if (source[start] !== BYTE.quote) return -1;
    const end = canonicalStringEnd(source, start);
    if (end < 0 || !this.#remember(source, start, end, depth)) return -1;
    const colon = this.#skip(source, end);
    if (source[colon] !== BYTE.colon) return -1;
    return this.#skip(source, colon + 1);
  }

  /** False when the object has the key already, or too many. */
  #remember(source: Uint8Array, start: number, end: number, depth: number): boolean {
    const firstKey = this.#firstKey[depth] as number;
    if (this.#keys - firstKey >= MAX_KEYS) return false;
    for (let key = firstKey; key < this.#keys; key++) {
      if (sameBytes(source, this.#keyStarts[key] as number, this.#keyEnds[key] as number, start, end)) return false;
    }
    if (this.#keys === this.#keyStarts.length) this.#growKeys();
    this.#keyStarts[this.#keys] = start;
    this.#keyEnds[this.#keys] = end;
    this.#keys++;
    return true;
  }

  #growKeys(): void {
    const [starts, ends] = [this.#keyStarts, this.#keyEnds];
    this.#keyStarts = new Int32Array(starts.length * 2);
    this.#keyEnds = new Int32Array(ends.length * 2);
    this.#keyStarts.set(starts);
    this.#keyEnds.set(ends);
  }

  #skip(source: Uint8Array, at: number): number {
    if ((source[at] as number) > FIRST_PRINTABLE) return at;
    const end = skipSpaceBytes(source, at);
    if (end > at) this.compact = false;
    return end;
  }
}

/**
 * Position after the string at `start`, if it is written as JSON.stringify would write it; -1 otherwise. A `\u` escape
 * or `\/` may be legal, but not canonical.
 */
export function canonicalStringEnd(source: Uint8Array, start: number): number {
  let at = start + 1;
  for (;;) {
    const byte = source[at] as number;
    if (byte === BYTE.quote) return at + 1;
    if (byte === BYTE.backslash) {
      if (!isPlainEscape(source[at + 1] as number)) return -1;
      at += 2;
    } else if (byte < FIRST_PRINTABLE) {
      return -1;
    } else {
      at++;
    }
  }
}

/** Copies JSON that a reader accepted without the white space between its tokens; returns where the copy ended. */
export function copyCompact(source: Uint8Array, start: number, end: number, target: Uint8Array, to: number): number {
  let length = to;
  for (let at = start; at < end;) {
    const byte = source[at] as number;
    if (byte === BYTE.quote) {
      const close = canonicalStringEnd(source, at);
      while (at < close) target[length++] = source[at++] as number;
      continue;
    }
    if (byte > FIRST_PRINTABLE) target[length++] = byte;
    at++;
  }
  return length;
}

function sameBytes(source: Uint8Array, startA: number, endA: number, startB: number, endB: number): boolean {
  if (endA - startA !== endB - startB) return false;
  for (let a = startA, b = startB; a < endA; a++, b++) if (source[a] !== source[b]) return false;
  return true;
}

/** The first quote, backslash or control character from `start` on. */
function nextSpecial(view: DataView, start: number): number {
  let at = start;
  for (;;) {
    const hits = specialBytes(view.getInt32(at, true));
    if (hits !== 0) return at + firstHit(hits);
    at += 4;
  }
}

/** Position after the closing quote of the string whose characters start at `start`; -1 when the line ends first. */
export function quotedEnd(view: DataView, start: number): number {
  for (let at = nextSpecial(view, start); ; at = nextSpecial(view, at + 2)) {
    const byte = view.getUint8(at);
    if (byte === BYTE.quote) return at + 1;
    if (byte !== BYTE.backslash || view.getUint8(at + 1) < FIRST_PRINTABLE) return -1;
  }
}

/**
 * Decodes the characters `source[start, end)` of a string with escapes into UTF-8 at `to`; returns where it ended, or
 * -1 when an escape is not legal or is half of a surrogate pair. The result is never longer than the source.
 */
export function decodeString(
  source: Uint8Array,
  view: DataView,
  start: number,
  end: number,
  target: Uint8Array,
  to: number,
): number {
  let length = to;
  let at = start;
  while (at < end) {
    const run = nextSpecial(view, at);
    if (run > at) {
      length = copyRun(source, at, run, target, length);
      at = run;
      continue;
    }
    const escape = source[at + 1] as number;
    at += 2;
    if (escape !== BYTE.u) {
      const decoded = ESCAPES[escape] as number;
      if (decoded === 0) return -1;
      target[length++] = decoded;
      continue;
    }
    let code = hexUnit(source, at);
    at += 4;
    if (code < 0 || (code >= 0xdc00 && code <= 0xdfff)) return -1;
    if (code >= 0xd800 && code <= 0xdbff) {
      const low = source[at] === BYTE.backslash && source[at + 1] === BYTE.u ? hexUnit(source, at + 2) : -1;
      if (low < 0xdc00 || low > 0xdfff) return -1;
      code = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      at += 6;
    }
    length = putCodePoint(target, length, code);
  }
  return length;
}

/** Up to this many bytes a loop beats making a view for a bulk copy. */
const SHORT_RUN_BYTES = 48;

function copyRun(source: Uint8Array, start: number, end: number, target: Uint8Array, to: number): number {
  const length = end - start;
  if (length > SHORT_RUN_BYTES) target.set(source.subarray(start, end), to);
  else for (let i = 0; i < length; i++) target[to + i] = source[start + i] as number;
  return to + length;
}

/** The UTF-16 unit of four hexadecimal digits; -1 when they are none. */
function hexUnit(source: Uint8Array, at: number): number {
  let unit = 0;
  for (let i = at; i < at + 4; i++) {
    const byte = source[i] as number;
    const lower = byte | 0x20;
    const digit = byte >= 0x30 && byte <= 0x39 ? byte - 0x30 : lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

function putCodePoint(target: Uint8Array, to: number, code: number): number {
  let at = to;
  if (code < 0x80) {
    target[at++] = code;
  } else if (code < 0x800) {
    target[at++] = 0xc0 | (code >> 6);
    target[at++] = 0x80 | (code & 0x3f);
  } else if (code < 0x1_0000) {
    target[at++] = 0xe0 | (code >> 12);
    target[at++] = 0x80 | ((code >> 6) & 0x3f);
    target[at++] = 0x80 | (code & 0x3f);
  } else {
    target[at++] = 0xf0 | (code >> 18);
    target[at++] = 0x80 | ((code >> 12) & 0x3f);
    target[at++] = 0x80 | ((code >> 6) & 0x3f);
    target[at++] = 0x80 | (code & 0x3f);
  }
  return at;
}
