import type { ColumnRecord, TableRecord } from "../catalog.ts";
import { foldName } from "../../core/names.ts";
import { formatColumnType, originOf, type ColumnSpec } from "../../format/types.ts";
import { columnIdsAreNeverReused } from "../invariants.ts";
import type { Connection } from "../../db/sqlite/connection.ts";
import { widenable } from "../widening.ts";
import type { FarValues } from "./far-values.ts";
import type { SchemaReader } from "./schema.ts";
import { readHead } from "./snapshots.ts";

/** Adds columns that `missingColumns` found and moves the schema version by one; the table as it is then. */
export function addNewColumns(
  connection: Connection,
  schema: SchemaReader,
  table: TableRecord,
  columns: readonly ColumnSpec[],
): TableRecord {
  if (columns.length === 0) return table;
  return changed(connection, schema, table, (since) => insertColumns(connection, table.id, columns, since));
}

/** Moves the schema version by one and makes a change of columns under it; the table as it is then. */
function changed(
  connection: Connection,
  schema: SchemaReader,
  table: TableRecord,
  change: (sinceSnapshot: number) => void,
): TableRecord {
  const sql = "UPDATE tables SET schema_version = schema_version + 1 WHERE id = ?";
  connection.run(sql, table.id);
  // A commit that brings columns is the next snapshot; to be changed without rows is to be there for the next one.
  change(readHead(connection).id + 1);
  bumpGeneration(connection);
  const after = schema.tableById(table.id);
  if (after === undefined) throw new Error(`table id ${table.id} vanished inside a transaction`);
  return after;
}

/** Widens what can be widened: see `Catalog.widenColumns`. */
export function widenColumns(
  connection: Connection,
  schema: SchemaReader,
  table: TableRecord,
  names: readonly string[],
  far: FarValues,
): TableRecord {
  const wider = widenable(table, names).filter(({ id }) => !far.has(table.id, id));
  if (wider.length === 0) return table;
  const sql =
    "UPDATE columns SET type = 'real', widened_version = ?, widened_snapshot = ? WHERE table_id = ? AND id = ?";
  return changed(connection, schema, table, (since) => {
    for (const { id } of wider) connection.run(sql, table.schemaVersion + 1, since, table.id, id);
  });
}

/**
 * Inserts columns under the table's current schema version, with ids that no column of it has ever had. `since` is the
 * first snapshot that has them, 0 for every one.
 */
export function insertColumns(
  connection: Connection,
  tableId: number,
  columns: readonly ColumnSpec[],
  since: number,
): void {
  const row = connection.get("SELECT next_column_id, schema_version FROM tables WHERE id = ?", tableId);
  const firstId = Number(row?.["next_column_id"]);
  const version = Number(row?.["schema_version"]);
  const records: ColumnRecord[] = columns.map((column, i) => ({ ...column, id: firstId + i }));
  const nextId = firstId + records.length;
  columnIdsAreNeverReused(tableId, records, nextId);
  const sql =
    "INSERT INTO columns (table_id, id, name, folded_name, type, since_version, since_snapshot, origin) " +
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
  for (const record of records) {
    const { id, name, type } = record;
    connection.run(sql, tableId, id, name, foldName(name), formatColumnType(type), version, since, originOf(record));
  }
  connection.run("UPDATE tables SET next_column_id = ? WHERE id = ?", nextId, tableId);
}

/** Tells every process that what it knows of databases, tables and columns is out of date. */
export function bumpGeneration(connection: Connection): void {
  connection.run("UPDATE meta SET schema_generation = schema_generation + 1");
}
