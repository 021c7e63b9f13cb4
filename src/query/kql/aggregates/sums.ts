import type { KqlType } from "../contract.ts";
import { expr, raw, sql, type Expr } from "../plan/expression.ts";
import type { Call } from "../scope.ts";
import { SQL_TYPES } from "../types/types.ts";
import { num, str } from "../values/coerce.ts";
import { aggregate, arg, where, type AggregateTable } from "./table.ts";

/** Sums, means, extremes and bits. */
export const SUMS: AggregateTable = {
  sum: aggregate((args, call) => summed(arg(args, 0), undefined, call)),
  sumif: aggregate((args, call) => summed(arg(args, 0), arg(args, 1), call)),
  avg: aggregate((args, call) => averaged(arg(args, 0), undefined, call)),
  avgif: aggregate((args, call) => averaged(arg(args, 0), arg(args, 1), call)),
  min: aggregate((args) => extreme("min", arg(args, 0))),
  minif: aggregate((args) => extreme("min", arg(args, 0), arg(args, 1))),
  max: aggregate((args) => extreme("max", arg(args, 0))),
  maxif: aggregate((args) => extreme("max", arg(args, 0), arg(args, 1))),
  binary_all_and: aggregate((args, call) => bits("bit_and", arg(args, 0), call)),
  binary_all_or: aggregate((args, call) => bits("bit_or", arg(args, 0), call)),
  binary_all_xor: aggregate((args, call) => bits("bit_xor", arg(args, 0), call)),
};

function summed(value: Expr, condition: Expr | undefined, call: Call): Expr {
  if (call.type === "datetime") throw call.refuse("a sum of datetimes is not supported");
  return sumOf(value, call.type, condition);
}

/** The sum of values as one of the type. Whole numbers wrap around in 64 bits; of no values it is 0. */
export function sumOf(value: Expr, type: KqlType, condition?: Expr): Expr {
  const own = type === "timespan" ? value : num(value, type === "real" || type === "decimal" ? type : "long");
  const sum = sql`sum(${own})${where(condition)}`;
  if (type === "real" || type === "decimal") return expr(type, sql`coalesce(${raw(sum)}, 0)`, { nullable: false });
  return expr(type, sql`kql_wrap(coalesce(${raw(sum)}, 0))`, { nullable: false });
}

function averaged(value: Expr, condition: Expr | undefined, { type }: Call): Expr {
  const only = where(condition);
  if (type === "timespan") return expr(type, sql`CAST(sum(${value})${only} // count(${value})${only} AS BIGINT)`);
  if (type === "datetime") {
    const ns = sql`epoch_ns(${value})`;
    return expr(type, sql`make_timestamp_ns(CAST(sum(${ns})${only} // count(${ns})${only} AS BIGINT))`);
  }
  if (type === "decimal") {
    return expr(type, sql`CAST(sum(${value})${only} / count(${value})${only} AS ${SQL_TYPES.decimal})`);
  }
  const own = value.type === "int" || value.type === "long" ? value : num(value, "real");
  return expr("real", sql`avg(${own})${only}`);
}

function extreme(name: "min" | "max", value: Expr, condition?: Expr): Expr {
  const own = value.type === "string" ? str(value) : value;
  return expr(value.type, sql`${name}(${own})${where(condition)}`);
}

function bits(name: string, value: Expr, call: Call): Expr {
  if (value.type !== "int" && value.type !== "long") throw call.refuse(`${call.name}() takes whole numbers`);
  return expr(value.type, sql`${name}(${value})`);
}
