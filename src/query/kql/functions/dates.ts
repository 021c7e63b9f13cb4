import type { Expr } from "../plan/expression.ts";
import { expr, sql } from "../plan/expression.ts";
import { as, literal, num } from "../values/coerce.ts";
import { arg, fn, type FunctionTable } from "./table.ts";

const NS_PER_TICK = 100n;

/** Functions over datetimes and timespans. */
export const DATES: FunctionTable = {
  now: fn((args, { translator }) => moment(translator.request.nowNs, args[0], 1n)),
  ago: fn((args, { translator }) => moment(translator.request.nowNs, arg(args, 0), -1n)),
  bin: fn((args, { type }) => bin(args, type)),
  floor: fn((args, { type }) => bin(args, type)),
};

/** `now()` is one moment for the whole query. */
function moment(nowNs: bigint, offset: Expr | undefined, sign: 1n | -1n): Expr {
  const now = literal("datetime", nowNs);
  if (offset === undefined) return now;
  if (typeof offset.constant === "bigint") return literal("datetime", nowNs + sign * offset.constant * NS_PER_TICK);
  return expr("datetime", sql`kql_datetime_plus(${now}, ${sign === 1n ? "" : "-"}${offset})`);
}

/** Rounds down to a multiple, also below zero and before 1970. */
function bin(args: readonly Expr[], type: Expr["type"]): Expr {
  const [value, step] = [arg(args, 0), arg(args, 1)];
  if (type === "datetime") return expr("datetime", sql`kql_bin_datetime(${value}, ${as(step, "timespan")})`);
  if (type === "timespan") return expr("timespan", sql`kql_bin_long(${value}, ${as(step, "timespan")})`);
  if (type === "int" || type === "long") {
    return expr(type, sql`kql_bin_long(${num(value, type)}, ${num(step, type)})`);
  }
  return expr("real", sql`kql_bin_real(${num(value, "real")}, ${num(step, "real")})`);
}
