import { expr, sql, type Expr } from "../plan/expression.ts";
import { literal, num, str } from "../values/coerce.ts";

/** `value.name`: a member of a bag; null where there is none, and of anything else. */
export function memberOf(value: Expr, name: string): Expr {
  return expr("dynamic", sql`kql_member(${value}, ${literal("string", name)})`);
}

/** `value[key]`: a member of a bag by its name, or an element of an array by its place, from its end where negative. */
export function elementOf(value: Expr, key: Expr): Expr {
  if (key.type === "string") return expr("dynamic", sql`kql_member(${value}, ${str(key)})`);
  if (key.type === "dynamic") return expr("dynamic", sql`kql_element_or_member(${value}, ${key})`);
  return expr("dynamic", sql`kql_element(${value}, ${num(key, "long")})`);
}
