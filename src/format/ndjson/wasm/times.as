/** Times in the forms that `../time-bytes.ts` reads, as nanoseconds since the epoch. */

import { digitCount, eightDigits, exponent, hasPower, noDigits, readNumber, value } from "./numbers";

const SECONDS_PER_DAY: i64 = 86400;
const NS_PER_SECOND: i64 = 1000000000;
/** Within the 64-bit range whatever the nanoseconds. */
const MAX_SECONDS: i64 = 9223372035;
/** Most digits of an epoch; see `readEpoch` there. */
const EPOCH_DIGITS: i32 = 15;
const DAYS_BEFORE_MONTH = memory.data<u16>([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334]);
const DAYS_OF_MONTH = memory.data<u8>([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]);
/** From 10^9 down: what a fraction of so many digits is multiplied with. */
const NS_OF_PLACES = memory.data<u64>([1000000000, 100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10, 1]);

/** The time last read. */
export let time: i64 = 0;
/** Whether it was a string of RFC 3339 in UTC. */
export let isUtc: bool = false;

/**
 * The date of the last time read, as its bytes, and its days since the epoch: neighbours mostly share it. First it is
 * `1970-01-01`: whatever stands here must be a date, for bytes that are the same are not looked at.
 */
let dateHead: u64 = 0x2d31302d30373931;
let dateTail: u32 = 0x3130;
let days: i64 = 0;

/** Reads a time: a string in a usual form, or a number, in quotes or not. Position after it, 0 when it is none. */
export function readTime(start: usize): usize {
  isUtc = false;
  if (load<u8>(start) != 0x22) {
    const end = readNumber(start);
    return end != 0 && readEpoch(load<u8>(start) == 0x2d) ? end : 0;
  }
  const first = start + 1;
  const head = load<u64>(first);
  const tail = <u32>load<u16>(first, 8);
  if (head != dateHead || tail != dateTail) {
    if (!readDate(first)) {
      const end = readNumber(first);
      return end != 0 && load<u8>(end) == 0x22 && readEpoch(load<u8>(first) == 0x2d) ? end + 1 : 0;
    }
    dateHead = head;
    dateTail = tail;
  }
  const separator = <u32>load<u8>(first, 10);
  if (separator == 0x22) {
    time = days * SECONDS_PER_DAY * NS_PER_SECOND;
    return first + 11;
  }
  if ((separator | 0x20) != 0x74 && separator != 0x20) return 0;
  // `HH:MM:SS` less its zeroes and colons: each digit must be at most nine, each colon nothing.
  const t = load<u64>(first, 11) ^ 0x30303a30303a3030;
  if ((((t + 0x76767f76767f7676) | t) & 0x8080808080808080) != 0) return 0;
  const pairs = t * 10 + (t >> 8);
  const hour = <u32>pairs & 0xff;
  const minute = <u32>(pairs >> 24) & 0xff;
  const second = <u32>(pairs >> 48) & 0xff;
  // Leap seconds are rare enough for the slow way.
  if (hour > 23 || minute > 59 || second > 59) return 0;
  let at = first + 19;
  let nanos: i64 = 0;
  let byte = <u32>load<u8>(at);
  if (byte == 0x2e) {
    at++;
    const digits = load<u64>(at) ^ 0x3030303030303030;
    const others = noDigits(digits);
    let count: usize = 8;
    let fraction: u64 = 0;
    if (others != 0) {
      count = <usize>ctz(others) >> 3;
      if (count == 0) return 0;
      fraction = eightDigits(digits << (64 - (count << 3)));
    } else {
      fraction = eightDigits(digits);
      const ninth = <u32>load<u8>(at, 8) - 0x30;
      if (ninth <= 9) {
        fraction = fraction * 10 + ninth;
        count = 9;
      }
    }
    at += count;
    nanos = <i64>(fraction * load<u64>(NS_OF_PLACES + (count << 3)));
    byte = <u32>load<u8>(at);
  }
  let offset: i64 = 0;
  if ((byte | 0x20) == 0x7a) {
    isUtc = byte == 0x5a && separator == 0x54;
    at++;
  } else if (byte == 0x2b || byte == 0x2d) {
    const hours = twoDigits(at + 1);
    const minutes = twoDigits(at + 4);
    if (load<u8>(at, 3) != 0x3a || hours > 23 || minutes > 59) return 0;
    offset = <i64>(hours * 3600 + minutes * 60);
    if (byte == 0x2d) offset = -offset;
    at += 6;
  }
  if (load<u8>(at) != 0x22) return 0;
  time = (days * SECONDS_PER_DAY + <i64>(hour * 3600 + minute * 60 + second) - offset) * NS_PER_SECOND + nanos;
  return at + 1;
}

/** Sets `days` by the date at `at`; false, and nothing changed, when it is none. */
function readDate(at: usize): bool {
  if (load<u8>(at, 4) != 0x2d || load<u8>(at, 7) != 0x2d) return false;
  const century = twoDigits(at);
  const yearOfCentury = twoDigits(at + 2);
  const month = twoDigits(at + 5);
  const day = twoDigits(at + 8);
  if (century > 99 || yearOfCentury > 99 || month < 1 || month > 12 || day < 1) return false;
  const year = century * 100 + yearOfCentury;
  // Years whose every instant, whatever its offset, is within the 64-bit range.
  if (year < 1678 || year > 2261) return false;
  const isLeap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  const daysOfMonth: u32 = month == 2 && isLeap ? 29 : <u32>load<u8>(DAYS_OF_MONTH + <usize>(month - 1));
  if (day > daysOfMonth) return false;
  const before = year - 1;
  const leapDays = <i64>(before / 4 - before / 100 + before / 400) - 477;
  const dayOfYear = <u32>load<u16>(DAYS_BEFORE_MONTH + (<usize>(month - 1) << 1)) + day - 1 + <u32>(isLeap && month > 2);
  days = (<i64>year - 1970) * 365 + leapDays + <i64>dayOfYear;
  return true;
}

/** Two decimal digits; more than 99 when one of the bytes is no digit. */
@inline
function twoDigits(at: usize): u32 {
  const tens = <u32>load<u8>(at) - 0x30;
  const ones = <u32>load<u8>(at, 1) - 0x30;
  return tens <= 9 && ones <= 9 ? tens * 10 + ones : 1000;
}

/** The number last read as seconds, milliseconds, microseconds or nanoseconds by its magnitude; false: for the slow way. */
function readEpoch(isNegative: bool): bool {
  if (digitCount > EPOCH_DIGITS || hasPower || exponent < -9) return false;
  let scale: i64 = 1;
  for (let i = exponent; i < 0; i++) scale *= 10;
  const digits = <i64>value;
  const whole = digits / scale;
  const unit: i64 = whole < 100000000000 ? 1 : whole < 100000000000000 ? 1000 : 1000000;
  // Fractions of anything but seconds are rare.
  if (unit != 1 && exponent != 0) return false;
  const seconds = whole / unit;
  if (seconds > MAX_SECONDS) return false;
  const nanos =
    exponent == 0 ? (whole - seconds * unit) * (NS_PER_SECOND / unit) : (digits - whole * scale) * (NS_PER_SECOND / scale);
  const total = seconds * NS_PER_SECOND + nanos;
  time = isNegative ? -total : total;
  return true;
}
