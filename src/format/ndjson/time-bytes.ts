import { EXACT_DIGITS, Words, type NumberToken } from "./number-bytes.ts";

/**
 * Times read from bytes, in the forms that nearly every producer writes: `YYYY-MM-DD`, or
 * `YYYY-MM-DD(T| )HH:MM:SS[.1–9 digits][Z|±HH:MM]`, UTC without an offset. Everything else is left to `../time-text.ts`.
 *
 * Nanoseconds since the epoch are made as two 32-bit halves: a BigInt per value would be an object per value.
 */

const DASH = 0x2d;
const COLON = 0x3a;
const DOT = 0x2e;
const UPPER_T = 0x54;
const LOWER_T = 0x74;
const BLANK = 0x20;
const UPPER_Z = 0x5a;
const LOWER_Z = 0x7a;
const PLUS = 0x2b;
const ZERO = 0x30;
/** Within the 64-bit range whatever the nanoseconds. */
const MAX_SECONDS = 9_223_372_035;
/** `YYYY-MM-DD`, and with `THH:MM:SS`. */
const DATE_BYTES = 10;
const DATE_AND_TIME_BYTES = 19;
const SECONDS_PER_DAY = 86_400;
const NS_PER_SECOND = 1e9;
const NOT_A_DATE = Number.NaN;
const DAYS_BEFORE_MONTH = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

/** Holds the last time read, in nanoseconds. */
export class TimeReader extends Words {
  /** The date of the last time read, packed, and its days since the epoch: neighbours mostly share it. */
  #date = -1;
  #days = 0;

  /** Reads `source[start, end)`; false when it is not of the form above, or no time. */
  read(source: Uint8Array, start: number, end: number): boolean {
    if (end - start < DATE_AND_TIME_BYTES) return end - start === DATE_BYTES && this.#readMidnight(source, start);
    const days = this.#readDate(source, start);
    const separator = source[start + DATE_BYTES];
    if (Number.isNaN(days) || (separator !== UPPER_T && separator !== BLANK && separator !== LOWER_T)) return false;
    if (source[start + 13] !== COLON || source[start + 16] !== COLON) return false;
    const hour = twoDigits(source, start + 11);
    const minute = twoDigits(source, start + 14);
    const second = twoDigits(source, start + 17);
    // A value below zero has a byte that is no digit. Leap seconds are rare enough for the slow way.
    if (hour < 0 || minute < 0 || second < 0 || hour > 23 || minute > 59 || second > 59) return false;
    let at = start + 19;
    let nanos = 0;
    if (source[at] === DOT) {
      let scale = NS_PER_SECOND;
      const first = ++at;
      for (
        let digit = (source[at] as number) - ZERO;
        digit >= 0 && digit <= 9;
        digit = (source[++at] as number) - ZERO
      ) {
        nanos = nanos * 10 + digit;
        scale /= 10;
      }
      if (at === first || at - first > 9) return false;
      nanos *= scale;
    }
    const offset = this.#readOffset(source, at, end);
    if (Number.isNaN(offset)) return false;
    this.set(days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second - offset, nanos);
    return true;
  }

  /**
   * Reads a number of seconds, milliseconds, microseconds or nanoseconds, told by its magnitude as in `../decimal.ts`.
   * False when it has more digits than a double holds, an exponent, or more than nine places.
   */
  readEpoch({ negative, digits, digitCount, exponent, hasPower }: NumberToken): boolean {
    if (digitCount > EXACT_DIGITS || hasPower || exponent < -9) return false;
    const scale = 10 ** -exponent;
    const whole = Math.floor(digits / scale);
    const unit = whole < 1e11 ? 1 : whole < 1e14 ? 1e3 : 1e6;
    // Fractions of anything but seconds are rare.
    if (unit !== 1 && exponent !== 0) return false;
    const seconds = Math.floor(whole / unit);
    if (seconds > MAX_SECONDS) return false;
    const nanos =
      exponent === 0
        ? (whole - seconds * unit) * (NS_PER_SECOND / unit)
        : (digits - whole * scale) * (NS_PER_SECOND / scale);
    if (negative) this.set(-seconds, -nanos);
    else this.set(seconds, nanos);
    return true;
  }

  /** Reads a date alone. */
  #readMidnight(source: Uint8Array, start: number): boolean {
    const days = this.#readDate(source, start);
    if (Number.isNaN(days)) return false;
    this.set(days * SECONDS_PER_DAY, 0);
    return true;
  }

  #readDate(source: Uint8Array, start: number): number {
    const year = twoDigits(source, start) * 100 + twoDigits(source, start + 2);
    const month = twoDigits(source, start + 5);
    const day = twoDigits(source, start + 8);
    if (source[start + 4] !== DASH || source[start + 7] !== DASH) return NOT_A_DATE;
    // Years whose every instant, whatever its offset, is within the 64-bit range.
    if (year < 1678 || year > 2261 || month < 1 || month > 12 || day < 1) return NOT_A_DATE;
    const date = (year * 12 + month) * 32 + day;
    if (date === this.#date) return this.#days;
    const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
    if (day > 28 && day > daysInMonth(month, leap)) return NOT_A_DATE;
    const before = year - 1;
    const leapDays = Math.floor(before / 4) - Math.floor(before / 100) + Math.floor(before / 400) - 477;
    const dayOfYear = (DAYS_BEFORE_MONTH[month - 1] as number) + day - 1 + (leap && month > 2 ? 1 : 0);
    this.#date = date;
    this.#days = (year - 1970) * 365 + leapDays + dayOfYear;
    return this.#days;
  }

  /** Seconds east of UTC of the offset that must end at `end`; 0 when there is none. */
  #readOffset(source: Uint8Array, at: number, end: number): number {
    const sign = source[at];
    if (sign === UPPER_Z || sign === LOWER_Z) return at + 1 === end ? 0 : NOT_A_DATE;
    if (at === end) return 0;
    if ((sign !== PLUS && sign !== DASH) || at + 6 !== end || source[at + 3] !== COLON) return NOT_A_DATE;
    const hours = twoDigits(source, at + 1);
    const minutes = twoDigits(source, at + 4);
    if (hours < 0 || minutes < 0 || hours > 23 || minutes > 59) return NOT_A_DATE;
    return (hours * 3600 + minutes * 60) * (sign === DASH ? -1 : 1);
  }
}

/** Two decimal digits; negative (and far so) when one of the bytes is no digit. */
function twoDigits(source: Uint8Array, at: number): number {
  const tens = (source[at] as number) - ZERO;
  const ones = (source[at + 1] as number) - ZERO;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : -1_000_000;
}

function daysInMonth(month: number, leap: boolean): number {
  if (month === 2) return leap ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}
