/** Numbers, eight digits at a time. */

import { ROWS, VALUES } from "./layout";

/** A number that only the host can read: its text is at `[start, end)`. Not finite where it overflows. */
@external("host", "readReal")
declare function readReal(start: usize, end: usize): f64;

/** Powers of ten up to 10^8 as integers, and those that a double holds exactly. */
const TENS = memory.data<u64>([1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000]);
const POWERS = memory.data<f64>([
  1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
  1e21, 1e22,
]);
const MAX_POWER: i32 = 22;
/** Most digits that 64 bits always hold. */
const MAX_DIGITS: i32 = 19;
/** Most digits that a double always holds exactly. */
const EXACT_DIGITS: i32 = 15;
/** Up to here every integer is a double. */
const MAX_EXACT: u64 = 1 << 53;

/** Digits read so far, as an integer modulo 2^64. */
export let value: u64 = 0;
/** Of the number last read. */
export let digitCount: i32 = 0;
export let exponent: i32 = 0;
export let hasPower: bool = false;

/** The top bit of each byte that is no digit, of eight bytes less `0` each; above the lowest there may be false ones. */
@inline
export function noDigits(t: u64): u64 {
  return ((t + 0x7676767676767676) | t) & 0x8080808080808080;
}

/** The integer of eight digits, the first in the lowest byte. */
@inline
export function eightDigits(t: u64): u64 {
  const pairs = t * 10 + (t >> 8);
  return (
    ((pairs & 0x000000ff000000ff) * 0x000f424000000064 + ((pairs >> 16) & 0x000000ff000000ff) * 0x0000271000000001) >> 32
  );
}

/** Reads digits from `at` on behind those that `value` has; returns where they end. */
@inline
export function readDigits(at: usize): usize {
  let sum = value;
  while (true) {
    const t = load<u64>(at) ^ 0x3030303030303030;
    const others = noDigits(t);
    if (others != 0) {
      const n = <usize>ctz(others) >> 3;
      if (n != 0) {
        sum = sum * load<u64>(TENS + (n << 3)) + eightDigits(t << (64 - (n << 3)));
        at += n;
      }
      value = sum;
      return at;
    }
    sum = sum * 100000000 + eightDigits(t);
    at += 8;
  }
}

/** Reads a number's parts and returns where it ends, 0 when there is none. The sign is left to the caller. */
export function readNumber(start: usize): usize {
  const first = start + <usize>(load<u8>(start) == 0x2d);
  value = 0;
  let at = readDigits(first);
  let count = <i32>(at - first);
  if (count == 0 || (count > 1 && load<u8>(first) == 0x30)) return 0;
  exponent = 0;
  hasPower = false;
  let byte = <u32>load<u8>(at);
  if (byte == 0x2e) {
    const fraction = at + 1;
    at = readDigits(fraction);
    if (at == fraction) return 0;
    count += <i32>(at - fraction);
    exponent = <i32>(fraction - at);
    byte = <u32>load<u8>(at);
  }
  if ((byte | 0x20) == 0x65) {
    hasPower = true;
    at++;
    byte = <u32>load<u8>(at);
    const isNegative = byte == 0x2d;
    if (isNegative || byte == 0x2b) at++;
    let power: i32 = 0;
    const digits = at;
    while (true) {
      const digit = <u32>load<u8>(at) - 0x30;
      if (digit > 9) break;
      if (power < 100000) power = power * 10 + digit;
      at++;
    }
    if (at == digits) return 0;
    exponent += isNegative ? -power : power;
  }
  digitCount = count;
  return at;
}

/** Position after the integer at `start`, whose magnitude is in `value`; 0 when it is none or not written plainly. */
@inline
function readInteger(start: usize): usize {
  const first = start + <usize>(load<u8>(start) == 0x2d);
  value = 0;
  const at = readDigits(first);
  const count = <i32>(at - first);
  if (count == 0 || count > MAX_DIGITS || (count > 1 && load<u8>(first) == 0x30)) return 0;
  const byte = <u32>load<u8>(at);
  return byte == 0x2e || (byte | 0x20) == 0x65 ? 0 : at;
}

@inline
export function readLong(start: usize, column: usize, row: u32): usize {
  const at = readInteger(start);
  if (at == 0) return 0;
  const isNegative = load<u8>(start) == 0x2d;
  const magnitude = value;
  if (magnitude > 0x7fffffffffffffff + <u64>isNegative) return 0;
  store<u64>(<usize>load<u32>(column, VALUES) + (<usize>row << 3), isNegative ? 0 - magnitude : magnitude);
  store<u32>(column, row + 1, ROWS);
  return at;
}

@inline
export function readInt(start: usize, column: usize, row: u32): usize {
  const at = readInteger(start);
  if (at == 0) return 0;
  const isNegative = load<u8>(start) == 0x2d;
  const magnitude = value;
  if (magnitude > 0x7fffffff + <u64>isNegative) return 0;
  store<u32>(<usize>load<u32>(column, VALUES) + (<usize>row << 2), <u32>(isNegative ? 0 - magnitude : magnitude));
  store<u32>(column, row + 1, ROWS);
  return at;
}

/** `exactly`: only what is certain to be read back as it was written. */
@inline
export function readRealInto(start: usize, column: usize, row: u32, exactly: bool): usize {
  const at = readNumber(start);
  if (at == 0) return 0;
  const isSmallPower = exponent <= MAX_POWER && exponent >= -MAX_POWER;
  let real: f64;
  if (exactly && (digitCount > EXACT_DIGITS || !isSmallPower)) return 0;
  if (value <= MAX_EXACT && isSmallPower && digitCount <= MAX_DIGITS) {
    real = <f64>value;
    if (exponent < 0) real /= load<f64>(POWERS + (<usize>(-exponent) << 3));
    else if (exponent > 0) real *= load<f64>(POWERS + (<usize>exponent << 3));
    if (load<u8>(start) == 0x2d) real = -real;
  } else {
    real = isSmallPower && digitCount <= MAX_DIGITS ? longReal() : NaN;
    if (load<u8>(start) == 0x2d) real = -real;
    if (real != real) {
      real = readReal(start, at);
      if (!isFinite(real)) return 0;
    }
  }
  store<f64>(<usize>load<u32>(column, VALUES) + (<usize>row << 3), real);
  store<u32>(column, row + 1, ROWS);
  return at;
}

/** What the rounding of a double-double product or quotient may have changed of its smaller part, and far more. */
const TOLERANCE: f64 = 1.0 / 1099511627776.0;
/** 2^27 + 1 halves a double's digits (Veltkamp). */
const SPLITTER: f64 = 134217729.0;

/** The number last read, correctly rounded; NaN in the rare case that this cannot be told. See `longReal` of `../number-bytes.ts`. */
function longReal(): f64 {
  const high = <f64>value;
  const low = <f64>(<i64>(value - <u64>high));
  let larger = high;
  let smaller = low;
  if (exponent > 0) {
    const power = load<f64>(POWERS + (<usize>exponent << 3));
    larger = high * power;
    smaller = productError(high, power, larger) + low * power;
  } else if (exponent < 0) {
    const power = load<f64>(POWERS + (<usize>(-exponent) << 3));
    larger = high / power;
    const back = larger * power;
    smaller = (high - back - productError(larger, power, back) + low) / power;
  }
  const rounded = larger + smaller * (1.0 + TOLERANCE);
  return rounded == larger + smaller * (1.0 - TOLERANCE) ? rounded : NaN;
}

/** `a × b - product`, exactly, where `product` is the rounded `a × b`. */
@inline
function productError(a: f64, b: f64, product: f64): f64 {
  const scaledA = a * SPLITTER;
  const highA = scaledA - (scaledA - a);
  const lowA = a - highA;
  const scaledB = b * SPLITTER;
  const highB = scaledB - (scaledB - b);
  const lowB = b - highB;
  return lowA * lowB - (product - highA * highB - lowA * highB - highA * lowB);
}
