import { parseColumnType, type ExtentFormat } from "../format/types.ts";
import type { ColumnRecord, DatabaseRecord, ExtentSummary, LedgerEntry, Snapshot, TableRecord } from "./catalog.ts";
import { decodeClusterBy } from "./cluster-columns.ts";
import type { TableTotals } from "./invariants.ts";

/**
 * Rows of the database as records. Both drivers call their columns the same; an integer is a number, a bigint or text,
 * as the driver reads it.
 */
type Row = Readonly<Record<string, unknown>>;

/** The columns of `extents` that `toSummary` reads. */
export const EXTENT_FIELDS = [
  "id",
  "table_id",
  "schema_version",
  "object_key",
  "format",
  "format_version",
  "row_count",
  "size_bytes",
  "checksum",
  "min_at_ns",
  "max_at_ns",
  "begin_snapshot",
  "end_snapshot",
  "deleted_at_ms",
  "ns_column_ids",
] as const;

/** Times in nanoseconds must have been read exactly. */
export function toSummary(row: Row): ExtentSummary {
  const summary: ExtentSummary = {
    id: String(row["id"]),
    key: String(row["object_key"]),
    format: row["format"] as ExtentFormat,
    formatVersion: Number(row["format_version"]),
    rows: Number(row["row_count"]),
    sizeBytes: Number(row["size_bytes"]),
    checksum: String(row["checksum"]),
    minAtNs: toBigint(row["min_at_ns"]),
    maxAtNs: toBigint(row["max_at_ns"]),
    tableId: Number(row["table_id"]),
    schemaVersion: Number(row["schema_version"]),
    beginSnapshot: Number(row["begin_snapshot"]),
  };
  if (row["end_snapshot"] !== null) summary.endSnapshot = Number(row["end_snapshot"]);
  if (row["deleted_at_ms"] !== null) summary.deletedAtMs = Number(row["deleted_at_ms"]);
  const nanosecondIds = row["ns_column_ids"];
  if (typeof nanosecondIds === "string") summary.nanosecondColumnIds = JSON.parse(nanosecondIds) as number[];
  return summary;
}

/** An integer that was read exactly. */
export function toBigint(value: unknown): bigint {
  return typeof value === "bigint" ? value : BigInt(String(value));
}

export function toSnapshot(row: Row): Snapshot {
  return { id: Number(row["id"]), committedAtMs: Number(row["committed_at_ms"]) };
}

/** Throws for a type that this program does not know. */
export function toColumn(row: Row): ColumnRecord {
  const type = parseColumnType(String(row["type"]));
  if (type === undefined) throw new Error(`the catalog holds the unknown column type ${String(row["type"])}`);
  const column: ColumnRecord = { id: Number(row["id"]), name: String(row["name"]), type };
  const sinceSnapshot = Number(row["since_snapshot"]);
  if (row["origin"] === "inferred") column.inferred = true;
  if (sinceSnapshot !== 0) column.sinceSnapshot = sinceSnapshot;
  if (row["widened_version"] !== null) {
    column.widened = { version: Number(row["widened_version"]), snapshot: Number(row["widened_snapshot"]) };
  }
  return column;
}

/** Of a table that has none yet: zeros. */
export function toTotals(row: Row | undefined): TableTotals {
  return {
    rows: Number(row?.["row_count"] ?? 0),
    extents: Number(row?.["extent_count"] ?? 0),
    sizeBytes: Number(row?.["size_bytes"] ?? 0),
  };
}

export function toLedgerEntry(key: string, row: Row): LedgerEntry {
  return {
    key,
    extentCount: Number(row["extent_count"]),
    rows: Number(row["row_count"]),
    sizeBytes: Number(row["size_bytes"]),
    snapshotId: Number(row["snapshot_id"]),
  };
}

/** A table as its row of `tables` has it, without its columns. A boolean is true or 1, as the driver reads it. */
export function toTableRecord(row: Row): Omit<TableRecord, "columns"> {
  const table: Omit<TableRecord, "columns"> = {
    id: Number(row["id"]),
    databaseId: Number(row["database_id"]),
    database: String(row["database"]),
    name: String(row["name"]),
    schemaVersion: Number(row["schema_version"]),
    clusterBy: decodeClusterBy(row["cluster_by"]),
  };
  if (row["retention_days"] !== null) table.retentionDays = Number(row["retention_days"]);
  if (row["infer_types"] !== null) table.inferTypes = Number(row["infer_types"]) === 1;
  if (row["open_lag_secs"] !== null) table.openLagSecs = Number(row["open_lag_secs"]);
  return table;
}

export function toDatabase(row: Row): DatabaseRecord {
  return { id: Number(row["id"]), name: String(row["name"]) };
}
