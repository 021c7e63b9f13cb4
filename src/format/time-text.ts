import { epochToNs, inInt64 } from "./decimal.ts";

/**
 * Times written as text. RFC 3339, with what its section 5.6 leaves open decided as generously as is unambiguous: `t`,
 * `z` and a space are taken for `T` and `Z`; any offset up to ±23:59; any number of fraction digits, of which nine
 * count; a leap second (`:60`, in any minute) is the second after `:59`.
 */
const RFC_3339 = /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?([Zz]|([+-])(\d{2}):(\d{2}))?)?$/;
/** Groups of `RFC_3339`: present when the text has a time of day, and an offset. */
const HOUR = 4;
const ZONE = 8;
/** A JSON number (RFC 8259 §6). */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

const NS_PER_MS = 1_000_000n;
const MS_PER_MINUTE = 60_000;
const MS_PER_DAY = 86_400_000;

/**
 * Nanoseconds since the epoch of a time with an offset, as parameters of the API have it; undefined for any other text,
 * and outside the years 1677 to 2262.
 */
export function rfc3339ToNs(text: string): bigint | undefined {
  const match = RFC_3339.exec(text);
  return match?.[ZONE] === undefined ? undefined : matchToNs(match);
}

/** The time in UTC, with nine digits of fraction. */
export function nsToRfc3339(ns: bigint): string {
  const intoMs = ((ns % NS_PER_MS) + NS_PER_MS) % NS_PER_MS;
  const ms = new Date(Number((ns - intoMs) / NS_PER_MS)).toISOString();
  return `${ms.slice(0, -1)}${String(intoMs).padStart(6, "0")}Z`;
}

/** RFC 3339 in UTC, as a column of times gives it back: without an offset that would be lost, or digits beyond nine. */
const UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:[0-5]\d(?:\.\d{1,9})?Z$/;

/** Nanoseconds since the epoch of a time in that form; undefined for any other text, and outside the years 1677 to 2262. */
export function utcTextToNs(text: string): bigint | undefined {
  return UTC.test(text) ? rfc3339ToNs(text) : undefined;
}

/**
 * The same for a time in data, where more is taken. Without an offset it is UTC, as DuckDB reads a TIMESTAMP and as log
 * producers mean it; a date alone is its midnight. Text that is a JSON number is read as that number would be, its unit
 * told by magnitude (`epochToNs`): also `"20260102"`, so that quotes never change what a number means.
 *
 * Still refused, for a guess would be silently wrong: white space around it, `24:00`, a time without seconds, an offset
 * of a date alone, names of months or zones.
 */
export function timeTextToNs(text: string): bigint | undefined {
  const match = RFC_3339.exec(text);
  if (match !== null) return matchToNs(match);
  return NUMBER.test(text) ? epochToNs(text) : undefined;
}

function matchToNs(match: RegExpExecArray): bigint | undefined {
  const part = (index: number) => Number(match[index] ?? 0);
  const [year, month, day, hour, minute, second] = [part(1), part(2), part(3), part(HOUR), part(5), part(6)];
  const offsetMinutes = (part(10) * 60 + part(11)) * (match[9] === "-" ? -1 : 1);
  if (day < 1 || day > daysInMonth(year, month) || hour > 23 || minute > 59 || second > 60) return undefined;
  if (part(10) > 23 || part(11) > 59) return undefined;
  const ms =
    daysSinceEpoch(year, month, day) * MS_PER_DAY +
    (hour * 60 + minute - offsetMinutes) * MS_PER_MINUTE +
    second * 1_000;
  const fractionNs = BigInt((match[7] ?? "").slice(0, 9).padEnd(9, "0"));
  return inInt64(BigInt(ms) * NS_PER_MS + fractionNs);
}

/** Zero for a month that does not exist. */
function daysInMonth(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  if (month < 1 || month > 12) return 0;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/**
 * Days from 1970-01-01 in the proleptic Gregorian calendar: years begin in March, so that the leap day is the last
 * (Howard Hinnant, "chrono-compatible low-level date algorithms", days_from_civil).
 */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}
