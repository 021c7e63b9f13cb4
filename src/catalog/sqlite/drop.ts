import type { Dropped, DroppedTable, Snapshot } from "../catalog.ts";
import { foldName } from "../../core/names.ts";
import type { Statement } from "../../db/records.ts";
import { bumpGeneration } from "./columns.ts";
import type { Connection } from "../../db/sqlite/connection.ts";
import { runRecords } from "../../db/sqlite/records.ts";
import { insertSnapshot, nextSnapshot } from "./snapshots.ts";
import { readTotals } from "./totals.ts";

/** Dropping tables and databases, within transactions that the caller has begun: see `Catalog.dropTable`. */

type DropRequest = { nowMs: number; also: readonly Statement[] };

export function dropTable(connection: Connection, tableId: number, request: DropRequest): Dropped | undefined {
  const sql =
    "SELECT d.folded_name AS folded_database, t.folded_name FROM tables t JOIN databases d ON d.id = t.database_id " +
    "WHERE t.id = ? AND t.dropped_at_ms IS NULL";
  const row = connection.get(sql, tableId);
  if (row === undefined) return undefined;
  const place = { database: String(row["folded_database"]), table: String(row["folded_name"]) };
  return drop(connection, [tableId], request, (snapshot) => noteDrop(connection, place, snapshot));
}

export function dropDatabase(connection: Connection, databaseId: number, request: DropRequest): Dropped | undefined {
  const found = "FROM databases WHERE id = ? AND dropped_at_ms IS NULL";
  const row = connection.get(`SELECT folded_name ${found}`, databaseId);
  if (row === undefined) return undefined;
  const tables = connection.all("SELECT id FROM tables WHERE database_id = ? AND dropped_at_ms IS NULL", databaseId);
  const ids = tables.map(({ id }) => Number(id));
  return drop(connection, ids, request, (snapshot) => {
    noteDrop(connection, { database: String(row["folded_name"]), table: "" }, snapshot);
    connection.run(`UPDATE databases SET ${MARK} WHERE id = ?`, snapshot.committedAtMs, databaseId);
    forgetDatabase(connection, databaseId);
  });
}

/** Frees the name, under which the row is not found any more. */
const MARK = "name = name || '#' || id, folded_name = folded_name || '#' || id, dropped_at_ms = ?";

function drop(
  connection: Connection,
  tableIds: readonly number[],
  { nowMs, also }: DropRequest,
  note: (snapshot: Snapshot) => void,
): Dropped {
  const snapshot = nextSnapshot(connection, nowMs);
  const dropped = { snapshot, tables: tableIds.length, rows: 0, extents: 0, sizeBytes: 0 };
  const end = "UPDATE extents SET end_snapshot = ?, deleted_at_ms = ? WHERE table_id = ? AND end_snapshot IS NULL";
  for (const id of tableIds) {
    const totals = readTotals(connection, id);
    dropped.rows += totals.rows;
    dropped.extents += totals.extents;
    dropped.sizeBytes += totals.sizeBytes;
    connection.run(end, snapshot.id, snapshot.committedAtMs, id);
    connection.run("UPDATE table_totals SET row_count = 0, extent_count = 0, size_bytes = 0 WHERE table_id = ?", id);
    // A node that still knows the table must find no key of it.
    connection.run("DELETE FROM ledger WHERE table_id = ?", id);
    connection.run(`UPDATE tables SET ${MARK} WHERE id = ?`, snapshot.committedAtMs, id);
  }
  insertSnapshot(connection, snapshot);
  note(snapshot);
  bumpGeneration(connection);
  runRecords(connection, nowMs, also);
  return dropped;
}

const NOTE =
  "INSERT INTO drops (folded_database, folded_table, dropped_at_ms) VALUES (?, ?, ?) " +
  "ON CONFLICT (folded_database, folded_table) DO UPDATE SET dropped_at_ms = excluded.dropped_at_ms";

function noteDrop(
  connection: Connection,
  { database, table }: { database: string; table: string },
  { committedAtMs }: Snapshot,
): void {
  connection.run(NOTE, database, table, committedAtMs);
}

export function readDroppedAt(connection: Connection, database: string, table: string): number | undefined {
  const sql = "SELECT max(dropped_at_ms) AS ms FROM drops WHERE folded_database = ? AND folded_table IN (?, '')";
  const ms = connection.get(sql, foldName(database), foldName(table))?.["ms"];
  return typeof ms === "number" ? ms : undefined;
}

export function readDroppedTables(connection: Connection): DroppedTable[] {
  const sql =
    "SELECT t.id, t.name, t.dropped_at_ms, d.name AS database FROM tables t JOIN databases d ON d.id = t.database_id " +
    "WHERE t.dropped_at_ms IS NOT NULL ORDER BY t.id";
  return connection.all(sql).map((row) => ({
    id: Number(row["id"]),
    database: withoutMark(row["database"]),
    name: withoutMark(row["name"]),
    droppedAtMs: Number(row["dropped_at_ms"]),
  }));
}

/** No name that was ever accepted has this sign. */
function withoutMark(name: unknown): string {
  return String(name).replace(/#.*$/, "");
}

export function forgetTable(connection: Connection, tableId: number): boolean {
  const row = connection.get("SELECT database_id FROM tables WHERE id = ? AND dropped_at_ms IS NOT NULL", tableId);
  if (row === undefined) return false;
  if (connection.get("SELECT 1 FROM extents WHERE table_id = ? LIMIT 1", tableId) !== undefined) return false;
  for (const table of ["columns", "table_totals", "ledger"]) {
    connection.run(`DELETE FROM ${table} WHERE table_id = ?`, tableId);
  }
  connection.run("DELETE FROM tables WHERE id = ?", tableId);
  forgetDatabase(connection, Number(row["database_id"]));
  return true;
}

function forgetDatabase(connection: Connection, databaseId: number): void {
  const sql =
    "DELETE FROM databases WHERE id = ? AND dropped_at_ms IS NOT NULL " +
    "AND NOT EXISTS (SELECT 1 FROM tables WHERE database_id = ?)";
  connection.run(sql, databaseId, databaseId);
}
