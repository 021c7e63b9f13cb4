import { plural } from "../../base/format.ts";
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

/** Whether the bars can be split by the column: what an address brings may be anything. */
export function isSplit(columns: readonly Column[], name: string): boolean {
  return columns.some((column) => column.name === name && isDiscrete(column.type));
}

/** As the server takes it: a list, so that dots in names are no paths. */
export function pathOf({ column, keys }: FieldPath): string[] {
  return [column, ...keys];
}

/** What the server takes of one request. */
export const MOST_FACETS = 20;
export const MOST_DYNAMIC = 20;
const MOST_KEY_CHARS = 1_000;
const MOST_LEVELS = 32;
/** Of the columns whose rows are counted: each is read for it. */
const MOST_COUNTED = 100;

/** Why the values of a field cannot be counted. */
export function fieldProblem(field: FieldPath, columns: readonly Column[]): string | undefined {
  const { column, keys } = field;
  const type = columnOf(columns, field)?.type;
  if (type === undefined) return `The table has no column ${column}.`;
  if (isVector(type)) return "The values of vectors are not counted.";
  if (keys.length === 0) return undefined;
  if (type !== "dynamic") return `${column} is of type ${type}: only dynamic columns have fields.`;
  const isTaken = keys.length < MOST_LEVELS && keys.every((key) => key.length <= MOST_KEY_CHARS && isText(key));
  return isTaken ? undefined : "The keys of this field are too long, too deep or not Unicode text.";
}

function isVector(type: string): boolean {
  return type.startsWith("vector");
}

function isText(key: string): boolean {
  return key.isWellFormed() && !key.includes("\0");
}

/**
 * The fields of which is counted how many rows have them: those with keys first, as there may be few of them, then the
 * other columns. Vectors are left out, as reading them takes more than reading everything else.
 */
export function countedFields(columns: readonly Column[], open: readonly FieldPath[]): FieldPath[] {
  const own = columns.map(({ name, type }) => ({ field: { column: name, keys: [] }, type }));
  const dynamic = own.filter(({ type }) => type === "dynamic").map(({ field }) => field);
  const inside = open.filter((field) => field.keys.length > 0 && fieldProblem(field, columns) === undefined);
  const plain = own.filter(({ type }) => type !== "dynamic" && !isVector(type)).map(({ field }) => field);
  return [...[...dynamic, ...inside].slice(0, MOST_DYNAMIC), ...plain.slice(0, MOST_COUNTED)];
}

/** A field in the list of all, or what there is to say of the keys in one. */
export type FieldItem =
  | { field: FieldPath; type: string; rows: number | undefined; isOpen: boolean }
  | { field: FieldPath; note: string };

type Keys = { rows: number; keys?: { distinct: number; values: readonly { key: string; rows: number }[] } };

/** The columns, each dynamic one with the keys that were found in it, and the keys in those that are open. */
export function fieldItems(
  columns: readonly Column[],
  open: readonly FieldPath[],
  counts: ReadonlyMap<string, Keys>,
): FieldItem[] {
  const opened = new Set(open.map(fieldKey));
  const items: FieldItem[] = [];
  const addKeys = (field: FieldPath): void => {
    const keys = counts.get(fieldKey(field))?.keys;
    if (keys === undefined) return;
    if (keys.distinct === 0 && field.keys.length > 0) items.push({ field, note: "No keys inside." });
    for (const { key, rows } of keys.values) {
      const inner = { column: field.column, keys: [...field.keys, key] };
      const isOpen = opened.has(fieldKey(inner));
      items.push({ field: inner, type: "key", rows, isOpen });
      if (isOpen) addKeys(inner);
    }
    const unlisted = keys.distinct - keys.values.length;
    if (unlisted > 0) items.push({ field, note: `${plural(unlisted, "rarer key")} not listed.` });
  };
  for (const { name, type } of columns) {
    const field = { column: name, keys: [] };
    items.push({ field, type, rows: counts.get(fieldKey(field))?.rows, isOpen: false });
    if (type === "dynamic") addKeys(field);
  }
  return items;
}

/** Whether a field is inside another one, or is it. */
export function isWithin(field: FieldPath, outer: FieldPath): boolean {
  return field.column === outer.column && outer.keys.every((key, i) => field.keys[i] === key);
}
