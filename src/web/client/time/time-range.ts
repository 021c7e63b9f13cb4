import { beginningOf, isDay, offsetMs, stepped, type Zone } from "./calendar.ts";

/**
 * A range of time as an address has it: two expressions, each a moment (`2026-01-02T03:04:05Z`) or relative to the present
 * (`now-15m`, `now-1d/d`: a day ago, back to when that day began). Pages turn it into moments when they ask the server.
 */
export type TimeRange = { from: string; to: string };

/** Milliseconds since 1970; `toMs` is not part of it. */
export type Moments = { fromMs: number; toMs: number };

export const DEFAULT_RANGE: TimeRange = { from: "now-1h", to: "now" };

export const USUAL_RANGES: readonly (TimeRange & { title: string })[] = [
  { title: "Last 5 minutes", from: "now-5m", to: "now" },
  { title: "Last 15 minutes", from: "now-15m", to: "now" },
  { title: "Last hour", from: "now-1h", to: "now" },
  { title: "Last 6 hours", from: "now-6h", to: "now" },
  { title: "Last 24 hours", from: "now-24h", to: "now" },
  { title: "Last 2 days", from: "now-2d", to: "now" },
  { title: "Last 7 days", from: "now-7d", to: "now" },
  { title: "Last 30 days", from: "now-30d", to: "now" },
  { title: "Last 90 days", from: "now-90d", to: "now" },
  { title: "Last year", from: "now-1y", to: "now" },
  { title: "Today", from: "now/d", to: "now" },
  { title: "Yesterday", from: "now-1d/d", to: "now/d" },
];

const RELATIVE = /^now((?:[+-]\d{1,6}[smhdwMy])*)(?:\/([mhdwMy]))?$/;
const MOMENT = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)?(?:Z|[+-]\d\d:\d\d)?$/;

/** What a timestamp of 64 bits of nanoseconds can hold. */
const LEAST_MS = Date.UTC(1677, 8, 22);
const GREATEST_MS = Date.UTC(2262, 3, 11);

/** The moment that an expression stands for; undefined for what is none. One without an offset is in the zone. */
export function momentOf(expression: string, nowMs: number, zone: Zone): number | undefined {
  const text = expression.trim();
  const relative = RELATIVE.exec(text);
  const ms = relative === null ? absolute(text, zone) : relativeMs(relative[1] ?? "", relative[2], nowMs, zone);
  return ms !== undefined && ms >= LEAST_MS && ms <= GREATEST_MS ? ms : undefined;
}

/** Undefined where an end cannot be read, or the range would be empty. */
export function momentsOf({ from, to }: TimeRange, nowMs: number, zone: Zone): Moments | undefined {
  const [fromMs, toMs] = [momentOf(from, nowMs, zone), momentOf(to, nowMs, zone)];
  return fromMs !== undefined && toMs !== undefined && fromMs < toMs ? { fromMs, toMs } : undefined;
}

export function isRelative({ from, to }: TimeRange): boolean {
  return from.trim().startsWith("now") || to.trim().startsWith("now");
}

export function rangeOf({ fromMs, toMs }: Moments): TimeRange {
  return { from: new Date(Math.floor(fromMs)).toISOString(), to: new Date(Math.ceil(toMs)).toISOString() };
}

/** The range before it or after it, by half of its length. */
export function moved({ fromMs, toMs }: Moments, direction: -1 | 1): Moments {
  const half = (direction * (toMs - fromMs)) / 2;
  return bounded({ fromMs: fromMs + half, toMs: toMs + half });
}

/** Twice as long, around the same middle. */
export function widened({ fromMs, toMs }: Moments): Moments {
  const half = Math.max((toMs - fromMs) / 2, 1);
  return bounded({ fromMs: fromMs - half, toMs: toMs + half });
}

function bounded({ fromMs, toMs }: Moments): Moments {
  return { fromMs: Math.max(fromMs, LEAST_MS), toMs: Math.min(toMs, GREATEST_MS) };
}

/** As a person says it: `Last hour`, `now-3h to now`, or both moments. */
export function rangeTitle(range: TimeRange, zone: Zone): string {
  const usual = USUAL_RANGES.find(({ from, to }) => from === range.from && to === range.to);
  if (usual !== undefined) return usual.title;
  const said = (text: string) => {
    const ms = text.startsWith("now") ? undefined : momentOf(text, 0, zone);
    return ms === undefined ? text : formatMoment(ms, zone);
  };
  return `${said(range.from)} to ${said(range.to)}`;
}

/** `2026-01-02 03:04:05`, with milliseconds where there are some. */
export function formatMoment(ms: number, zone: Zone): string {
  const text = new Date(ms - offsetMs(ms, zone)).toISOString();
  return text.replace("T", " ").replace(/(?:\.000)?Z$/, "");
}

/** When something was done, to the second, where this browser is. */
export function formatWhen(at: string): string {
  const ms = Date.parse(at);
  return Number.isNaN(ms) ? at : formatMoment(Math.floor(ms / 1_000) * 1_000, "browser");
}

/** The zone's name, for people. */
export function zoneTitle(zone: Zone): string {
  return zone === "utc" ? "UTC" : `This browser's (${Intl.DateTimeFormat().resolvedOptions().timeZone})`;
}

/** The exact time of a row (up to nine digits, UTC) in the zone: what is below a millisecond is the same in all of them. */
export function formatTimestamp(text: string, zone: Zone): string {
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) return text;
  const fraction = /\.(\d+)/.exec(text)?.[1] ?? "";
  const whole = formatMoment(Math.floor(ms / 1_000) * 1_000, zone);
  return `${whole}.${fraction.padEnd(3, "0")}`;
}

function absolute(text: string, zone: Zone): number | undefined {
  if (!MOMENT.test(text)) return undefined;
  const hasOffset = /(?:Z|[+-]\d\d:\d\d)$/.test(text) && text.length > 10;
  const day = text.slice(0, 10);
  const time = text.length > 10 ? text.slice(11) : "00:00";
  // Of a date alone the language says UTC, of a date and a time the zone of the browser.
  const ms = Date.parse(`${day}T${time}${hasOffset || zone === "browser" ? "" : "Z"}`);
  return Number.isNaN(ms) || !isDay(day) ? undefined : ms;
}

function relativeMs(steps: string, rounding: string | undefined, nowMs: number, zone: Zone): number | undefined {
  let ms = nowMs;
  for (const [, sign, count, unit] of steps.matchAll(/([+-])(\d+)([smhdwMy])/g)) {
    ms = stepped(ms, Number(count) * (sign === "-" ? -1 : 1), unit ?? "s", zone);
  }
  if (Number.isNaN(ms)) return undefined;
  return rounding === undefined ? ms : beginningOf(ms, rounding, zone);
}
