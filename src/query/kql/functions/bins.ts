import { floorArguments } from "../../parse/fixed-width.ts";
import { expr, sql, type Expr } from "../plan/expression.ts";
import { TICKS } from "../types/literals.ts";
import { SQL_TYPES } from "../types/types.ts";
import { as, literal, num } from "../values/coerce.ts";

const NS_PER_TICK = 100n;
/** Datetimes count from Monday, 1 January 0001. */
const ORIGIN_NS = -62_135_596_800_000_000_000n;

/** `bin(value, step)`: rounds down to a multiple, also below zero and before 1970; null where `step` is not positive. */
export function bin(value: Expr, step: Expr, type: Expr["type"]): Expr {
  if (type === "datetime") return binDatetime(as(value, "datetime"), as(step, "timespan"), ORIGIN_NS);
  if (type === "timespan") return expr(type, sql`kql_bin_long(${as(value, type)}, ${as(step, type)})`);
  if (type === "int" || type === "long") {
    const own = sql`kql_bin_long(${num(value, "long")}, ${num(step, "long")})`;
    return expr(type, type === "int" ? sql`CAST(${own} AS INTEGER)` : own);
  }
  const own = type === "decimal" ? type : "real";
  return expr(own, sql`kql_bin_${[own]}(${num(value, own)}, ${num(step, own)})`);
}

/** `bin_at(value, step, point)`: the same, where `point` is one of the multiples. */
export function binAt(value: Expr, step: Expr, point: Expr, type: Expr["type"]): Expr {
  if (type === "datetime") {
    const [moment, span, origin] = [as(value, type), as(step, "timespan"), as(point, type)];
    if (typeof origin.constant === "bigint") return binDatetime(moment, span, origin.constant);
    return expr(type, sql`kql_bin_datetime_at(${moment}, ${span}, ${origin})`);
  }
  const own = type === "timespan" || type === "long" || type === "int" || type === "decimal" ? type : "real";
  const [a, b, c] = [as(value, own), as(step, own), as(point, own)];
  const isWhole = own !== "real" && own !== "decimal";
  const shifted = bin(expr(own, isWhole ? sql`kql_subtract(${a}, ${c})` : sql`${a} - ${c}`), b, own);
  if (isWhole) return expr(own, sql`kql_add(${c}, ${shifted})`);
  // DuckDB gives the sum of a decimal and a null that is known the type of NULL.
  return expr(own, own === "decimal" ? sql`CAST(${c} + ${shifted} AS ${SQL_TYPES.decimal})` : sql`${c} + ${shifted}`);
}

function binDatetime(moment: Expr, step: Expr, originNs: bigint): Expr {
  const width = step.constant;
  if (typeof width === "bigint" && width <= 0n) return literal("datetime", null);
  // Wider ones may begin before the first datetime.
  if (typeof width === "bigint" && width <= TICKS.day && TICKS.day % width === 0n) {
    const widthNs = width * NS_PER_TICK;
    const known = floorArguments({ widthNs, originNs: ((originNs % widthNs) + widthNs) % widthNs });
    return expr("datetime", sql`kql_floor_datetime(${moment}, ${known.join(", ")})`, { nullable: moment.nullable });
  }
  if (originNs === ORIGIN_NS) return expr("datetime", sql`kql_bin_datetime(${moment}, ${step})`);
  return expr("datetime", sql`kql_bin_datetime_at(${moment}, ${step}, make_timestamp_ns(${String(originNs)}))`);
}
