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

const MIN_NS = -9_223_286_400_000_000_000n;
const MAX_NS = 9_223_372_036_854_775_806n;

/** Nanoseconds since 1970; undefined where the text is no datetime, `out` where it is beyond what nanoseconds reach. */
export function datetimeOf(text: string): bigint | null | "out" | undefined {
  const inner = insideOf(text).trim();
  if (inner === "null") return null;
  const found =
    /^(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ]\s*(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?\s*(Z|[+-]\d{2}:?\d{2})?$/i.exec(
      inner,
    );
  if (found === null) return undefined;
  const [, year, month, day, hours = "0", minutes = "0", seconds = "0", fraction = "", zone = "Z"] = found;
  const ms = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hours), Number(minutes), Number(seconds));
  const date = new Date(ms);
  if (Number(year) < 100) date.setUTCFullYear(Number(year));
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return undefined;
  if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return undefined;
  // Seven digits count.
  const ns = BigInt(date.getTime()) * 1_000_000n + BigInt(fraction.slice(0, 7).padEnd(9, "0")) - zoneNs(zone);
  return ns < MIN_NS || ns > MAX_NS ? "out" : ns;
}

function zoneNs(zone: string): bigint {
  if (zone.toUpperCase() === "Z") return 0n;
  const digits = zone.slice(1).replace(":", "");
  const minutes = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2));
  return BigInt(zone.startsWith("-") ? -minutes : minutes) * 60_000_000_000n;
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
