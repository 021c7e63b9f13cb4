import { EngineError } from "../../core/errors.ts";
import { LIMITS } from "../../core/limits.ts";
import { checkName, checkNewDatabase, foldName, isDuckDbName } from "../../core/names.ts";
import { formatColumnType, originOf, type ColumnOrigin, type ColumnSpec } from "../../format/types.ts";
import type { CreateTable, DatabaseRecord, TableRecord } from "../catalog.ts";
import { clusterColumns, encodeClusterBy } from "../cluster-columns.ts";
import { columnIdsAreNeverReused } from "../invariants.ts";
import {
  checkOpenLag,
  checkRetention,
  columnsToCreate,
  missingColumns,
  vectorOnRows,
  vectorsAmong,
} from "../new-columns.ts";
import type { Database } from "../../db/postgres/database.ts";
import { widenable } from "../widening.ts";
import { withoutNextId, type SchemaReader, type StoredTable } from "./schema.ts";
import { ColumnWidening } from "./widening.ts";

/** Columns as the database takes them, and the version that they make of their table. */
export type NewColumn = {
  table_id: number;
  id: number;
  name: string;
  folded_name: string;
  type: string;
  origin: ColumnOrigin;
  since_version: number;
};
export type NewVersion = { table_id: number; expected: number; version: number; next_column_id: number };

const ADD =
  "SELECT CASE WHEN engine.add_columns($1::text::json, $2::text::json) THEN 'added' ELSE 'stale' END AS outcome";
const ADD_TO_EMPTY = "SELECT engine.add_columns_to_empty($1::text::json, $2::text::json) AS outcome";

function described(column: ColumnSpec) {
  const { name, type } = column;
  return { name, folded_name: foldName(name), type: formatColumnType(type), origin: originOf(column) };
}

/** Gives ids that no column of the table has ever had, under the version that follows the table's. */
export function numberColumns(table: StoredTable, columns: readonly ColumnSpec[]): NewColumn[] {
  const { id: tableId, nextColumnId } = table;
  const numbered = columns.map((column, i) => ({ ...column, id: nextColumnId + i }));
  columnIdsAreNeverReused(tableId, numbered, nextColumnId + numbered.length);
  const place = { table_id: tableId, since_version: table.schemaVersion + 1 };
  return numbered.map(({ id, ...column }) => Object.assign({ id }, place, described(column)));
}

/** Creates and changes databases, tables and columns. */
export class SchemaWriter {
  readonly #database: Database;
  readonly #schema: SchemaReader;
  readonly #widening: ColumnWidening;

  constructor(database: Database, schema: SchemaReader) {
    this.#database = database;
    this.#schema = schema;
    this.#widening = new ColumnWidening(database);
  }

  async createDatabase(name: string): Promise<{ database: DatabaseRecord; created: boolean }> {
    checkName("database", name);
    await this.#checkDatabase(name);
    const sql = "SELECT engine.create_database($1, $2) AS created";
    const [row] = await this.#database.write(sql, [name, foldName(name)]);
    const database = await this.#schema.database(name);
    if (database === undefined) throw new Error(`database ${name} vanished after it was created`);
    return { database, created: row?.["created"] === true };
  }

  /** Throws for a database that is not there and may not be made. */
  async #checkDatabase(name: string): Promise<void> {
    if (isDuckDbName(name) && (await this.#schema.database(name)) === undefined) checkNewDatabase(name);
  }

  async createTable(request: CreateTable): Promise<{ table: TableRecord; created: boolean }> {
    const { database, name, retentionDays, openLagSecs } = request;
    checkName("database", database);
    checkName("table", name);
    checkRetention(retentionDays);
    checkOpenLag(openLagSecs);
    const existing = await this.#schema.table(database, name);
    if (existing !== undefined) return { table: existing, created: false };
    if (request.wasThere !== true) await this.#checkDatabase(database);
    const specs = columnsToCreate(request.columns);
    const clusterBy = encodeClusterBy(clusterColumns(specs, request.clusterBy ?? []));
    const columns = specs.map((column, i) => Object.assign({ id: i + 1 }, described(column)));
    const settings = {
      retention_days: retentionDays ?? null,
      cluster_by: clusterBy,
      infer_types: request.inferTypes ?? null,
      open_lag_secs: openLagSecs ?? null,
    };
    // Somebody may drop it before it is read back.
    for (let attempt = 1; attempt <= LIMITS.commitAttempts; attempt++) {
      const [row] = await this.#database.write(
        "SELECT engine.create_table_with($1, $2, $3, $4, $5::text::json, $6::text::json) AS created",
        [database, foldName(database), name, foldName(name), JSON.stringify(settings), JSON.stringify(columns)],
      );
      const table = await this.#schema.table(database, name);
      if (table !== undefined) return { table, created: row?.["created"] === true };
    }
    throw new EngineError("conflict", `table ${name} was dropped ${LIMITS.commitAttempts} times while it was created`);
  }

  async addColumns(tableId: number, wanted: readonly ColumnSpec[]): Promise<TableRecord> {
    for (let attempt = 1; attempt <= LIMITS.commitAttempts; attempt++) {
      const table = await this.#existing(tableId);
      const missing = missingColumns(table, wanted);
      if (missing.kind === "conflict") throw missing.error;
      if (missing.columns.length === 0) return withoutNextId(table);
      const columns = numberColumns(table, missing.columns);
      const version: NewVersion = {
        table_id: tableId,
        expected: table.schemaVersion,
        version: table.schemaVersion + 1,
        next_column_id: table.nextColumnId + columns.length,
      };
      const needsEmpty = vectorsAmong(missing.columns).length > 0;
      const [row] = await this.#database.write(needsEmpty ? ADD_TO_EMPTY : ADD, [
        JSON.stringify([version]),
        JSON.stringify(columns),
      ]);
      if (row?.["outcome"] === "rows") throw vectorOnRows(table, missing.columns);
      if (row?.["outcome"] === "added") return withoutNextId(await this.#existing(tableId));
    }
    throw new EngineError("unavailable", `the columns of table id ${tableId} change too often; try again`);
  }

  async setRetention(tableId: number, days: number | undefined): Promise<TableRecord> {
    checkRetention(days);
    await this.#database.write("SELECT engine.set_retention($1::bigint, $2::integer)", [tableId, days ?? null]);
    return withoutNextId(await this.#existing(tableId));
  }

  async setClusterBy(tableId: number, wanted: readonly string[]): Promise<TableRecord> {
    // Columns only ever come, so what this was judged by stays true.
    const clusterBy = clusterColumns((await this.#existing(tableId)).columns, wanted);
    await this.#database.write("SELECT engine.set_cluster_by($1::bigint, $2)", [tableId, encodeClusterBy(clusterBy)]);
    return withoutNextId(await this.#existing(tableId));
  }

  async setInferTypes(tableId: number, inferTypes: boolean | undefined): Promise<TableRecord> {
    const value = inferTypes === undefined ? null : String(inferTypes);
    await this.#database.write("SELECT engine.set_infer_types($1::bigint, $2::text::boolean)", [tableId, value]);
    return withoutNextId(await this.#existing(tableId));
  }

  async setOpenLag(tableId: number, secs: number | undefined): Promise<TableRecord> {
    checkOpenLag(secs);
    await this.#database.write("SELECT engine.set_open_lag($1::bigint, $2::integer)", [tableId, secs ?? null]);
    return withoutNextId(await this.#existing(tableId));
  }

  async widenColumns(tableId: number, names: readonly string[]): Promise<TableRecord> {
    for (let attempt = 1; attempt <= LIMITS.commitAttempts; attempt++) {
      const table = await this.#existing(tableId);
      const wanted = widenable(table, names);
      if (wanted.length === 0) return withoutNextId(table);
      const outcome = await this.#widening.widen(table, wanted);
      if (outcome !== "stale") return withoutNextId(await this.#existing(tableId));
    }
    throw new EngineError("unavailable", `the columns of table id ${tableId} change too often; try again`);
  }

  async #existing(tableId: number): Promise<StoredTable> {
    const table = await this.#schema.tableById(tableId);
    if (table === undefined) throw new EngineError("table_not_found", `there is no table with the id ${tableId}`);
    return table;
  }
}
