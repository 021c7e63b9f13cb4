import type { Row } from "./side.ts";

/** Sums of doubles depend on the order of their terms. */
const RELATIVE_ERROR = 1e-9;

/**
 * Throws unless both answers have the same rows: in order where the query asks for one, else as sets. Numbers may
 * differ by rounding, moments in how they are written, and nested values may come as text.
 */
export function mustBeSame(
  what: string,
  { actual, expected, ordered }: { actual: readonly Row[]; expected: readonly Row[]; ordered: boolean },
): void {
  if (actual.length !== expected.length) throw new Error(`${what}: ${actual.length} rows, not ${expected.length}`);
  const [got, wanted] = [actual, expected].map((rows) => {
    const plain = rows.map(plainRow);
    return ordered ? plain : sorted(plain);
  }) as [Plain[][], Plain[][]];
  got.forEach((row, i) => {
    const other = wanted[i] ?? [];
    if (row.length === other.length && row.every((value, column) => isSame(value, other[column]))) return;
    throw new Error(`${what}: row ${i} is ${JSON.stringify(row)}, not ${JSON.stringify(other)}`);
  });
}

type Plain = string | number | null;

/** Values in the order of their columns. */
function plainRow(row: Row): Plain[] {
  return Object.values(row).flatMap(plainValue);
}

const MOMENT = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d+))?Z?$/;

function plainValue(value: unknown): Plain | Plain[] {
  if (value === null || value === undefined) return null;
  if (typeof value === "number") return value;
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "object")
    return Object.entries(value).flatMap(([key, inner]) => [key, plainValue(inner)].flat());
  if (typeof value !== "string") throw new Error(`JSON has no ${typeof value}`);
  if (value.startsWith("{")) return plainValue(JSON.parse(value));
  const [, day, time, fraction = ""] = MOMENT.exec(value) ?? [];
  return day === undefined ? value : `${day} ${time}.${fraction.replace(/0+$/, "")}`;
}

function sorted(rows: readonly Plain[][]): Plain[][] {
  const keyed = rows.map((row) => ({ row, key: sortKey(row) }));
  return keyed.sort((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key))).map(({ row }) => row);
}

/** Doubles come last, rounded: two that differ in their last bits must not change the order of rows. */
function sortKey(row: readonly Plain[]): string {
  const exact = row.filter((value) => typeof value !== "number" || Number.isInteger(value));
  const rounded = row.filter((value) => typeof value === "number" && !Number.isInteger(value)) as number[];
  return JSON.stringify([exact, rounded.map((value) => value.toPrecision(6))]);
}

function isSame(a: Plain | undefined, b: Plain | undefined): boolean {
  if (typeof a !== "number" || typeof b !== "number") return a === b;
  return Math.abs(a - b) <= RELATIVE_ERROR * Math.max(Math.abs(a), Math.abs(b));
}
