import { commaList, expr, isSameInAllRows, raw, Scalar, sql, type Expr, type Sql } from "../plan/expression.ts";
import type { KqlType } from "../contract.ts";
import type { Call } from "../scope.ts";
import { SQL_TYPES } from "../types/types.ts";
import { dyn, num } from "../values/coerce.ts";
import { aggregate, arg, valuesOf, where, type AggregateRule, type AggregateTable } from "./table.ts";
import { jsonIn } from "../values/literal-nodes.ts";

/** Percentiles by the nearest rank: each is a value that occurs. */
export const PERCENTILES: AggregateTable = {
  percentile: aggregate(([value, ...shares], call) => percentile(ranked(value, call), arg(shares, 0), call)),
  percentiles: several((args, call) => {
    const [value, ...shares] = args;
    return shares.map((share) => percentile(ranked(value, call), share, call));
  }),
  percentiles_array: aggregate(([value, ...shares], call) => {
    const own = ranked(value, call);
    return jsonOf(own.type, sql`quantile_disc(${own}, ${raw(quantiles(shares, call))})`);
  }),
  percentilew: aggregate(([value, weight, ...shares], call) => {
    return weighted(ranked(value, call), weight, arg(shares, 0), call);
  }),
  percentilesw: several(([value, weight, ...shares], call) => {
    return shares.map((share) => weighted(ranked(value, call), weight, share, call));
  }),
  percentilesw_array: aggregate(([value, weight, ...shares], call) => {
    const own = ranked(value, call);
    const all = percentsOf(shares, call).map((share) => weightedBy(own, weight, share, call).sql);
    const list = sql`CASE WHEN count(${own})${where(weighs(weight))} > 0 THEN [${commaList(all)}] END`;
    return jsonOf(own.type, list);
  }),
};

/** An aggregate of several columns. */
function several(translate: (args: readonly Expr[], call: Call) => readonly Expr[]): AggregateRule {
  return { tuple: (call) => translate(valuesOf(call, call.argumentNodes), call) };
}

/** A value that has ranks, as one of the type of the result. */
function ranked(value: Expr | undefined, call: Call): Expr {
  const type = value?.type;
  if (value !== undefined && (type === "int" || type === "long")) return num(value, "long");
  if (value !== undefined && (type === "real" || type === "decimal")) return num(value, "real");
  if (value !== undefined && (type === "datetime" || type === "timespan")) return value;
  throw call.refuse(`${call.name}() of ${type ?? "nothing"} is not supported`);
}

/** A share between 0 and 100, exactly: `digits` / 10^`scale`. */
type Percent = { digits: string; scale: number };

function percentOf(constant: Expr["constant"], call: Call): Percent {
  const [, whole = "", fraction = ""] = /^(\d+)(?:\.(\d+))?$/.exec(String(constant)) ?? [];
  if (whole === "" || Number(constant) > 100) {
    throw call.refuse(`a percentile is a number from 0 to 100, known beforehand`);
  }
  return { digits: whole + fraction, scale: fraction.length };
}

/** The percentiles as they were written, or the elements of an array that is known beforehand. */
function percentsOf(shares: readonly Expr[], call: Call): Percent[] {
  const [only] = shares;
  if (shares.length !== 1 || only?.type !== "dynamic") return shares.map(({ constant }) => percentOf(constant, call));
  const listed = jsonIn(only.constant);
  if (!Array.isArray(listed)) throw call.refuse("an array of percentiles is expected, known beforehand");
  return listed.map((one: unknown) => percentOf(typeof one === "number" ? one : undefined, call));
}

function quantile({ digits, scale }: Percent): string {
  const places = scale + 2;
  const padded = digits.padStart(places + 1, "0");
  return `${padded.slice(0, -places)}.${padded.slice(-places)}`;
}

/**
 * As `quantile_disc` takes several: an array that is computed has to be the same in all rows, and what is no percentile in
 * it is left out.
 */
function quantiles(shares: readonly Expr[], call: Call): Sql {
  const [only] = shares;
  const isComputed = only?.type === "dynamic" && only.constant === undefined;
  if (isComputed && isSameInAllRows(only) && !only.sql.some((part) => part instanceof Scalar)) {
    const known = sql`coalesce(TRY_CAST(${only} AS DECIMAL(18, 10)[]), [])`;
    return sql`list_transform(list_filter(${raw(known)}, lambda p: p BETWEEN 0 AND 100), lambda p: p * 0.01)`;
  }
  return [`[${percentsOf(shares, call).map(quantile).join(", ")}]`];
}

function percentile(value: Expr, share: Expr, call: Call): Expr {
  return expr(value.type, sql`quantile_disc(${value}, ${quantile(percentOf(share.constant, call))})`);
}

function weighted(value: Expr, weight: Expr | undefined, share: Expr, call: Call): Expr {
  return weightedBy(value, weight, percentOf(share.constant, call), call);
}

/** Each value counts as often as its weight says. */
function weightedBy(value: Expr, weight: Expr | undefined, { digits, scale }: Percent, call: Call): Expr {
  if (weight?.type !== "int" && weight?.type !== "long") throw call.refuse("a weight is a whole number");
  const item = sql`struct_pack(v := ${value}, r := CAST(${weight} AS BIGINT))`;
  const list = sql`list(${raw(item)} ORDER BY ${value})${where(sql`${value} IS NOT NULL`, weighs(weight))}`;
  const whole = `1${"0".repeat(scale + 2)}`;
  return expr(value.type, sql`kql_weighted(${raw(list)}, ${digits}, ${whole})`);
}

function weighs(weight: Expr | undefined): Sql | undefined {
  return weight === undefined ? undefined : sql`${weight} > 0`;
}

/** A list of values of the type as dynamic. */
function jsonOf(type: KqlType, list: Sql): Expr {
  const each = dyn(expr(type, [`CAST(v AS ${SQL_TYPES[type]})`]));
  return expr("dynamic", sql`to_json(list_transform(${raw(list)}, lambda v: ${each}))`);
}
