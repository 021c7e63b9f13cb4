import type { Column } from "../../base/schema.ts";
import { columnOf, fieldTitle, sameField, type FieldPath } from "./fields.ts";
import { joined, name, raw, sql, type Sql } from "./sql.ts";

export const OPERATORS = ["=", "!=", "contains", ">", "<", "exists", "missing"] as const;
export type Operator = (typeof OPERATORS)[number];

/** What rows must fulfil: a chip. `exists` and `missing` have no value. */
export type Filter = FieldPath & { op: Operator; value: string };

export function takesValue(op: Operator): boolean {
  return op !== "exists" && op !== "missing";
}

export function filterTitle({ op, value, ...field }: Filter): string {
  return takesValue(op) ? `${fieldTitle(field)} ${op} ${value}` : `${fieldTitle(field)} ${op}`;
}

/** Filters of an address: whoever wrote it may have written anything. */
export function areFilters(value: unknown): value is Filter[] {
  return Array.isArray(value) && value.length <= MOST_FILTERS && value.every(isFilter);
}

const MOST_FILTERS = 50;

function isFilter(value: unknown): value is Filter {
  if (!isField(value)) return false;
  const { op, value: text } = value as Partial<Filter>;
  return OPERATORS.some((one) => one === op) && typeof text === "string";
}

/** Fields of an address, at most so many. */
export function areFields(value: unknown, most: number): value is FieldPath[] {
  return Array.isArray(value) && value.length <= most && value.every(isField);
}

function isField(value: unknown): value is FieldPath {
  if (typeof value !== "object" || value === null) return false;
  const { column, keys } = value as Partial<FieldPath>;
  return typeof column === "string" && Array.isArray(keys) && keys.every((key) => typeof key === "string");
}

/** With the filter; one that says the opposite of the same value goes. */
export function withFilter(filters: readonly Filter[], filter: Filter): Filter[] {
  const opposite = OPPOSITES[filter.op];
  const others = filters.filter((one) => {
    const isSameValue = sameField(one, filter) && one.value === filter.value;
    return !(isSameValue && (one.op === filter.op || one.op === opposite));
  });
  return [...others, filter];
}

const OPPOSITES: Partial<Record<Operator, Operator>> = {
  "=": "!=",
  "!=": "=",
  exists: "missing",
  missing: "exists",
};

/** A field as an expression. What lies in a dynamic column is named by a JSON pointer, which any key can stand in. */
export function fieldSql({ column, keys }: FieldPath): Sql {
  if (keys.length === 0) return name(column);
  const pointer = keys.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  return sql`(${name(column)}->>${pointer})`;
}

function textSql(field: FieldPath, columns: readonly Column[]): Sql {
  return isText(field, columns) ? fieldSql(field) : sql`CAST(${fieldSql(field)} AS VARCHAR)`;
}

function isText(field: FieldPath, columns: readonly Column[]): boolean {
  return field.keys.length > 0 || columnOf(columns, field)?.type === "string";
}

/** What a filter says, as SQL. Rows without the field are among those that are not equal. */
export function filterSql(filter: Filter, columns: readonly Column[]): Sql {
  const { op, value } = filter;
  const field = fieldSql(filter);
  // A whole JSON value or a vector is compared as its text.
  const isCompared = filter.keys.length > 0 || !/^(dynamic|vector)/.test(columnOf(columns, filter)?.type ?? "");
  const compared = isCompared ? field : textSql(filter, columns);
  switch (op) {
    case "=":
      return sql`${compared} = ${value}`;
    case "!=":
      return sql`${compared} IS DISTINCT FROM ${value}`;
    case "contains":
      return sql`contains(lower(${textSql(filter, columns)}), lower(${value}))`;
    case "exists":
      return sql`${field} IS NOT NULL`;
    case "missing":
      return sql`${field} IS NULL`;
    case ">":
    case "<":
      // Text that is to be above a number is a number, where it is one.
      return isText(filter, columns) && /^-?\d+(\.\d+)?$/.test(value.trim())
        ? sql`TRY_CAST(${field} AS DOUBLE) ${raw(op)} TRY_CAST(${value.trim()} AS DOUBLE)`
        : sql`${compared} ${raw(op)} ${value}`;
  }
}

/** All filters and the condition in SQL that was typed; undefined where there is none. */
export function conditionSql(
  filters: readonly Filter[],
  condition: string,
  columns: readonly Column[],
): Sql | undefined {
  const chips = filters.map((filter) => filterSql(filter, columns));
  // On lines of its own: a comment at its end must not take the bracket. First, so that places in it are known.
  const typed = condition.trim() === "" ? [] : [raw(`(\n${condition.trim()}\n)`)];
  const all = [...typed, ...chips];
  return all.length === 0 ? undefined : joined(all, " AND ");
}

/** Why a condition in SQL cannot stand in brackets; what else is wrong with it the server says. */
export function conditionProblem(condition: string): string | undefined {
  const rest = condition.replace(QUOTED, " ");
  if (/['"]|\/\*/.test(rest)) return "A quote or a comment does not end.";
  if (rest.includes(";")) return "Remove the semicolon: this takes one condition.";
  let depth = 0;
  for (const [bracket] of rest.matchAll(/[()]/g)) {
    depth += bracket === "(" ? 1 : -1;
    if (depth < 0) return "A closing bracket has no opening bracket.";
  }
  return depth > 0 ? "A bracket does not close." : undefined;
}

const QUOTED = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*(?:[^*]|\*(?!\/))*\*\//g;
