/**
 * Numbers as JSON writes them, without going through a double.
 *
 * A token is `-? digits (. digits)? ([eE] [+-]? digits)?`; callers have validated that. It stands for
 * `sign × digits × 10^exponent`, with `digits` stripped of zeroes at both ends.
 */
type Decimal = { negative: boolean; digits: string; exponent: number };

const MIN_INT64 = -(2n ** 63n);
const MAX_INT64 = 2n ** 63n - 1n;
const INT64_DIGITS = 19;
/** Integers of up to this many characters are exact as doubles. */
const SAFE_CHARS = 15;

const PLAIN_INTEGER = /^-?[0-9]+$/;
const TOKEN = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/** The token's value when it is exactly integral and fits 32 bits. */
export function toInt32(token: string): number | undefined {
  const value = token.length <= SAFE_CHARS && PLAIN_INTEGER.test(token) ? Number(token) : Number(toInt64(token) ?? NaN);
  // `| 0` also turns -0 into 0.
  return value === (value | 0) ? value | 0 : undefined;
}

/** The token's value when it is exactly integral and fits 64 bits. */
export function toInt64(token: string): bigint | undefined {
  if (token.length <= INT64_DIGITS && PLAIN_INTEGER.test(token)) return inInt64(BigInt(token));
  const decimal = parseDecimal(token);
  const isIntegral = decimal.digits === "" || decimal.exponent >= 0;
  return isIntegral ? scaled(decimal, 0) : undefined;
}

/** The token's value as a finite double, rounded as JSON.parse rounds; undefined when it overflows. */
export function toFinite(token: string): number | undefined {
  const value = Number(token);
  return Number.isFinite(value) ? value : undefined;
}

/** The token's value as a double when the double's shortest decimal is the same number: when nothing is rounded away. */
export function toExactReal(token: string): number | undefined {
  const value = toFinite(token);
  if (value === undefined) return undefined;
  const [sent, kept] = [parseDecimal(token), parseDecimal(String(value))];
  return sent.digits === kept.digits && (sent.digits === "" || sent.exponent === kept.exponent) ? value : undefined;
}

/**
 * A point in time, in nanoseconds since the epoch, from a number whose unit is told by its magnitude:
 *
 * | absolute value | unit | covers (in that unit) |
 * |---|---|---|
 * | below 10^11 | seconds | until the year 5138 |
 * | below 10^14 | milliseconds | 1973 until 5138 |
 * | below 10^17 | microseconds | 1973 until 5138 |
 * | from 10^17 | nanoseconds | 1973 until 2262 |
 *
 * Fractions count (`1700000000.25`), to the nanosecond: digits beyond are dropped. Undefined outside 64 bits.
 */
export function epochToNs(token: string): bigint | undefined {
  const decimal = parseDecimal(token);
  const integerDigits = decimal.digits === "" ? 0 : decimal.digits.length + decimal.exponent;
  const unitExponent = integerDigits <= 11 ? 9 : integerDigits <= 14 ? 6 : integerDigits <= 17 ? 3 : 0;
  return scaled(decimal, unitExponent);
}

/** Whether the value fits 64 bits; the value if so. */
export function inInt64(value: bigint): bigint | undefined {
  return value >= MIN_INT64 && value <= MAX_INT64 ? value : undefined;
}

/** The integer part of `decimal × 10^shift` when it fits 64 bits. Never makes a number longer than that. */
function scaled(decimal: Decimal, shift: number): bigint | undefined {
  const { negative, digits } = decimal;
  const zeroes = decimal.exponent + shift;
  const length = digits.length + zeroes;
  if (digits === "" || length <= 0) return 0n;
  if (length > INT64_DIGITS) return undefined;
  const magnitude = BigInt(zeroes >= 0 ? digits + "0".repeat(zeroes) : digits.slice(0, length));
  return inInt64(negative ? -magnitude : magnitude);
}

function parseDecimal(token: string): Decimal {
  const [, sign = "", integer = "", fraction = "", power = "0"] = TOKEN.exec(token) ?? [];
  const all = integer + fraction;
  let start = 0;
  let end = all.length;
  while (start < end && all.charCodeAt(start) === 0x30) start++;
  while (end > start && all.charCodeAt(end - 1) === 0x30) end--;
  const exponent = Number(power) - fraction.length + (all.length - end);
  return { negative: sign === "-", digits: all.slice(start, end), exponent };
}
