import { EngineError } from "../core/errors.ts";
import { foldName } from "../core/names.ts";
import { nearest } from "../core/nearest.ts";
import { formatColumnType, TIME_COLUMN, type ColumnSpec } from "../format/types.ts";
import type { TableRecord } from "./catalog.ts";

/**
 * Cluster columns of a table: compaction sorts rows by `at`, and those of one time by these. It pays where many rows
 * have the same time, as those of one batch do: equal values come to lie side by side, which compresses better.
 */

/** Each is compared for every pair of rows of one time, and after a few there is hardly one that the next could order. */
const MAX_CLUSTER_COLUMNS = 4;

/**
 * The names as the table spells them. Throws `invalid_parameter` for names that no table of these columns may be
 * clustered by.
 */
export function clusterColumns(columns: readonly ColumnSpec[], wanted: readonly string[]): string[] {
  const problem = clusterProblem(columns, wanted);
  if (problem === undefined) return wanted.map((name) => columnNamed(columns, name)?.name ?? name);
  throw new EngineError("invalid_parameter", problem);
}

/** Why no table of these columns may be clustered by those names; undefined when it may. */
export function clusterProblem(columns: readonly ColumnSpec[], wanted: readonly string[]): string | undefined {
  if (wanted.length > MAX_CLUSTER_COLUMNS) {
    return `a table has at most ${MAX_CLUSTER_COLUMNS} cluster columns, here are ${wanted.length}`;
  }
  const twice = wanted.find((name, i) => wanted.findIndex((other) => foldName(other) === foldName(name)) < i);
  if (twice !== undefined) return `cluster column ${JSON.stringify(twice)} is there twice`;
  return wanted.map((name) => problemOf(columns, name)).find((problem) => problem !== undefined);
}

function problemOf(columns: readonly ColumnSpec[], wanted: string): string | undefined {
  const column = columnNamed(columns, wanted);
  if (column === undefined) {
    const known = columns.map(({ name }) => name);
    const near = nearest(wanted, known);
    const hint = near === undefined ? "" : `; did you mean ${JSON.stringify(near)}?`;
    return `cluster column ${JSON.stringify(wanted)} is no column of the table${hint}`;
  }
  const { name, type } = column;
  if (foldName(name) === TIME_COLUMN) return `rows are sorted by "${TIME_COLUMN}" first, whatever follows`;
  if (type.kind !== "dynamic" && type.kind !== "vector") return undefined;
  return `cluster column ${JSON.stringify(name)} is ${formatColumnType(type)}, whose values have no order`;
}

function columnNamed(columns: readonly ColumnSpec[], name: string): ColumnSpec | undefined {
  return columns.find((column) => foldName(column.name) === foldName(name));
}

/** Whether a table is clustered by exactly these columns (any case). */
export function isClusteredBy({ clusterBy }: Pick<TableRecord, "clusterBy">, names: readonly string[]): boolean {
  return clusterBy.length === names.length && clusterBy.every((own, i) => foldName(own) === foldName(names[i] ?? ""));
}

/** As the catalog stores them. */
export function encodeClusterBy(names: readonly string[]): string {
  return JSON.stringify(names);
}

/** What `encodeClusterBy` gave. */
export function decodeClusterBy(stored: unknown): readonly string[] {
  const names: unknown = JSON.parse(String(stored));
  if (Array.isArray(names) && names.every((name) => typeof name === "string")) return names;
  throw new Error(`the catalog holds cluster columns that are no list of names: ${String(stored)}`);
}
