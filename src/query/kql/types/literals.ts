/** What literals mean. The library's own values are not used: it reads hexadecimal, `nan` and times wrongly. */

export const TICKS = {
  tick: 1n,
  microsecond: 10n,
  millisecond: 10_000n,
  second: 10_000_000n,
  minute: 600_000_000n,
  hour: 36_000_000_000n,
  day: 864_000_000_000n,
} as const;

const UNITS: ReadonlyMap<string, bigint> = new Map([
  ...(["d", "day", "days"] as const).map((unit): [string, bigint] => [unit, TICKS.day]),
  ...(["h", "hr", "hrs", "hour", "hours"] as const).map((unit): [string, bigint] => [unit, TICKS.hour]),
  ...(["m", "min", "minute", "minutes"] as const).map((unit): [string, bigint] => [unit, TICKS.minute]),
  ...(["s", "sec", "second", "seconds"] as const).map((unit): [string, bigint] => [unit, TICKS.second]),
  ...(["ms", "milli", "millis", "millisec", "millisecond", "milliseconds"] as const).map((unit): [string, bigint] => [
    unit,
    TICKS.millisecond,
  ]),
  ...(["microsecond", "microseconds", "micro", "micros", "microsec"] as const).map((unit): [string, bigint] => [
    unit,
    TICKS.microsecond,
  ]),
  ...(["nano", "nanos", "nanosec", "nanosecond", "nanoseconds"] as const).map((unit): [string, bigint] => [unit, 0n]),
  ...(["tick", "ticks"] as const).map((unit): [string, bigint] => [unit, TICKS.tick]),
]);

/** What stands in the parentheses of `long(…)`, without quotes; the text itself where there are none. */
export function insideOf(text: string): string {
  const open = text.indexOf("(");
  const inner = open === -1 ? text : text.slice(open + 1, text.lastIndexOf(")")).trim();
  return /^(["']).*\1$/s.test(inner) ? inner.slice(1, -1) : inner;
}

/** One more than the greatest: of the least it is the amount. */
const REACH = { int: 2n ** 31n, long: 2n ** 63n } as const;

/** Undefined where the text is no whole number, `out` where it is beyond what the type reaches, with its minus sign. */
export function integerOf(text: string, type: "int" | "long", isNegated: boolean): bigint | null | "out" | undefined {
  const inner = insideOf(text);
  if (inner === "null") return null;
  const found = /^([+-]?)(\d+|0x[\da-f]+)$/i.exec(inner);
  if (found === null) return undefined;
  const value = found[1] === "-" ? -BigInt(found[2] ?? "") : BigInt(found[2] ?? "");
  return value > REACH[type] - (isNegated ? 0n : 1n) || value < -REACH[type] ? "out" : value;
}

/** Undefined where the text is no number. */
export function realOf(text: string): number | null | undefined {
  const inner = insideOf(text).toLowerCase();
  if (inner === "null") return null;
  if (inner === "nan") return NaN;
  if (inner === "+inf" || inner === "inf") return Infinity;
  if (inner === "-inf") return -Infinity;
  const value = Number(inner);
  return inner === "" || Number.isNaN(value) ? undefined : value;
}

/** `1.5`, `-1e5`: as it is written; undefined where the text is no number, or has more than 38 digits in all. */
export function decimalOf(text: string): string | null | undefined {
  const inner = insideOf(text);
  if (inner === "null") return null;
  const found = /^[+-]?(\d+)(?:\.\d+)?(?:e([+-]?\d{1,3}))?$/i.exec(inner);
  // 17 of them stand behind the point.
  return found === null || (found[1] ?? "").length + Number(found[2] ?? 0) > 21 ? undefined : inner;
}

/** With or without hyphens and braces; undefined where the text is no guid. */
export function guidOf(text: string): string | null | undefined {
  const inner = insideOf(text).toLowerCase();
  if (inner === "null") return null;
  const found = /^([{(]?)([\da-f]{8})(-?)([\da-f]{4})\3([\da-f]{4})\3([\da-f]{4})\3([\da-f]{12})[)}]?$/.exec(inner);
  return found === null ? undefined : [2, 4, 5, 6, 7].map((i) => found[i]).join("-");
}

/** Ticks of 100 ns; undefined where the text is no timespan, `out` where they are more than 64 bits hold. */
export function timespanOf(text: string): bigint | null | "out" | undefined {
  const ticks = ticksOf(text);
  return typeof ticks === "bigint" && BigInt.asIntN(64, ticks) !== ticks ? "out" : ticks;
}

function ticksOf(text: string): bigint | null | undefined {
  const inner = insideOf(text).trim().toLowerCase();
  if (inner === "null") return null;
  const simple = /^([+-]?)(\d+(?:\.\d+)?|\.\d+)\s*([a-z]+)$/.exec(inner);
  if (simple !== null) {
    const [, sign = "", amount = "", unit = ""] = simple;
    const ticks = UNITS.get(unit);
    if (ticks === undefined) return undefined;
    const value = ticks === 0n ? decimalTimes(amount, 1n) / 100n : decimalTimes(amount, ticks);
    return sign === "-" ? -value : value;
  }
  const clock = /^([+-]?)(?:(\d+)\.)?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,7}))?)?$/.exec(inner);
  if (clock === null) {
    const days = /^([+-]?)(\d+)$/.exec(inner);
    return days === null ? undefined : BigInt(`${days[1] === "-" ? "-" : ""}${days[2] ?? "0"}`) * TICKS.day;
  }
  const [, sign, days = "0", hours = "0", minutes = "0", seconds = "0", fraction = ""] = clock;
  if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return undefined;
  const ticks =
    BigInt(days) * TICKS.day +
    BigInt(hours) * TICKS.hour +
    BigInt(minutes) * TICKS.minute +
    BigInt(seconds) * TICKS.second +
    BigInt(fraction.padEnd(7, "0"));
  return sign === "-" ? -ticks : ticks;
}

/** `1.5` times that many, cut off. */
function decimalTimes(amount: string, by: bigint): bigint {
  const [whole = "0", fraction = ""] = amount.split(".");
  const scale = 10n ** BigInt(fraction.length);
  return (BigInt(`${whole === "" ? "0" : whole}${fraction}`) * by) / scale;
}

/** What DuckDB can write of what nanoseconds reach. */
export const MIN_NS = -9_223_286_400_000_000_000n;
export const MAX_NS = 9_223_372_036_854_775_806n;

/** Nanoseconds since 1970; undefined where the text is no datetime, `out` where it is beyond what nanoseconds reach. */
export function datetimeOf(text: string): bigint | null | "out" | undefined {
  const inner = insideOf(text).trim();
  if (inner === "null") return null;
  const fields = fieldsOf(inner);
  return fields === undefined ? undefined : momentOf(fields);
}

type Fields = { year: number; month: number; day: number; clock: string; zone: string };

const CLOCK = String.raw`(\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d{1,9})?)?)?`;
const ZONE = String.raw`\s*(Z|GMT|UTC|[+-]\d{2}:?\d{2})?$`;
const ISO = new RegExp(String.raw`^(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ]\s*${CLOCK})?${ZONE}`, "i");
/** `datetime(2025, 6, 14)`. */
const LISTED = /^(\d{4})\s*,\s*(\d{1,2})\s*,\s*(\d{1,2})()()$/;
/** RFC 822 and RFC 850: `Sat, 8 Nov 14 15:05:02 GMT`, `Saturday, 08-Nov-14 15:05`. */
const RFC = new RegExp(
  String.raw`^(?:[a-z]+,\s*)?(\d{1,2})[ -]([a-z]{3})[ -](\d{2}|\d{4})(?:\s+${CLOCK})?${ZONE}`,
  "i",
);
/** `12-31-2022`, `12/31/2022`. */
const AMERICAN = new RegExp(String.raw`^(\d{1,2})[-/](\d{1,2})[-/](\d{4})(?:[T ]\s*${CLOCK})?${ZONE}`, "i");
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

function fieldsOf(text: string): Fields | undefined {
  const iso = ISO.exec(text) ?? LISTED.exec(text);
  if (iso !== null) return { year: Number(iso[1]), month: Number(iso[2]), day: Number(iso[3]), ...timeOf(iso) };
  const rfc = RFC.exec(text);
  if (rfc !== null) {
    const year = Number(rfc[3]);
    const month = MONTHS.indexOf(String(rfc[2]).toLowerCase()) + 1;
    return { year: year < 100 ? year + (year < 69 ? 2000 : 1900) : year, month, day: Number(rfc[1]), ...timeOf(rfc) };
  }
  const american = AMERICAN.exec(text);
  if (american === null) return undefined;
  const [, month, day, year] = american;
  return { year: Number(year), month: Number(month), day: Number(day), ...timeOf(american) };
}

function timeOf(found: RegExpExecArray): { clock: string; zone: string } {
  return { clock: found[4] === undefined || found[4] === "" ? "0:0" : found[4], zone: found[5] ?? "" };
}

function momentOf({ year, month, day, clock, zone }: Fields): bigint | "out" | undefined {
  const [hours = "0", minutes = "0", rest = "0"] = clock.split(":");
  const [seconds = "0", fraction = ""] = rest.split(".");
  const date = new Date(Date.UTC(year, month - 1, day, Number(hours), Number(minutes), Number(seconds)));
  if (year < 100) date.setUTCFullYear(year);
  if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return undefined;
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  // Seven digits count.
  const ns = BigInt(date.getTime()) * 1_000_000n + BigInt(fraction.slice(0, 7).padEnd(9, "0")) - zoneNs(zone);
  return ns < MIN_NS || ns > MAX_NS ? "out" : ns;
}

function zoneNs(zone: string): bigint {
  if (!/^[+-]/.test(zone)) return 0n;
  const digits = zone.slice(1).replace(":", "");
  const minutes = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2));
  return BigInt(zone.startsWith("-") ? -minutes : minutes) * 60_000_000_000n;
}

/** A datetime as it is written in arrays and bags: with seven digits of the second. */
export function datetimeText(ns: bigint): string {
  const inSecond = ((ns % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  const seconds = new Date(Number((ns - inSecond) / 1_000_000n)).toISOString().slice(0, 19);
  return `${seconds}.${String(inSecond / 100n).padStart(7, "0")}Z`;
}

/** A timespan as it is written: `[-][d.]hh:mm:ss[.fffffff]`. */
export function timespanText(ticks: bigint): string {
  const all = ticks < 0n ? -ticks : ticks;
  const days = all / TICKS.day;
  const clock = [
    (all % TICKS.day) / TICKS.hour,
    (all % TICKS.hour) / TICKS.minute,
    (all % TICKS.minute) / TICKS.second,
  ].map((one) => String(one).padStart(2, "0"));
  const fraction = all % TICKS.second;
  const tail = fraction === 0n ? "" : `.${String(fraction).padStart(7, "0")}`;
  return `${ticks < 0n ? "-" : ""}${days === 0n ? "" : `${days}.`}${clock.join(":")}${tail}`;
}

/** Undefined where the text is none. */
export function boolOf(text: string): boolean | null | undefined {
  const inner = insideOf(text).toLowerCase();
  if (inner === "null") return null;
  return BOOLS.get(inner);
}

const BOOLS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["false", false],
  ["0", false],
]);
