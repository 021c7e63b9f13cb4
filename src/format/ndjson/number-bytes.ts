/**
 * JSON numbers read from bytes. Up to 19 digits and powers of ten up to 22 are done here, exactly; what is beyond is left
 * to the text functions of `../decimal.ts`, so that there is one authority.
 */

/** The number last read by `readNumber`. */
export type NumberToken = {
  /** Position after the token; -1 when the bytes there are no JSON number. */
  end: number;
  negative: boolean;
  /** All digits as an integer, when there are at most 15 of them; meaningless otherwise. */
  digits: number;
  digitCount: number;
  /** Power of ten that `digits` is multiplied with. */
  exponent: number;
  /** Whether there is neither a fraction nor a power of ten. */
  plain: boolean;
  /** Whether there is a power of ten (`e3`). */
  hasPower: boolean;
};

/** Most decimal digits that a double always holds exactly. */
export const EXACT_DIGITS = 15;
/** Powers of ten that a double holds exactly (Clinger, "How to read floating point numbers accurately"). */
const POWERS = Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`));

const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const LOWER_E = 0x65;
const UPPER_E = 0x45;

export function newNumberToken(): NumberToken {
  return { end: -1, negative: false, digits: 0, digitCount: 0, exponent: 0, plain: true, hasPower: false };
}

/**
 * Reads the number at `source[start]` into `token`. The bytes must end in something that is no part of a number (a
 * line feed does).
 */
export function readNumber(source: Uint8Array, start: number, token: NumberToken): void {
  let at = start;
  token.end = -1;
  token.negative = source[at] === MINUS;
  if (token.negative) at++;
  const first = at;
  let digits = 0;
  let byte = source[at] as number;
  while (byte >= ZERO && byte <= NINE) {
    digits = digits * 10 + (byte - ZERO);
    byte = source[++at] as number;
  }
  let digitCount = at - first;
  if (digitCount === 0 || (digitCount > 1 && source[first] === ZERO)) return;
  let exponent = 0;
  token.plain = true;
  token.hasPower = false;
  if (byte === DOT) {
    const fraction = ++at;
    byte = source[at] as number;
    while (byte >= ZERO && byte <= NINE) {
      digits = digits * 10 + (byte - ZERO);
      byte = source[++at] as number;
    }
    if (at === fraction) return;
    digitCount += at - fraction;
    exponent = fraction - at;
    token.plain = false;
  }
  if (byte === LOWER_E || byte === UPPER_E) {
    token.plain = false;
    token.hasPower = true;
    byte = source[++at] as number;
    const negative = byte === MINUS;
    if (negative || byte === PLUS) byte = source[++at] as number;
    const power = at;
    let value = 0;
    while (byte >= ZERO && byte <= NINE) {
      value = value * 10 + (byte - ZERO);
      byte = source[++at] as number;
    }
    if (at === power) return;
    exponent += negative ? -value : value;
  }
  token.digits = digits;
  token.digitCount = digitCount;
  token.exponent = exponent;
  token.end = at;
}

/** The number as a double when that is exact with one rounding; undefined when the slow way must be taken. */
export function exactReal(token: NumberToken): number | undefined {
  const { digits, exponent } = token;
  if (token.digitCount > EXACT_DIGITS) return undefined;
  let value = digits;
  if (exponent !== 0) {
    if (exponent > 22 || exponent < -22) return undefined;
    value = exponent < 0 ? digits / (POWERS[-exponent] as number) : digits * (POWERS[exponent] as number);
  }
  return token.negative ? -value : value;
}

/** Whether it is certain, without a look at the digits, that a double gives the number back as it was. */
export function isExact({ digitCount, exponent }: NumberToken): boolean {
  return digitCount <= EXACT_DIGITS && exponent <= 22 && exponent >= -22;
}

/** The number as an integer when it is written plainly with at most 15 digits; undefined otherwise. */
export function plainInteger(token: NumberToken): number | undefined {
  if (!token.plain || token.digitCount > EXACT_DIGITS) return undefined;
  return token.negative ? -token.digits : token.digits;
}

/** An integer of up to 19 digits as `billions × 10^9 + rest`, both exact. */
export type LongDigits = { billions: number; rest: number };

const MAX_LONG_DIGITS = 19;
const REST_DIGITS = 9;

/** Reads the digits of the token at `start` into `digits`; false when there are more than 19, leading zeroes aside. */
export function readLongDigits(source: Uint8Array, start: number, token: NumberToken, digits: LongDigits): boolean {
  let at = token.negative ? start + 1 : start;
  let left = token.digitCount;
  while (left > 0 && (source[at] === ZERO || source[at] === DOT)) if (source[at++] === ZERO) left--;
  if (left > MAX_LONG_DIGITS) return false;
  let billions = 0;
  for (; left > REST_DIGITS; left--) {
    if (source[at] === DOT) at++;
    billions = billions * 10 + ((source[at++] as number) - ZERO);
  }
  let rest = 0;
  for (; left > 0; left--) {
    if (source[at] === DOT) at++;
    rest = rest * 10 + ((source[at++] as number) - ZERO);
  }
  digits.billions = billions;
  digits.rest = rest;
  return true;
}

/** What the rounding of a double-double product or quotient may have changed of its smaller part, and far more. */
const TOLERANCE = 2 ** -40;
/** 2^27 + 1 halves a double's digits (Veltkamp). */
const SPLITTER = 134_217_729;

/**
 * The number with these digits, correctly rounded; undefined in the rare case that this cannot be told.
 *
 * Digits and power of ten are exact, so their product or quotient is known to twice a double's precision (Dekker, "A
 * floating-point technique for extending the available precision"). Rounding that to a double is right unless it is so
 * near to halfway between two that the last bits of the smaller part decide, which is tried out.
 */
export function longReal({ billions, rest }: LongDigits, { negative, exponent }: NumberToken): number | undefined {
  if (exponent > 22 || exponent < -22) return undefined;
  const product = billions * 1e9;
  const high = product + rest;
  const low = rest - (high - product) + productError(billions, 1e9, product);
  let larger = high;
  let smaller = low;
  if (exponent > 0) {
    const power = POWERS[exponent] as number;
    larger = high * power;
    smaller = productError(high, power, larger) + low * power;
  } else if (exponent < 0) {
    const power = POWERS[-exponent] as number;
    larger = high / power;
    const back = larger * power;
    smaller = (high - back - productError(larger, power, back) + low) / power;
  }
  const value = larger + smaller * (1 + TOLERANCE);
  if (value !== larger + smaller * (1 - TOLERANCE)) return undefined;
  return negative ? -value : value;
}

/** `a × b - product`, exactly, where `product` is the rounded `a × b`. */
function productError(a: number, b: number, product: number): number {
  const scaledA = a * SPLITTER;
  const highA = scaledA - (scaledA - a);
  const lowA = a - highA;
  const scaledB = b * SPLITTER;
  const highB = scaledB - (scaledB - b);
  const lowB = b - highB;
  return lowA * lowB - (product - highA * highB - lowA * highB - highA * lowB);
}

const TWO_16 = 0x1_0000;
const TWO_32 = 0x1_0000_0000;
const MAX_BILLIONS = 9_223_372_036;
const MAX_REST = 854_775_807;

/** A 64-bit integer as two halves: a BigInt per value would be an object per value. */
export class Words {
  high = 0;
  low = 0;

  /** `billions × 10^9 + rest`, where both have the same sign, by doubles that stay exact. */
  set(billions: number, rest: number): void {
    const upper = Math.floor(billions / TWO_16);
    const product = upper * 1e9;
    const lower = (billions - upper * TWO_16) * 1e9 + rest;
    const productHigh = Math.floor(product / TWO_16);
    const lowerHigh = Math.floor(lower / TWO_32);
    const low = (product - productHigh * TWO_16) * TWO_16 + (lower - lowerHigh * TWO_32);
    this.high = productHigh + lowerHigh + (low >= TWO_32 ? 1 : 0);
    this.low = low >= TWO_32 ? low - TWO_32 : low;
  }

  /** The same, when it fits 64 bits; false when it does not. */
  setLong({ billions, rest }: LongDigits, negative: boolean): boolean {
    if (billions > MAX_BILLIONS || (billions === MAX_BILLIONS && rest > MAX_REST + (negative ? 1 : 0))) return false;
    if (negative) this.set(-billions, -rest);
    else this.set(billions, rest);
    return true;
  }
}
