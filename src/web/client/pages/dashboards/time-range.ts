import { beginningOf, isDay, stepped } from "../../time/calendar.ts";

/**
 * Time ranges of dashboards: `now`, `now-6h`, `now-1d/d` and RFC 3339. Everything is UTC, as the server's times are, so an
 * address shows the same range to everybody who opens it.
 */
export type TimeRange = { from: string; to: string };

/** A range at one moment. The texts go to queries; those of an absolute range keep all their digits. */
export type Bounds = { fromMs: number; toMs: number; from: string; to: string };

export const USUAL_RANGE: TimeRange = { from: "now-6h", to: "now" };

export const QUICK_RANGES: readonly TimeRange[] = [
  ...["5m", "15m", "30m", "1h", "3h", "6h", "12h", "24h", "2d", "7d", "30d", "90d"].map((span) => ({
    from: `now-${span}`,
    to: "now",
  })),
  { from: "now/d", to: "now/d" },
  { from: "now-1d/d", to: "now-1d/d" },
  { from: "now/w", to: "now/w" },
  { from: "now/M", to: "now/M" },
];

export const REFRESH_SECS = [5, 10, 30, 60, 300, 900, 3_600] as const;

const RELATIVE = /^now(?:([+-])([1-9]\d{0,8})([smhdwMy]))?(?:\/([mhdwMy]))?$/;
const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/;
/** What dates of JavaScript and of queries have in common: the years 1 to 9999. */
const [LEAST_MS, MOST_MS] = [Date.parse("0001-01-01T00:00:00Z"), Date.parse("9999-12-31T23:59:59Z")];

export function isRelative(text: string): boolean {
  return RELATIVE.test(text);
}

/**
 * The moment that an end of a range stands for, as milliseconds. `/d` is the start of the day at the beginning of a range,
 * and the end of the day at its end. Undefined for what is no time.
 */
export function momentOf(text: string, nowMs: number, end: "from" | "to"): number | undefined {
  const relative = RELATIVE.exec(text);
  if (relative === null) {
    const ms = RFC_3339.test(text) && isDay(text.slice(0, 10)) ? Date.parse(text.replace(" ", "T")) : Number.NaN;
    return inBounds(ms);
  }
  const [, sign, count, unit, rounded] = relative;
  let ms = nowMs;
  if (count !== undefined && unit !== undefined) ms = stepped(ms, (sign === "-" ? -1 : 1) * Number(count), unit, "utc");
  if (rounded !== undefined) {
    const start = beginningOf(ms, rounded, "utc");
    ms = end === "from" ? start : stepped(start, 1, rounded, "utc") - 1;
  }
  return inBounds(ms);
}

function inBounds(ms: number): number | undefined {
  return ms >= LEAST_MS && ms <= MOST_MS ? ms : undefined;
}

/** Undefined where an end is no time, or the range is empty. */
export function boundsOf({ from, to }: TimeRange, nowMs: number): Bounds | undefined {
  const [fromMs, toMs] = [momentOf(from, nowMs, "from"), momentOf(to, nowMs, "to")];
  if (fromMs === undefined || toMs === undefined || fromMs >= toMs) return undefined;
  return { fromMs, toMs, from: sentText(from, fromMs), to: sentText(to, toMs) };
}

function sentText(written: string, ms: number): string {
  return isRelative(written) ? new Date(ms).toISOString() : written;
}

/** What is wrong with a range that somebody types; undefined for a good one. */
export function problemOf({ from, to }: TimeRange, nowMs: number): { from?: string; to?: string } | undefined {
  const wrong = "Write a time like now-6h, now-1d/d or 2026-05-01T12:00:00Z.";
  const [start, end] = [momentOf(from, nowMs, "from"), momentOf(to, nowMs, "to")];
  if (start === undefined || end === undefined) {
    return { ...(start === undefined && { from: wrong }), ...(end === undefined && { to: wrong }) };
  }
  return start < end ? undefined : { to: "The end must be after the start." };
}

/** What somebody typed as the API takes it: a date is its first moment, and a time without a zone is UTC. */
export function writtenMoment(typed: string): string {
  const text = typed.trim();
  if (isRelative(text)) return text;
  const parts = /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(:\d\d(?:\.\d{1,9})?)?)?([Zz]|[+-]\d\d:\d\d)?$/.exec(text);
  if (parts === null) return text;
  const [, date = "", time = "00:00", seconds = ":00", zone = "Z"] = parts;
  return `${date}T${time}${seconds}${zone.toUpperCase()}`;
}

const UNIT_NAMES: Readonly<Record<string, string>> = {
  s: "second",
  m: "minute",
  h: "hour",
  d: "day",
  w: "week",
  M: "month",
  y: "year",
};

/** `Last 6 hours`, `Today`, or the two ends. */
export function rangeInWords({ from, to }: TimeRange): string {
  const [, sign, count, unit, rounded] = RELATIVE.exec(from) ?? [];
  if (to === "now" && sign === "-" && rounded === undefined && unit !== undefined) {
    return `Last ${count === "1" ? "" : `${count} `}${UNIT_NAMES[unit]}${count === "1" ? "" : "s"}`;
  }
  if (from === to && rounded !== undefined) {
    const isBefore = sign === "-" && count === "1" && unit === rounded;
    if (rounded === "d" && (count === undefined || isBefore)) return isBefore ? "Yesterday" : "Today";
    if (count === undefined || isBefore) return `${isBefore ? "Last" : "This"} ${UNIT_NAMES[rounded]}`;
  }
  return `${endInWords(from)} to ${endInWords(to)}`;
}

function endInWords(text: string): string {
  if (isRelative(text)) return text;
  const ms = momentOf(text, 0, "from");
  if (ms === undefined) return text;
  return new Date(ms)
    .toISOString()
    .replace("T", " ")
    .replace(/:00\.000Z$|\.000Z$|Z$/, " UTC");
}
