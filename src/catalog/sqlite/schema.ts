import type { ColumnRecord, DatabaseRecord, TableRecord, TableSummary } from "../catalog.ts";
import { ColumnCache } from "../column-cache.ts";
import { foldName } from "../../core/names.ts";
import { toColumn, toDatabase, toTableRecord } from "../rows.ts";
import type { Connection, Row } from "../../db/sqlite/connection.ts";

/** Reads databases, tables and columns on one connection. */
export class SchemaReader {
  readonly #connection: Connection;
  readonly #columns = new ColumnCache();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  databases(): DatabaseRecord[] {
    const sql = "SELECT id, name FROM databases WHERE dropped_at_ms IS NULL ORDER BY folded_name";
    return this.#connection.all(sql).map(toDatabase);
  }

  database(name: string): DatabaseRecord | undefined {
    const sql = "SELECT id, name FROM databases WHERE folded_name = ? AND dropped_at_ms IS NULL";
    const row = this.#connection.get(sql, foldName(name));
    return row === undefined ? undefined : toDatabase(row);
  }

  table(database: string, name: string): TableRecord | undefined {
    const where = "WHERE d.folded_name = ? AND t.folded_name = ?";
    return this.#toTable(this.#connection.get(`${TABLE} ${where}`, foldName(database), foldName(name)));
  }

  tableById(id: number): TableRecord | undefined {
    return this.#toTable(this.#connection.get(`${TABLE} WHERE t.id = ?`, id));
  }

  /** The columns of a table, dropped or not: queries that began before read on. */
  columnsById(id: number): readonly ColumnRecord[] {
    const row = this.#connection.get("SELECT schema_version FROM tables WHERE id = ?", id);
    return row === undefined ? [] : this.#columnsOf(id, Number(row["schema_version"]));
  }

  /** Whether a table had that id that was dropped since. */
  isDropped(id: number): boolean {
    return this.#connection.get("SELECT 1 FROM tables WHERE id = ? AND dropped_at_ms IS NOT NULL", id) !== undefined;
  }

  tables(database: string): TableRecord[] {
    const rows = this.#connection.all(`${TABLE} WHERE d.folded_name = ? ORDER BY t.folded_name`, foldName(database));
    return rows.flatMap((row) => this.#toTable(row) ?? []);
  }

  allTables(): TableRecord[] {
    return this.#connection.all(`${TABLE} ORDER BY t.id`).flatMap((row) => this.#toTable(row) ?? []);
  }

  summaries(database: string | undefined): TableSummary[] {
    const where = database === undefined ? "" : "WHERE d.folded_name = ?";
    const sql = `SELECT ${FIELDS}, ${COLUMN_COUNT} AS column_count ${ALIVE} ${where} ORDER BY d.folded_name, t.folded_name`;
    const rows = database === undefined ? this.#connection.all(sql) : this.#connection.all(sql, foldName(database));
    return rows.map((row) => Object.assign(toTableRecord(row), { columnCount: Number(row["column_count"]) }));
  }

  generation(): number {
    return Number(this.#connection.get("SELECT schema_generation AS n FROM meta")?.["n"]);
  }

  /** Forgets the columns read so far: what a transaction read of its own changes is wrong once it is rolled back. */
  forget(): void {
    this.#columns.clear();
  }

  #toTable(row: Row | undefined): TableRecord | undefined {
    if (row === undefined) return undefined;
    const table = toTableRecord(row);
    return { ...table, columns: this.#columnsOf(table.id, table.schemaVersion) };
  }

  // The version bounds what is read: the table's row and its columns are two statements, between which another
  // connection may add columns.
  #columnsOf(tableId: number, schemaVersion: number): readonly ColumnRecord[] {
    const cached = this.#columns.get(tableId, schemaVersion);
    if (cached !== undefined) return cached;
    const columns = Object.freeze(this.#connection.all(COLUMNS, schemaVersion, tableId, schemaVersion).map(toColumn));
    this.#columns.set(tableId, schemaVersion, columns);
    return columns;
  }
}

/** Parameters: version, table, version. A column that was widened later is what it was. */
const COLUMNS =
  "SELECT c.id, c.name, iif(c.widened_version > v.version, 'long', c.type) AS type, c.since_snapshot, c.origin, " +
  "iif(c.widened_version <= v.version, c.widened_version, NULL) AS widened_version, c.widened_snapshot " +
  "FROM columns c JOIN (SELECT ? AS version) v WHERE c.table_id = ? AND c.since_version <= ? ORDER BY c.id";

const FIELDS =
  "t.id, t.database_id, d.name AS database, t.name, t.schema_version, t.retention_days, t.cluster_by, " +
  "t.infer_types, t.open_lag_secs";

const ALIVE = "FROM databases d JOIN tables t ON t.database_id = d.id AND t.dropped_at_ms IS NULL";

const TABLE = `SELECT ${FIELDS} ${ALIVE}`;

const COLUMN_COUNT = "(SELECT count(*) FROM columns c WHERE c.table_id = t.id AND c.since_version <= t.schema_version)";
