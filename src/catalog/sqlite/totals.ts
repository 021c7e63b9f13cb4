import type { TableTotals } from "../invariants.ts";
import { toTotals } from "../rows.ts";
import type { Connection } from "../../db/sqlite/connection.ts";

/** Rows, live extents and bytes of a table at the head. */
export function readTotals(connection: Connection, tableId: number): TableTotals {
  const sql = "SELECT row_count, extent_count, size_bytes FROM table_totals WHERE table_id = ?";
  return toTotals(connection.get(sql, tableId));
}

const ADD =
  "UPDATE table_totals SET row_count = row_count + ?, extent_count = extent_count + ?, size_bytes = size_bytes + ? " +
  "WHERE table_id = ?";

/** Adds to a table's totals; negative numbers take away. */
export function addToTotals(connection: Connection, tableId: number, { rows, extents, sizeBytes }: TableTotals): void {
  if (extents === 0) return;
  connection.run(ADD, rows, extents, sizeBytes, tableId);
}
