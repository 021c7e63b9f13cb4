import { Column, commaList, expr, isRefusedByTry, sql, type Expr, type Sql } from "../plan/expression.ts";

/** A column with a function or two around it. */
const SHORT = 40;
/** What reads no row is computed once for all of them, and is a constant to what it stands in: a pattern above all. */
const SHORT_CONSTANT = 1_000;

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
  if (isFixed === true) return false;
  const texts = parts.filter((part) => typeof part === "string");
  const sizeChars = texts.reduce((sum, text) => sum + text.length, 0);
  if (texts.length === parts.length) return sizeChars <= SHORT_CONSTANT;
  const hasOneColumn = parts.length === texts.length + 1 && parts.some((part) => part instanceof Column);
  return hasOneColumn && sizeChars <= SHORT;
}

/** SQL that has values inside of TRY: those that it does not take are computed before. */
export function inTry(values: readonly Expr[], own: (values: readonly Expr[]) => Sql): Sql {
  return values.some(isRefusedByTry) ? bound(values, own) : own(values);
}
