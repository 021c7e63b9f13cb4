import { foldName } from "../../core/names.ts";
import { parseColumnType } from "../../format/types.ts";
import type { ColumnRecord, DatabaseRecord, TableRecord } from "../catalog.ts";
import { ColumnCache } from "../column-cache.ts";
import { isStorableText } from "../invariants.ts";
import type { Connection, Parameter, Row } from "./connection.ts";
import type { Database } from "./database.ts";

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
    return (await this.#database.rows("SELECT id, name FROM engine.databases ORDER BY folded_name")).map(toDatabase);
  }

  async database(name: string): Promise<DatabaseRecord | undefined> {
    if (!isStorableText(name)) return undefined;
    const sql = "SELECT id, name FROM engine.databases WHERE folded_name = $1";
    const [row] = await this.#database.rows(sql, [foldName(name)]);
    return row === undefined ? undefined : toDatabase(row);
  }

  async table(database: string, name: string): Promise<TableRecord | undefined> {
    if (!isStorableText(database) || !isStorableText(name)) return undefined;
    const where = "WHERE d.folded_name = $1 AND t.folded_name = $2";
    const [table] = await this.#read(where, [foldName(database), foldName(name)]);
    return table === undefined ? undefined : withoutNextId(table);
  }

  /** The table as it is now. */
  async tableById(id: number): Promise<StoredTable | undefined> {
    const [table] = await this.#read("WHERE t.id = $1", [id]);
    return table;
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
      const rows = await connection.query(`${TABLE} ${where}`, parameters);
      const columns = await this.#columnsOf(connection, rows);
      return rows.flatMap((row) => {
        const own = columns.get(Number(row["id"]));
        return own === undefined ? [] : [this.#note(toTable(row, own))];
      });
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

const TABLE =
  "SELECT t.id, t.database_id, d.name AS database, t.name, t.schema_version, t.next_column_id, t.retention_days " +
  "FROM engine.databases d JOIN engine.tables t ON t.database_id = d.id";

const COLUMNS =
  "SELECT c.table_id, c.id, c.name, c.type, c.since_snapshot " +
  "FROM json_to_recordset($1::text::json) AS w (id bigint, version integer) " +
  "JOIN engine.columns c ON c.table_id = w.id AND c.since_version <= w.version ORDER BY c.table_id, c.id";

function toDatabase(row: Row): DatabaseRecord {
  return { id: Number(row["id"]), name: String(row["name"]) };
}

function toTable(row: Row, columns: readonly ColumnRecord[]): StoredTable {
  const table: StoredTable = {
    id: Number(row["id"]),
    databaseId: Number(row["database_id"]),
    database: String(row["database"]),
    name: String(row["name"]),
    schemaVersion: Number(row["schema_version"]),
    columns,
    nextColumnId: Number(row["next_column_id"]),
  };
  if (row["retention_days"] !== null) table.retentionDays = Number(row["retention_days"]);
  return table;
}

export function withoutNextId({ nextColumnId: _next, ...table }: StoredTable): TableRecord {
  return table;
}

export function toColumn(row: Row): ColumnRecord {
  const type = parseColumnType(String(row["type"]));
  if (type === undefined) throw new Error(`the catalog holds the unknown column type ${String(row["type"])}`);
  const column: ColumnRecord = { id: Number(row["id"]), name: String(row["name"]), type };
  const sinceSnapshot = Number(row["since_snapshot"]);
  return sinceSnapshot === 0 ? column : { ...column, sinceSnapshot };
}
