import { expr, sql, type Expr, type Sql } from "../plan/expression.ts";
import { as, literal, num } from "../values/coerce.ts";
import { TICKS } from "../types/literals.ts";
import { arg, fn, type FunctionRule } from "./table.ts";

type Period = "day" | "week" | "month" | "year";

/** `startofday(date, offset)` and the like. */
export function startOf(period: Period): FunctionRule {
  return fn((args) => expr("datetime", start(period, args, 0)));
}

/** `endofday(date, offset)` and the like: a tick before the next one starts. */
export function endOf(period: Period): FunctionRule {
  return fn((args) => expr("datetime", sql`kql_datetime_plus(${start(period, args, 1)}, -1)`));
}

function start(period: Period, args: readonly Expr[], further: 0 | 1): Sql {
  const offset = args[1] === undefined ? literal("long", 0n) : num(args[1], "long");
  const count =
    typeof offset.constant === "bigint"
      ? sql`${String(offset.constant + BigInt(further))}`
      : sql`kql_add(${offset}, ${further})`;
  return sql`kql_start_of_${[period]}(${as(arg(args, 0), "datetime")}, ${count})`;
}

/** What `datetime_part()` tells of a datetime, by its lower-case name: of the day by its date, of the second in nanoseconds. */
const PARTS: Readonly<Record<string, (t: Expr) => Sql>> = {
  year: (t) => sql`year(kql_date(${t}))`,
  quarter: (t) => sql`quarter(kql_date(${t}))`,
  month: (t) => sql`month(kql_date(${t}))`,
  week_of_year: (t) => sql`weekofyear(kql_date(${t}))`,
  day: (t) => sql`day(kql_date(${t}))`,
  dayofyear: (t) => sql`dayofyear(kql_date(${t}))`,
  hour: (t) => sql`hour(kql_micros(${t}))`,
  minute: (t) => sql`minute(kql_micros(${t}))`,
  second: (t) => sql`second(kql_micros(${t}))`,
  millisecond: (t) => sql`kql_second_ns(${t}) // 1000000`,
  microsecond: (t) => sql`kql_second_ns(${t}) // 1000`,
  nanosecond: (t) => sql`kql_second_ns(${t})`,
};

export const PART_NAMES = Object.keys(PARTS);

/** A part of a datetime, as an int. */
export function partOf(name: string, moment: Expr): Expr {
  const own = PARTS[name]?.(moment) ?? [];
  return expr("int", sql`CAST(${own} AS INTEGER)`, { nullable: moment.nullable });
}

/** A function that tells one part of its datetime. */
export function part(name: string): FunctionRule {
  return fn((args) => partOf(name, as(arg(args, 0), "datetime")));
}

/** The weekday as the time since the beginning of Sunday. */
export function dayOfWeek(moment: Expr): Expr {
  const own = sql`CAST(dayofweek(kql_date(${moment})) AS BIGINT) * ${String(TICKS.day)}`;
  return expr("timespan", own, { nullable: moment.nullable });
}

const MONTHS: Readonly<Record<string, number | undefined>> = { year: 12, quarter: 3, month: 1 };
const NS: Readonly<Record<string, bigint | undefined>> = {
  week: 604_800_000_000_000n,
  day: 86_400_000_000_000n,
  hour: 3_600_000_000_000n,
  minute: 60_000_000_000n,
  second: 1_000_000_000n,
  millisecond: 1_000_000n,
  microsecond: 1_000n,
  nanosecond: 1n,
};

export const PERIOD_NAMES = [...Object.keys(MONTHS), ...Object.keys(NS)];

/** `datetime_add()`. */
export function addPeriods(period: string, amount: Expr, moment: Expr): Expr {
  const months = MONTHS[period];
  if (months !== undefined)
    return expr("datetime", sql`kql_add_months(${moment}, CAST(${amount} AS HUGEINT) * ${months})`);
  return expr("datetime", sql`kql_add_ns(${moment}, ${amount}, ${String(NS[period])})`);
}

/** `datetime_diff()`: how many boundaries of the period lie between. */
export function periodsBetween(period: string, later: Expr, earlier: Expr): Expr {
  const [a, b] = [later, earlier].map((moment) => indexOf(period, moment));
  return expr("long", sql`TRY_CAST(${a ?? []} - ${b ?? []} AS BIGINT)`);
}

/** Which one of all periods of the kind a datetime is in. */
function indexOf(period: string, moment: Expr): Sql {
  if (period === "year") return sql`year(kql_date(${moment}))`;
  if (period === "quarter") return sql`year(kql_date(${moment})) * 4 + quarter(kql_date(${moment}))`;
  if (period === "month") return sql`year(kql_date(${moment})) * 12 + month(kql_date(${moment}))`;
  if (period === "day") return sql`kql_days(${moment})`;
  // Weeks begin with Sunday; 1969-12-28 was one.
  if (period === "week") return sql`(kql_days(${moment}) + 140004) // 7`;
  if (period === "nanosecond") return sql`CAST(epoch_ns(${moment}) AS HUGEINT)`;
  return sql`kql_floor_divide(epoch_ns(${moment}), ${String(NS[period])})`;
}
