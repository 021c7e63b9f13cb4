import type { FileChange } from "./catalog.ts";
import { toSnapshot } from "./rows.ts";

/**
 * The statement of `Catalog.fileChanges`, for both databases.
 *
 * `prefix` is that of the tables' names; `table` and `after` are values of the statement, `also` is a query for snapshots.
 * Where values have no numbers they are: table, after, table, after, those of `also`, after.
 */
export function fileChangesSql(of: { prefix: string; table: string; after: string; also: string }): string {
  const { prefix, table, after, also } = of;
  const publishable = `${prefix}extents WHERE table_id = ${table} AND format = 'parquet' AND format_version > 1`;
  return (
    "SELECT s.id, s.committed_at_ms, sum(c.added) AS added, sum(c.removed) AS removed FROM (" +
    `SELECT begin_snapshot AS id, 1 AS added, 0 AS removed FROM ${publishable} AND begin_snapshot > ${after} ` +
    `UNION ALL SELECT end_snapshot, 0, 1 FROM ${publishable} AND end_snapshot IS NOT NULL AND end_snapshot > ${after} ` +
    `UNION ALL SELECT id, 0, 0 FROM (${also}) a WHERE id > ${after}` +
    `) c JOIN ${prefix}snapshots s ON s.id = c.id GROUP BY s.id, s.committed_at_ms ORDER BY s.id`
  );
}

export function toFileChange(row: Readonly<Record<string, unknown>>): FileChange {
  return { ...toSnapshot(row), added: Number(row["added"]), removed: Number(row["removed"]) };
}
