import { EngineError } from "../core/errors.ts";
import { LIMITS } from "../core/limits.ts";
import { foldName, isColumnName } from "../core/names.ts";
import { formatColumnType, sameColumnType, type ColumnSpec } from "../format/types.ts";
import type { TableRecord } from "./catalog.ts";

type Missing = { kind: "fits"; columns: ColumnSpec[] } | { kind: "conflict"; error: EngineError };

/**
 * Which of the wanted columns a table lacks, or why it cannot have them. A column of the same name and type is had.
 * Throws `invalid_name`.
 */
export function missingColumns(table: Pick<TableRecord, "columns">, wanted: readonly ColumnSpec[]): Missing {
  const columns: ColumnSpec[] = [];
  if (wanted.length === 0) return { kind: "fits", columns };
  const known = new Map<string, ColumnSpec>(table.columns.map((column) => [foldName(column.name), column]));
  for (const column of wanted) {
    checkColumnName(column.name);
    const existing = known.get(foldName(column.name));
    if (existing === undefined) {
      columns.push(column);
      known.set(foldName(column.name), column);
    } else if (!sameColumnType(existing.type, column.type)) {
      const types = `${formatColumnType(existing.type)}, not ${formatColumnType(column.type)}`;
      return conflict(`column ${JSON.stringify(column.name)} is ${types}`);
    }
  }
  const count = table.columns.length + columns.length;
  if (columns.length === 0 || count <= LIMITS.columnsPerTable) return { kind: "fits", columns };
  return conflict(`the table would have ${count} columns; at most ${LIMITS.columnsPerTable} are possible`);
}

function conflict(message: string): Missing {
  return { kind: "conflict", error: new EngineError("conflict", message) };
}

/** Those of the columns that no row may lack. */
export function vectorsAmong(columns: readonly ColumnSpec[]): ColumnSpec[] {
  return columns.filter(({ type }) => type.kind === "vector");
}

/**
 * Why a table that has rows gets none of these columns: a vector has no NULL, and rows that are there would have no other
 * value. Counted are rows that are committed, as the adding transaction sees them. Rows that ingest has read and not yet
 * committed are read again under the new column; staged ones, which were acknowledged and cannot be refused, get NULL.
 */
export function vectorOnRows({ database, name }: TableRecord, columns: readonly ColumnSpec[]): EngineError {
  const [vector] = vectorsAmong(columns);
  const what = vector === undefined ? "a vector" : `${JSON.stringify(vector.name)} ${formatColumnType(vector.type)}`;
  const message =
    `column ${what} cannot be added: table ${database}.${name} has rows, which would have no value in it, and a vector ` +
    "is never null; add it to a table that is still empty, or create one with it";
  return new EngineError("conflict", message);
}

/** The columns of a table to be created. Throws `invalid_name` or `conflict`. */
export function columnsToCreate(wanted: readonly ColumnSpec[]): ColumnSpec[] {
  const missing = missingColumns({ columns: [] }, wanted);
  if (missing.kind === "conflict") throw missing.error;
  if (missing.columns.length === wanted.length) return missing.columns;
  throw new EngineError("conflict", "two columns have the same name; case does not tell names apart");
}

function checkColumnName(name: string): void {
  if (isColumnName(name) && name.isWellFormed()) return;
  const shown = JSON.stringify(name.length > 40 ? `${name.slice(0, 40)}…` : name);
  const rule = `1 to ${LIMITS.columnNameBytes} bytes of text without control characters`;
  throw new EngineError("invalid_name", `column name ${shown} is not accepted; a name is ${rule}`);
}

/** More than this is for ever, and days times nanoseconds must stay within 64 bits. */
const MAX_RETENTION_DAYS = 36_500;

/** As for `ENGINE_ICEBERG_MAX_LAG_SECS`. */
const MAX_OPEN_LAG_SECS = 86_400;

/** Whether rows of a table may wait for so many seconds until they are published. */
export function isOpenLag(secs: number): boolean {
  return Number.isInteger(secs) && secs >= 0 && secs <= MAX_OPEN_LAG_SECS;
}

/** Throws `invalid_parameter` for a lag that no table may have. */
export function checkOpenLag(secs: number | undefined): void {
  if (secs === undefined || isOpenLag(secs)) return;
  const text = `the open lag is a whole number of seconds from 0 to ${MAX_OPEN_LAG_SECS}, not ${secs}`;
  throw new EngineError("invalid_parameter", text);
}

/** Throws `invalid_parameter` for a retention that no table may have. */
export function checkRetention(days: number | undefined): void {
  if (days === undefined || (Number.isInteger(days) && days >= 1 && days <= MAX_RETENTION_DAYS)) return;
  const text = `retention is a whole number of days from 1 to ${MAX_RETENTION_DAYS}, not ${days}`;
  throw new EngineError("invalid_parameter", text);
}
