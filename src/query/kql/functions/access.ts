import { expr, sql, type Expr } from "../plan/expression.ts";
import { literal, num, str } from "../values/coerce.ts";

/** Names that stand in a JSON path of DuckDB's as they are: a star in one is a wildcard even in quotes. */
const PLAIN = /^[^"\\*\p{Cc}]+$/u;

/** `value.name`: a member of a bag; null where there is none, and of anything else. */
export function memberOf(value: Expr, name: string): Expr {
  if (!PLAIN.test(name)) return expr("dynamic", sql`kql_member(${value}, ${literal("string", name)})`);
  return partOf(value, `."${name}"`);
}

/** `value[key]`: a member of a bag by its name, or an element of an array by its place, from its end where negative. */
export function elementOf(value: Expr, key: Expr): Expr {
  const { type, constant } = key;
  if (type === "string") {
    return typeof constant === "string"
      ? memberOf(value, constant)
      : expr("dynamic", sql`kql_member(${value}, ${str(key)})`);
  }
  if (type === "dynamic") return expr("dynamic", sql`kql_element_or_member(${value}, ${key})`);
  if (typeof constant === "bigint") return partOf(value, constant < 0n ? `[#${constant}]` : `[${constant}]`);
  return expr("dynamic", sql`kql_element(${value}, ${num(key, "long")})`);
}

/** One step further into a value: a path of several steps is one in SQL. */
function partOf(value: Expr, step: string): Expr {
  const path = { of: value.path?.of ?? value, steps: (value.path?.steps ?? "$") + step };
  return expr("dynamic", sql`kql_not_null(json_extract(${path.of}, ${literal("string", path.steps)}))`, { path });
}
