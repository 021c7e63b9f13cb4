import { expr, sql, type Expr } from "../plan/expression.ts";
import type { Call } from "../scope.ts";
import { as, fromDynamic, literal, num, str } from "../values/coerce.ts";
import { bin, binAt } from "./bins.ts";
import {
  addPeriods,
  dayOfWeek,
  endOf,
  part,
  partOf,
  PART_NAMES,
  PERIOD_NAMES,
  periodsBetween,
  startOf,
} from "./calendar.ts";
import { formatDatetime, formatTimespan } from "./date-formats.ts";
import { arg, fn, no, type FunctionRule, type FunctionTable } from "./table.ts";

const NS_PER_TICK = 100n;

/** Functions over datetimes and timespans. */
export const DATES: FunctionTable = {
  now: fn((args, { translator }) => moment(translator.request.nowNs, args[0], 1n)),
  ago: fn((args, { translator }) => moment(translator.request.nowNs, arg(args, 0), -1n)),
  bin: fn((args, { type }) => bin(arg(args, 0), arg(args, 1), type)),
  floor: fn((args, { type }) => bin(arg(args, 0), arg(args, 1), type)),
  bin_at: fn((args, { type }) => binAt(arg(args, 0), arg(args, 1), arg(args, 2), type)),

  startofday: startOf("day"),
  startofweek: startOf("week"),
  startofmonth: startOf("month"),
  startofyear: startOf("year"),
  endofday: endOf("day"),
  endofweek: endOf("week"),
  endofmonth: endOf("month"),
  endofyear: endOf("year"),

  dayofweek: fn((args) => dayOfWeek(datetime(args, 0))),
  dayofmonth: part("day"),
  dayofyear: part("dayofyear"),
  monthofyear: part("month"),
  getmonth: part("month"),
  getyear: part("year"),
  hourofday: part("hour"),
  week_of_year: part("week_of_year"),
  weekofyear: no("its weeks are not those of ISO 8601: use week_of_year()"),
  datetime_part: fn((args, call) => partOf(word(call, args, PART_NAMES), datetime(args, 1))),
  datepart: fn((args, call) => partOf(word(call, args, PART_NAMES), datetime(args, 1))),
  datetime_add: fn((args, call) => {
    return addPeriods(word(call, args, PERIOD_NAMES), num(arg(args, 1), "long"), datetime(args, 2));
  }),
  datetime_diff: fn((args, call) => {
    return periodsBetween(word(call, args, PERIOD_NAMES), datetime(args, 1), datetime(args, 2));
  }),

  make_datetime: fn((args) => {
    const parts = [0, 1, 2, 3, 4].map((i) => num(args[i] ?? literal("long", 0n), "long"));
    const seconds = num(args[5] ?? literal("long", 0n), "real");
    return expr("datetime", sql`kql_make_datetime(${[...parts, seconds]})`);
  }),
  make_timespan: fn((args) => {
    const [days, hours, minutes, last] = args.length === 4 ? args : [undefined, ...args];
    const parts = [days, hours, minutes].map((one) => num(one ?? literal("long", 0n), "long"));
    const seconds = num(last ?? literal("long", 0n), "real");
    return expr("timespan", sql`kql_make_timespan(${[...parts, seconds]})`);
  }),
  todatetime: fn((args) => toDatetime(arg(args, 0))),
  totimespan: fn((args) => toTimespan(arg(args, 0))),
  totime: fn((args) => toTimespan(arg(args, 0))),

  format_datetime: fn((args, call) => {
    return known(call, formatDatetime(datetime(args, 0), text(call, args, 1)));
  }),
  format_timespan: fn((args, call) => {
    return known(call, formatTimespan(as(arg(args, 0), "timespan"), text(call, args, 1)));
  }),

  datetime_utc_to_local: fn((args, call) => inZone("kql_to_local", args, call)),
  datetime_local_to_utc: fn((args, call) => inZone("kql_to_utc", args, call)),
  // A sub-query stands by itself, as TRY(…) takes none.
  datetime_list_timezones: fn((_, { translator }) => {
    return translator.once(expr("dynamic", ["kql_zones()"], { nullable: false, isFixed: true }));
  }),

  unixtime_seconds_todatetime: sinceEpoch(1_000_000_000n),
  unixtime_milliseconds_todatetime: sinceEpoch(1_000_000n),
  unixtime_microseconds_todatetime: sinceEpoch(1_000n),
  unixtime_nanoseconds_todatetime: sinceEpoch(1n),
};

function datetime(args: readonly Expr[], i: number): Expr {
  return as(arg(args, i), "datetime");
}

/** `now()` is one moment for the whole query. */
function moment(nowNs: bigint, offset: Expr | undefined, sign: 1n | -1n): Expr {
  const now = literal("datetime", nowNs);
  if (offset === undefined) return now;
  if (typeof offset.constant === "bigint") return literal("datetime", nowNs + sign * offset.constant * NS_PER_TICK);
  return expr(
    "datetime",
    sql`kql_datetime_plus(${now}, ${sign === 1n ? offset : expr("timespan", sql`kql_negate(${offset})`)})`,
  );
}

/** An argument that must be a text known while translating. */
function text(call: Call, args: readonly Expr[], i: number): string {
  const { constant } = arg(args, i);
  if (typeof constant !== "string") throw call.refuse(`${call.name}() takes a constant text here`);
  return constant;
}

/** The first argument as one of the words, in lower case. */
function word(call: Call, args: readonly Expr[], words: readonly string[]): string {
  const own = text(call, args, 0);
  const found = words.find((one) => one === own.toLowerCase());
  if (found === undefined) throw call.refuse(`${call.name}() knows no "${own}", but ${words.join(", ")}`);
  return found;
}

function known(call: Call, made: Expr | { unknown: string }): Expr {
  if ("unknown" in made) throw call.refuse(`${call.name}() knows no "${made.unknown}" in a format`);
  return made;
}

function toDatetime(value: Expr): Expr {
  if (value.type === "string") return expr("datetime", sql`kql_datetime_of(${str(value)})`);
  if (value.type === "dynamic") return fromDynamic(value, "datetime");
  if (value.type === "datetime") return value;
  // A number counts ticks since 0001.
  if (value.type === "long" || value.type === "int") {
    return expr("datetime", sql`kql_datetime_at(CAST(${value} AS HUGEINT) * 100 - 62135596800000000000)`);
  }
  return literal("datetime", null);
}

function toTimespan(value: Expr): Expr {
  if (value.type === "string") return expr("timespan", sql`kql_timespan_of(${str(value)})`);
  if (value.type === "dynamic") return fromDynamic(value, "timespan");
  if (value.type === "timespan") return value;
  if (value.type === "long" || value.type === "int") return expr("timespan", sql`${num(value, "long")}`);
  return literal("timespan", null);
}

/** A zone that is known while translating is checked then; any other that is not known makes null. */
function inZone(macro: string, args: readonly Expr[], call: Call): Expr {
  const zone = str(arg(args, 1));
  const { constant } = zone;
  if (typeof constant === "string" && !isZone(constant)) throw call.refuse(`${constant} is not a known time zone`);
  return expr(
    "datetime",
    sql`${[macro]}(${datetime(args, 0)}, ${typeof constant === "string" ? zone.sql : sql`kql_zone(${zone})`})`,
  );
}

function isZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

function sinceEpoch(ns: bigint): FunctionRule {
  return fn((args) => {
    const value = arg(args, 0);
    if (value.type === "int" || value.type === "long") {
      return expr("datetime", sql`kql_datetime_at(CAST(${value} AS HUGEINT) * ${String(ns)})`);
    }
    const ticks = sql`TRY_CAST(round(${num(value, "real")} * ${String(ns)} / 100) AS HUGEINT)`;
    return expr("datetime", sql`kql_datetime_at(${ticks} * 100)`);
  });
}
