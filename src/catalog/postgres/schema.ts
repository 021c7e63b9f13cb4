import { foldName } from "../../core/names.ts";
import type { ColumnRecord, DatabaseRecord, Resolution, TableRecord, TableSummary } from "../catalog.ts";
import { ColumnCache } from "../column-cache.ts";
import { isStorableText } from "../invariants.ts";
import { toColumn, toDatabase, toTableRecord } from "../rows.ts";
import type { Connection, Parameter, Row } from "../../db/postgres/connection.ts";
import type { Database } from "../../db/postgres/database.ts";

/** A table with the id that its next column gets. */
export type StoredTable = TableRecord & { nextColumnId: number };

/** Reads databases, tables and columns. Every call asks the database; columns of a known version are not read again. */
export class SchemaReader {
  readonly #database: Database;
  readonly #columns = new ColumnCache();
  /** Tables as they were last seen: a commit begins with them, and is told when they have moved. */
  readonly #seen = new Map<number, StoredTable>();

  constructor(database: Database) {
    this.#database = database;
  }

  async databases(): Promise<DatabaseRecord[]> {
    const sql = "SELECT id, name FROM engine.databases WHERE dropped_at_ms IS NULL ORDER BY folded_name";
    return (await this.#database.rows(sql)).map(toDatabase);
  }

  async database(name: string): Promise<DatabaseRecord | undefined> {
    if (!isStorableText(name)) return undefined;
    const sql = "SELECT id, name FROM engine.databases WHERE folded_name = $1 AND dropped_at_ms IS NULL";
    const [row] = await this.#database.rows(sql, [foldName(name)]);
    return row === undefined ? undefined : toDatabase(row);
  }

  async table(database: string, name: string): Promise<TableRecord | undefined> {
    if (!isStorableText(database) || !isStorableText(name)) return undefined;
    const where = "WHERE d.folded_name = $1 AND t.folded_name = $2";
    const [table] = await this.#read(where, [foldName(database), foldName(name)]);
    return table === undefined ? undefined : withoutNextId(table);
  }

  async resolve(database: string, names: readonly string[]): Promise<Resolution | undefined> {
    if (!isStorableText(database)) return undefined;
    const wanted = names.filter(isStorableText).map(foldName);
    return await this.#database.read(async (connection) => {
      const rows = await connection.query(RESOLVE, [foldName(database), JSON.stringify(wanted)]);
      const [first] = rows;
      if (first === undefined) throw new Error("the catalog has no head");
      if (first["known_id"] === null) return undefined;
      const found = await this.#withColumns(
        connection,
        rows.filter((row) => row["id"] !== null),
      );
      const tables = new Map(found.map((table) => [foldName(table.name), withoutNextId(table)]));
      return {
        database: { id: Number(first["known_id"]), name: String(first["database"]) },
        head: { id: Number(first["snapshot_id"]), committedAtMs: Number(first["committed_at_ms"]) },
        tables: names.map((name) => tables.get(foldName(name))),
      };
    });
  }

  /** The table as it is now. */
  async tableById(id: number): Promise<StoredTable | undefined> {
    const [table] = await this.#read("WHERE t.id = $1", [id]);
    return table;
  }

  /** Those of the tables that were dropped and not forgotten. */
  async dropped(ids: readonly number[]): Promise<Set<number>> {
    const sql =
      "SELECT id FROM engine.tables WHERE dropped_at_ms IS NOT NULL " +
      "AND id IN (SELECT json_array_elements_text($1::text::json)::bigint)";
    const rows = ids.length === 0 ? [] : await this.#database.rows(sql, [JSON.stringify(ids)]);
    return new Set(rows.map(({ id }) => Number(id)));
  }

  /** The table as it was last seen, or as it is now. */
  async seenTable(id: number): Promise<StoredTable | undefined> {
    return this.#seen.get(id) ?? (await this.tableById(id));
  }

  async tables(database: string): Promise<TableRecord[]> {
    if (!isStorableText(database)) return [];
    const found = await this.#read("WHERE d.folded_name = $1 ORDER BY t.folded_name", [foldName(database)]);
    return found.map(withoutNextId);
  }

  async allTables(): Promise<TableRecord[]> {
    return (await this.#read("ORDER BY t.id", [])).map(withoutNextId);
  }

  async summaries(database: string | undefined): Promise<TableSummary[]> {
    if (database !== undefined && !isStorableText(database)) return [];
    const where = database === undefined ? "" : "WHERE d.folded_name = $1";
    const sql = `SELECT ${FIELDS}, ${COLUMN_COUNT} AS column_count ${ALIVE} ${where} ORDER BY d.folded_name, t.folded_name`;
    const rows = await this.#database.rows(sql, database === undefined ? [] : [foldName(database)]);
    return rows.map((row) => Object.assign(toTableRecord(row), { columnCount: Number(row["column_count"]) }));
  }

  async generation(): Promise<number> {
    const [row] = await this.#database.rows("SELECT schema_generation FROM engine.head");
    return Number(row?.["schema_generation"]);
  }

  /** The columns of a table at a schema version; none when there is no such table. */
  async columnsAt(connection: Connection, tableId: number, version: number): Promise<readonly ColumnRecord[]> {
    const columns = await this.#columnsOf(connection, [{ id: tableId, schema_version: version }]);
    return columns.get(tableId) ?? [];
  }

  #read(where: string, parameters: readonly Parameter[]): Promise<StoredTable[]> {
    return this.#database.read(async (connection) => {
      return await this.#withColumns(connection, await connection.query(`${TABLE} ${where}`, parameters));
    });
  }

  async #withColumns(connection: Connection, rows: readonly Row[]): Promise<StoredTable[]> {
    const columns = await this.#columnsOf(connection, rows);
    return rows.flatMap((row) => {
      const own = columns.get(Number(row["id"]));
      return own === undefined ? [] : [this.#note(toTable(row, own))];
    });
  }

  #note(table: StoredTable): StoredTable {
    const seen = this.#seen.get(table.id);
    if (seen === undefined && this.#seen.size >= SEEN_TABLES) {
      const [first] = this.#seen.keys();
      if (first !== undefined) this.#seen.delete(first);
    }
    if (seen === undefined || seen.schemaVersion <= table.schemaVersion) this.#seen.set(table.id, table);
    return table;
  }

  // The version bounds what is read: tables and columns are two statements, between which columns may be added.
  async #columnsOf(connection: Connection, rows: readonly Row[]): Promise<Map<number, readonly ColumnRecord[]>> {
    const known = new Map<number, readonly ColumnRecord[]>();
    const unknown = rows.flatMap((row) => {
      const [id, version] = [Number(row["id"]), Number(row["schema_version"])];
      const cached = this.#columns.get(id, version);
      if (cached === undefined) return [{ id, version }];
      known.set(id, cached);
      return [];
    });
    if (unknown.length === 0) return known;
    const read = Map.groupBy(await connection.query(COLUMNS, [JSON.stringify(unknown)]), (row) =>
      Number(row["table_id"]),
    );
    for (const { id, version } of unknown) {
      const columns = Object.freeze((read.get(id) ?? []).map(toColumn));
      this.#columns.set(id, version, columns);
      known.set(id, columns);
    }
    return known;
  }
}

const SEEN_TABLES = 10_000;

const FIELDS =
  "t.id, t.database_id, d.name AS database, t.name, t.schema_version, t.next_column_id, t.retention_days, " +
  "t.cluster_by, t.infer_types, t.open_lag_secs";

const ALIVE = "FROM engine.databases d JOIN engine.tables t ON t.database_id = d.id AND t.dropped_at_ms IS NULL";

const TABLE = `SELECT ${FIELDS} ${ALIVE}`;

const COLUMN_COUNT =
  "(SELECT count(*) FROM engine.columns c WHERE c.table_id = t.id AND c.since_version <= t.schema_version)";

/** At least one row: the head, with or without a database, with or without tables. */
const RESOLVE =
  `SELECT h.snapshot_id, h.committed_at_ms, d.id AS known_id, ${FIELDS} FROM engine.head h ` +
  "LEFT JOIN engine.databases d ON d.folded_name = $1 AND d.dropped_at_ms IS NULL " +
  "LEFT JOIN engine.tables t ON t.database_id = d.id AND t.dropped_at_ms IS NULL " +
  "AND t.folded_name = ANY (ARRAY(SELECT json_array_elements_text($2::text::json)))";

const COLUMNS =
  "SELECT c.table_id, c.id, c.name, c.since_snapshot, c.origin, " +
  // A column that was widened later is what it was.
  "CASE WHEN c.widened_version > w.version THEN 'long' ELSE c.type END AS type, " +
  "CASE WHEN c.widened_version <= w.version THEN c.widened_version END AS widened_version, c.widened_snapshot " +
  "FROM json_to_recordset($1::text::json) AS w (id bigint, version integer) " +
  "JOIN engine.columns c ON c.table_id = w.id AND c.since_version <= w.version ORDER BY c.table_id, c.id";

function toTable(row: Row, columns: readonly ColumnRecord[]): StoredTable {
  return { ...toTableRecord(row), columns, nextColumnId: Number(row["next_column_id"]) };
}

export function withoutNextId({ nextColumnId: _next, ...table }: StoredTable): TableRecord {
  return table;
}
