import { Column, commaList, expr, sql, type Expr, type Sql } from "../plan/expression.ts";

/** A column with a function or two around it. */
const SHORT = 40;

/**
 * SQL that mentions values more than once. What is more than a column is computed once for it: it may be random, and
 * what is mentioned twice at each of many depths grows beyond all bounds.
 */
export function bound(values: readonly Expr[], own: (values: readonly Expr[]) => Sql): Sql {
  const computed = values.filter((value) => !isPlain(value));
  if (computed.length === 0) return own(values);
  const fields = computed.map((value, i) => sql`'${String(i)}': ${value}`);
  const names = new Map(computed.map((value, i) => [value, `given['${i}']`]));
  const given = values.map((value) => {
    const name = names.get(value);
    return name === undefined ? value : expr(value.type, [name], { nullable: value.nullable });
  });
  return sql`list_transform([{${commaList(fields)}}], lambda given: ${own(given)})[1]`;
}

function isPlain({ constant, sql: parts, isFixed }: Expr): boolean {
  if (constant !== undefined) return true;
  const texts = parts.filter((part) => typeof part === "string");
  const hasOneColumn = parts.length === texts.length + 1 && parts.some((part) => part instanceof Column);
  return isFixed !== true && hasOneColumn && texts.join("").length <= SHORT;
}
