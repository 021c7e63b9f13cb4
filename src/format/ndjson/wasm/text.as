/** Strings, sixteen bytes at a time. All reading may go up to fifteen bytes beyond the line feed that ends the block. */

import { ROWS, TEXT_END, TEXT_SHIFT, VALUES } from "./layout";

/** Below this, bytes are control characters: in a string only as escapes. */
const FIRST_PRINTABLE: u32 = 0x20;

/** A bit for each quote, backslash and control character. */
@inline
export function special(v: v128): i32 {
  return i8x16.bitmask(
    v128.or(
      v128.or(i8x16.eq(v, i8x16.splat(0x22)), i8x16.eq(v, i8x16.splat(0x5c))),
      i8x16.eq(i8x16.min_u(v, i8x16.splat(0x1f)), v),
    ),
  );
}

/** Where the text that is being copied has come to. */
export let copied: usize = 0;

/** Copies up to the first quote, backslash or control character; returns where that is. `copied` tells where the copy ends. */
@inline
export function copyRun(at: usize, to: usize): usize {
  while (true) {
    const v = v128.load(at);
    v128.store(to, v);
    const hits = special(v);
    if (hits != 0) {
      const n = <usize>ctz(hits);
      copied = to + n;
      return at + n;
    }
    at += 16;
    to += 16;
  }
}

/** The first quote, backslash or control character from `at` on. */
@inline
export function skipRun(at: usize): usize {
  while (true) {
    const hits = special(v128.load(at));
    if (hits != 0) return at + <usize>ctz(hits);
    at += 16;
  }
}

/** Ends the text of a row. */
@inline
export function endText(column: usize, row: u32, end: usize): void {
  store<u32>(<usize>load<u32>(column, VALUES) + (<usize>row << 2), <u32>end + load<u32>(column, TEXT_SHIFT));
  store<u32>(column, <u32>end, TEXT_END);
  store<u32>(column, row + 1, ROWS);
}

/** Reads the string whose characters start at `start` into the column; returns the position after it, 0 when it is none. */
@inline
export function readText(start: usize, column: usize, row: u32): usize {
  const at = copyRun(start, <usize>load<u32>(column, TEXT_END));
  const byte = <u32>load<u8>(at);
  if (byte == 0x22) {
    endText(column, row, copied);
    return at + 1;
  }
  return byte == 0x5c ? readEscaped(at, copied, column, row) : 0;
}

/** The rest of a string from a backslash on. */
function readEscaped(at: usize, to: usize, column: usize, row: u32): usize {
  while (true) {
    const escape = <u32>load<u8>(at, 1);
    at += 2;
    if (escape != 0x75) {
      const decoded = unescaped(escape);
      if (decoded == 0) return 0;
      store<u8>(to++, decoded);
    } else {
      let code = hexUnit(at);
      at += 4;
      if (code < 0 || (code >= 0xdc00 && code <= 0xdfff)) return 0;
      if (code >= 0xd800 && code <= 0xdbff) {
        const low = load<u16>(at) == 0x755c ? hexUnit(at + 2) : -1;
        if (low < 0xdc00 || low > 0xdfff) return 0;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        at += 6;
      }
      to = putCodePoint(to, <u32>code);
    }
    at = copyRun(at, to);
    to = copied;
    const byte = <u32>load<u8>(at);
    if (byte == 0x22) {
      endText(column, row, to);
      return at + 1;
    }
    if (byte != 0x5c) return 0;
  }
}

/** What the letter of a short escape stands for; 0 where there is none. */
@inline
function unescaped(escape: u32): u32 {
  switch (escape) {
    case 0x22:
    case 0x5c:
    case 0x2f:
      return escape;
    case 0x62:
      return 8;
    case 0x66:
      return 12;
    case 0x6e:
      return 10;
    case 0x72:
      return 13;
    case 0x74:
      return 9;
    default:
      return 0;
  }
}

/** The UTF-16 unit of four hexadecimal digits; -1 when they are none. */
function hexUnit(at: usize): i32 {
  let unit: i32 = 0;
  for (let i: usize = 0; i < 4; i++) {
    const byte = <u32>load<u8>(at + i);
    const lower = byte | 0x20;
    let digit: u32 = 0;
    if (byte - 0x30 <= 9) digit = byte - 0x30;
    else if (lower - 0x61 <= 5) digit = lower - 0x57;
    else return -1;
    unit = (unit << 4) | digit;
  }
  return unit;
}

function putCodePoint(to: usize, code: u32): usize {
  if (code < 0x80) {
    store<u8>(to, code);
    return to + 1;
  }
  if (code < 0x800) {
    store<u8>(to, 0xc0 | (code >> 6));
    store<u8>(to, 0x80 | (code & 0x3f), 1);
    return to + 2;
  }
  if (code < 0x10000) {
    store<u8>(to, 0xe0 | (code >> 12));
    store<u8>(to, 0x80 | ((code >> 6) & 0x3f), 1);
    store<u8>(to, 0x80 | (code & 0x3f), 2);
    return to + 3;
  }
  store<u8>(to, 0xf0 | (code >> 18));
  store<u8>(to, 0x80 | ((code >> 12) & 0x3f), 1);
  store<u8>(to, 0x80 | ((code >> 6) & 0x3f), 2);
  store<u8>(to, 0x80 | (code & 0x3f), 3);
  return to + 4;
}

/**
 * Copies the string whose characters start at `start`, with its closing quote, if it is written as JSON.stringify would
 * write it; returns the position after it, 0 otherwise. `copied` tells where the copy ends.
 */
@inline
export function copyCanonical(start: usize, target: usize): usize {
  let at = copyRun(start, target);
  while (true) {
    const byte = <u32>load<u8>(at);
    if (byte == 0x22) {
      store<u8>(copied, 0x22);
      copied++;
      return at + 1;
    }
    if (byte != 0x5c) return 0;
    const escape = <u32>load<u8>(at, 1);
    if (escape == 0x2f || unescaped(escape) == 0) return 0;
    store<u16>(copied, load<u16>(at));
    at = copyRun(at + 2, copied + 2);
  }
}

/** First position from `at` on that is no white space (a line feed is none here). */
@inline
export function skipSpace(at: usize): usize {
  while (<u32>load<u8>(at) <= FIRST_PRINTABLE) {
    const byte = <u32>load<u8>(at);
    if (byte != 0x20 && byte != 0x09 && byte != 0x0d) break;
    at++;
  }
  return at;
}
