import { expr, sql, type Expr } from "../plan/expression.ts";
import { literal, str } from "../values/coerce.ts";
import { ARRAYS } from "./arrays.ts";
import { BAGS } from "./bags.ts";
import { SERIES } from "./series.ts";
import { arg, fn, type FunctionTable } from "./table.ts";

/** Functions over arrays, bags and other dynamic values. */
export const DYNAMICS: FunctionTable = {
  ...ARRAYS,
  ...BAGS,
  ...SERIES,
  ...Object.fromEntries(["parse_json", "parsejson", "todynamic", "toobject"].map((name) => [name, fn(parsed)])),
  gettype: fn((args) => typeOf(arg(args, 0))),
};

/** A dynamic value is itself; a text that is no JSON is a string. */
function parsed(args: readonly Expr[]): Expr {
  const value = arg(args, 0);
  return value.type === "dynamic" ? value : expr("dynamic", sql`kql_parse_json(${str(value)})`);
}

function typeOf(value: Expr): Expr {
  if (value.type !== "dynamic") return literal("string", value.type);
  return expr("string", sql`kql_type_name(${value})`, { nullable: false });
}
