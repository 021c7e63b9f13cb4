import { levelOf } from "../../base/log-fields.ts";
import type { Column } from "../../base/schema.ts";

/** A column, or what lies in one of type `dynamic`: the keys that lead there. */
export type FieldPath = { column: string; keys: readonly string[] };

/** `ctx.user.id`, for people. */
export function fieldTitle({ column, keys }: FieldPath): string {
  return [column, ...keys].join(".");
}

/** One text for each field, for addresses and maps. */
export function fieldKey({ column, keys }: FieldPath): string {
  return JSON.stringify([column, ...keys]);
}

export function sameField(a: FieldPath, b: FieldPath): boolean {
  return fieldKey(a) === fieldKey(b);
}

/** The columns, then the fields inside them. */
export function allFields(columns: readonly Column[], nested: readonly FieldPath[]): FieldPath[] {
  return [...columns.map(({ name }): FieldPath => ({ column: name, keys: [] })), ...nested];
}

export function columnOf(columns: readonly Column[], { column }: FieldPath): Column | undefined {
  return columns.find(({ name }) => name === column);
}

/** The column whose values a histogram tells apart. */
export function levelColumn(columns: readonly Column[]): string | undefined {
  return levelOf(columns.filter(({ type }) => isDiscrete(type)))?.name;
}

/** Columns that have few values often enough to draw each in a colour of its own. */
export function isDiscrete(type: string): boolean {
  return type === "string" || type === "bool" || type === "int" || type === "long";
}

/** Of one row: more are no fields but data. */
const MOST_KEYS = 300;
const MOST_DEPTH = 8;

/** The fields inside the columns of type `dynamic`, as some rows have them, in the order of their names. */
export function nestedFields(
  columns: readonly Column[],
  rows: readonly Readonly<Record<string, unknown>>[],
): FieldPath[] {
  const found = new Map<string, FieldPath>();
  for (const { name } of columns.filter(({ type }) => type === "dynamic")) {
    for (const row of rows) {
      if (found.size >= MOST_KEYS) break;
      collect(found, { column: name, keys: [] }, row[name], MOST_DEPTH);
    }
  }
  return [...found.values()].sort((a, b) => fieldTitle(a).localeCompare(fieldTitle(b)));
}

function collect(found: Map<string, FieldPath>, at: FieldPath, value: unknown, depth: number): void {
  if (!isObject(value) || depth === 0) return;
  for (const [key, part] of Object.entries(value)) {
    if (found.size >= MOST_KEYS) return;
    const field = { column: at.column, keys: [...at.keys, key] };
    if (isObject(part)) collect(found, field, part, depth - 1);
    else if (!Array.isArray(part)) found.set(fieldKey(field), field);
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
