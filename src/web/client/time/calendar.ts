/** Calendar arithmetic of the expressions for times, in UTC or in the browser's zone. */

/** The zone in which times are shown and typed, and in which days begin. */
export type Zone = "utc" | "browser";

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** What is added to the zone's time to make it UTC, at that moment. */
export function offsetMs(ms: number, zone: Zone): number {
  return zone === "utc" ? 0 : new Date(ms).getTimezoneOffset() * 60_000;
}

/** Whether the calendar has the day, as `2026-02-28`: `Date.parse` reads 2026-02-30 as a day of March. */
export function isDay(text: string): boolean {
  const ms = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

/** A moment so many units later: `unit` is one of s, m, h, d, w, M and y. */
export function stepped(ms: number, count: number, unit: string, zone: Zone): number {
  if (unit === "s" || unit === "m" || unit === "h") return ms + count * UNIT_MS[unit];
  // Days, weeks, months and years are those of the calendar: a day has 23 hours when clocks go forward.
  const { year, month, day, restMs } = calendarOf(ms, zone);
  if (unit === "d" || unit === "w") return dayOf(year, month, day + count * (unit === "w" ? 7 : 1), zone) + restMs;
  const months = month + count * (unit === "y" ? 12 : 1);
  // A month before 31 March is the last day of February.
  const last = new Date(dayOf(year, months + 1, 0, "utc")).getUTCDate();
  return dayOf(year, months, Math.min(day, last), zone) + restMs;
}

/** When the minute, hour, day, week, month or year of a moment began. */
export function beginningOf(ms: number, unit: string, zone: Zone): number {
  const { year, month, day } = calendarOf(ms, zone);
  if (unit === "y") return dayOf(year, 0, 1, zone);
  if (unit === "M") return dayOf(year, month, 1, zone);
  if (unit === "d") return dayOf(year, month, day, zone);
  if (unit === "w") {
    const sinceMonday = (new Date(dayOf(year, month, day, "utc")).getUTCDay() + 6) % 7;
    return dayOf(year, month, day - sinceMonday, zone);
  }
  const size = unit === "h" ? UNIT_MS.h : UNIT_MS.m;
  const shift = offsetMs(ms, zone);
  return Math.floor((ms - shift) / size) * size + shift;
}

function calendarOf(ms: number, zone: Zone): { year: number; month: number; day: number; restMs: number } {
  const date = new Date(ms);
  const [year, month, day] =
    zone === "utc"
      ? [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
      : [date.getFullYear(), date.getMonth(), date.getDate()];
  return { year, month, day, restMs: ms - dayOf(year, month, day, zone) };
}

function dayOf(year: number, month: number, day: number, zone: Zone): number {
  // Given to the constructor, the years 0 to 99 would be those of the twentieth century.
  return zone === "utc"
    ? new Date(0).setUTCFullYear(year, month, day)
    : new Date(2000, 0).setFullYear(year, month, day);
}
