/**
 * JSON numbers read from bytes. The fast cases are done here, exactly; what is not plain (more digits than a double
 * holds, large exponents) is left to the text functions of `../decimal.ts`, so that there is one authority.
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

/** The number as an integer when it is written plainly with at most 15 digits; undefined otherwise. */
export function plainInteger(token: NumberToken): number | undefined {
  if (!token.plain || token.digitCount > EXACT_DIGITS) return undefined;
  return token.negative ? -token.digits : token.digits;
}
