import type { TableChange } from "./catalog.ts";

/**
 * The statement of `Catalog.tableChanges`, for both databases.
 *
 * `prefix` is that of the tables' names; `tables` is a query for their ids and `from` a value of the statement. Where values
 * have no numbers they are: those of `tables`, from, those of `tables`, from.
 */
export function tableChangesSql(of: { prefix: string; tables: string; from: string }): string {
  const { prefix, tables, from } = of;
  const where = `FROM ${prefix}extents WHERE table_id IN (${tables})`;
  return (
    "SELECT c.id, c.table_id, sum(c.added) AS added, sum(c.removed) AS removed, sum(c.rows_added) AS rows_added, " +
    "sum(c.rows_removed) AS rows_removed FROM (" +
    "SELECT table_id, begin_snapshot AS id, 1 AS added, 0 AS removed, row_count AS rows_added, 0 AS rows_removed " +
    `${where} AND begin_snapshot >= ${from} ` +
    `UNION ALL SELECT table_id, end_snapshot, 0, 1, 0, row_count ${where} AND end_snapshot IS NOT NULL AND end_snapshot >= ${from}` +
    ") c GROUP BY c.id, c.table_id ORDER BY c.id DESC, c.table_id"
  );
}

export function toTableChange(row: Readonly<Record<string, unknown>>): TableChange {
  return {
    snapshot: Number(row["id"]),
    tableId: Number(row["table_id"]),
    added: Number(row["added"]),
    removed: Number(row["removed"]),
    rowsAdded: Number(row["rows_added"]),
    rowsRemoved: Number(row["rows_removed"]),
  };
}
