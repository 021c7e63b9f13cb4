import { timeOfId } from "../core/ids.ts";
import type { UnpublishedDay, UnpublishedRequest } from "./catalog.ts";

const DAY_MS = 86_400_000;

/**
 * The statement of `Catalog.unpublishedDays`, for both databases: `isPublished` (`publishable.ts`) in SQL. What was
 * never published is in an index of its own; files with whole numbers in a column that is `real` by now are looked for in
 * tables that have such a column. Where values have no numbers they are: table, table, bytes, snapshot.
 */
export function unpublishedDaysSql(of: {
  prefix: string;
  belowBytes: string;
  upTo: string;
  /** Undefined where all tables are asked for. */
  table: string | undefined;
  /** Joins what has an extent's `column_ids`, where they are not in `extents`. */
  columnIds: { join: string; from: string };
  isBefore1970: string;
}): string {
  const { prefix, belowBytes, upTo, table, columnIds, isBefore1970 } = of;
  const fields = "e.table_id, e.id, e.min_at_ns, e.row_count, e.size_bytes, e.begin_snapshot, e.format";
  const inTable = (alias: string): string => (table === undefined ? "" : ` AND ${alias}.table_id = ${table}`);
  const never =
    `SELECT ${fields} FROM ${prefix}extents e WHERE e.end_snapshot IS NULL ` +
    `AND (e.format <> 'parquet' OR e.format_version < 2)${inTable("e")}`;
  const widened =
    `SELECT ${fields} FROM (SELECT k.table_id, max(k.widened_version) AS version FROM ${prefix}columns k ` +
    `WHERE k.widened_version IS NOT NULL${inTable("k")} GROUP BY k.table_id) w ` +
    `JOIN ${prefix}extents e ON e.table_id = w.table_id${columnIds.join} ` +
    "WHERE e.end_snapshot IS NULL AND e.schema_version < w.version AND e.format = 'parquet' AND e.format_version > 1 " +
    `AND EXISTS (SELECT 1 FROM ${columnIds.from} JOIN ${prefix}columns c ON c.table_id = e.table_id ` +
    "AND c.id = j.id WHERE c.widened_version > e.schema_version)";
  // Division rounds towards zero, so days before 1970 take a step down.
  return (
    `SELECT u.table_id, (u.min_at_ns / 86400000000000) - ${isBefore1970} AS day, count(*) AS extent_count, ` +
    "sum(u.row_count) AS row_count, sum(u.size_bytes) AS size_bytes, min(u.id) AS oldest_id, " +
    `min(u.begin_snapshot) AS first_snapshot FROM (${never} UNION ALL ${widened}) u ` +
    `WHERE (u.format <> 'parquet' OR u.size_bytes < ${belowBytes}) AND u.begin_snapshot <= ${upTo} ` +
    "GROUP BY 1, 2 ORDER BY oldest_id, 1, 2"
  );
}

/** The bytes and the snapshot. */
export function unpublishedDaysValues({ belowBytes, upTo }: UnpublishedRequest): [number, number] {
  return [belowBytes ?? Number.MAX_SAFE_INTEGER, upTo ?? Number.MAX_SAFE_INTEGER];
}

export function toUnpublishedDay(row: Readonly<Record<string, unknown>>): UnpublishedDay {
  return {
    tableId: Number(row["table_id"]),
    dayMs: Number(row["day"]) * DAY_MS,
    extents: Number(row["extent_count"]),
    rows: Number(row["row_count"]),
    sizeBytes: Number(row["size_bytes"]),
    sinceMs: timeOfId(String(row["oldest_id"])),
    firstSnapshot: Number(row["first_snapshot"]),
  };
}
