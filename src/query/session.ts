import { existsSync } from "node:fs";
import { join } from "node:path";
import { EngineError } from "../core/errors.ts";
import { foldName } from "../core/names.ts";
import {
  quoteIdentifier,
  quoteText,
  runSql,
  type Connection,
  type Database,
  type DuckDb,
} from "../io/duckdb/duckdb.ts";
import { registerTlmScan, type TlmScans } from "../io/duckdb/tlm-scan.ts";
import { checkQuery, type CheckedQuery } from "./check.ts";
import { asEngineError, isInQuery, readDuckDbError } from "./duckdb-error.ts";
import { textsToRun, travelView } from "./final-text.ts";
import { REFUSING_MACROS, TIME_MACROS } from "./macros.ts";
import { neededTables, type Need } from "./needs.ts";
import type { OutputColumn } from "./projection.ts";
import type { Done, Needs, ParseRequest, RunRequest, TableShape } from "./protocol.ts";
import { quoteAt, type QuotedText } from "./quote-at.ts";
import { writeResult } from "./result-writer.ts";
import { parseTree, SqlParser, type SqlContext } from "./sql-tree.ts";
import { openPivot, peel, type OpenPivot, type Statement } from "./statement.ts";
import { systemTablesOf, withSystemSchema } from "./system-mentions.ts";
import {
  SYSTEM_SCHEMA,
  SYSTEM_TABLES,
  SYSTEM_VIEWS_SCHEMA,
  systemViews,
  type SystemTableName,
} from "./system-tables.ts";
import type { TableUse } from "./table-use.ts";
import { QueryRefused, type JsonObject } from "./tree.ts";
import { tableQuery } from "./views.ts";

/**
 * The query engine inside a query process: one DuckDB, one query at a time.
 *
 * A query runs inside one transaction that is rolled back: `now()` is the same moment when bounds are computed and
 * when the query runs, and the views that stand for its tables vanish with it. The text runs as the user wrote it
 * wherever possible (`rewrite.ts` says where not), so that error positions and column names are DuckDB's own.
 */
export type SessionOptions = {
  duckdb: DuckDb;
  /** A folder of this process: results, spilled data. */
  folder: string;
  memoryBytes: number;
  /** Of disk, for what does not fit into memory. */
  spillBytes: number;
  threads: number;
};

type OpenQuery = SqlContext & {
  database: string;
  quoted: QuotedText;
  statement: Statement;
  node: JsonObject;
  pivot: OpenPivot | undefined;
  checked: CheckedQuery;
  needs: readonly Need[];
};

export class QuerySession {
  readonly #options: SessionOptions;
  readonly #duckdb: DuckDb;
  readonly #database: Database;
  readonly #scans: TlmScans;
  readonly #parser: SqlParser;
  #locked = false;
  #memoryBytes: number;
  #results = 0;
  #query: OpenQuery | undefined;

  private constructor(options: SessionOptions, database: Database, scans: TlmScans, parser: SqlParser) {
    this.#options = options;
    this.#duckdb = options.duckdb;
    this.#memoryBytes = options.memoryBytes;
    this.#database = database;
    this.#scans = scans;
    this.#parser = parser;
  }

  /** Opens the database; no user text is touched before `parse` has locked the configuration. */
  static async open(options: SessionOptions): Promise<QuerySession> {
    const { duckdb } = options;
    const database = await duckdb.open(":memory:");
    const connection = await duckdb.connect(database);
    const scans = registerTlmScan(duckdb, connection);
    for (const setting of settingsFor(options)) await duckdb.query(connection, `SET GLOBAL ${setting}`);
    for (const macro of [...TIME_MACROS, ...REFUSING_MACROS]) await duckdb.query(connection, `CREATE MACRO ${macro}`);
    // The first use of each of these is slow, and should not be a client's.
    const parser = await SqlParser.open(duckdb, options.memoryBytes);
    await parser.treeOf("SELECT now() - INTERVAL 1 HOUR");
    const columns = [{ name: "a", type: duckdb.create_logical_type(duckdb.Type.INTEGER) }];
    await writeResult(duckdb, connection, { columns, sql: "SELECT 1", format: "ndjson" }, join(options.folder, "warm"));
    duckdb.disconnect_sync(connection);
    return new QuerySession(options, database, scans, parser);
  }

  /** Parses and checks the text. The query stays open until `run` or `drop`. Throws `EngineError`. */
  async parse(request: ParseRequest): Promise<Needs> {
    const connection = await this.#duckdb.connect(this.#database);
    let quoted = quoteAt(request.text);
    try {
      await this.#lock(connection, request.roots);
      await this.#limitMemory(connection, request.memoryBytes);
      const context = { duckdb: this.#duckdb, connection, parser: this.#parser };
      refuseNul(quoted);
      const system = await findSystemTables(context, quoted, request.database);
      ({ quoted } = system);
      const query = await openQuery(context, request.database, system);
      this.#query = query;
      const tables = query.needs.map(({ table }) => table);
      return { kind: "needs", tables, listsTables: query.checked.listsTables, system: system.tables };
    } catch (error) {
      this.#duckdb.disconnect_sync(connection);
      throw this.#clientError(error, quoted, []);
    }
  }

  /** Runs the open query over the tables given, which closes it. Throws `EngineError`. */
  async run(request: RunRequest): Promise<Pick<Done, "rows" | "columns" | "data">> {
    const query = this.#query;
    if (query === undefined) throw new Error("run without parse");
    const file = join(this.#options.folder, `${this.#results++}.${request.format}`);
    try {
      await this.#createViews(query, request);
      const { sql, columns } = await this.#bind(query, request);
      const { explain } = query.statement;
      const { format } = request;
      const result =
        explain === undefined
          ? { columns, sql, format }
          : { ...(await this.#explain(query, `${explain} ${sql}`, request.pruning)), format };
      const written = await writeResult(this.#duckdb, query.connection, result, file);
      return { ...written, columns: result.columns.map(({ name }) => name) };
    } catch (error) {
      throw missingExtent(request) ?? this.#clientError(error, query.quoted, columnNames(request));
    } finally {
      this.drop();
    }
  }

  /** Closes the open query, if one is. */
  drop(): void {
    const query = this.#query;
    this.#query = undefined;
    // Closing the connection rolls its transaction back.
    if (query !== undefined) this.#duckdb.disconnect_sync(query.connection);
    this.#scans.clear();
  }

  /** From here on nothing but the folders named can be opened, and no setting can change. */
  async #lock(connection: Connection, roots: readonly string[]): Promise<void> {
    if (this.#locked) return;
    const folders = [this.#options.folder, ...roots].map(quoteText).join(", ");
    await this.#duckdb.query(connection, `SET GLOBAL allowed_directories = [${folders}]`);
    await this.#duckdb.query(connection, "SET GLOBAL enable_external_access = false");
    // Every query has a memory budget of its own; its text cannot reach these settings, for SET is no query.
    const changeable = ["memory_limit", "streaming_buffer_size"].map(quoteText).join(", ");
    await this.#duckdb.query(connection, `SET GLOBAL allowed_configs = [${changeable}]`);
    await this.#duckdb.query(connection, "SET GLOBAL lock_configuration = true");
    this.#locked = true;
  }

  async #limitMemory(connection: Connection, memoryBytes: number): Promise<void> {
    if (memoryBytes === this.#memoryBytes) return;
    this.#memoryBytes = memoryBytes;
    await this.#duckdb.query(connection, `SET GLOBAL memory_limit = '${memoryBytes}B'`);
  }

  async #createViews({ connection, database, checked, needs }: OpenQuery, request: RunRequest): Promise<void> {
    const schema = quoteIdentifier(database);
    const qualified = foldName(database) !== "main" && checked.tables.some((use) => use.schema !== "");
    if (qualified) await this.#duckdb.query(connection, `CREATE SCHEMA ${schema}`);
    const created = new Set<string>();
    for (const [i, { table: need }] of needs.entries()) {
      const table = request.tables[i];
      if (table === undefined) throw new Error("fewer tables than the query needs");
      const name = quoteIdentifier(need.travel === undefined ? table.name : travelView(i));
      await this.#duckdb.query(connection, `CREATE VIEW main.${name} AS ${tableQuery(table, this.#scans)}`);
      if (need.travel !== undefined) continue;
      created.add(foldName(table.name));
      if (qualified) await this.#duckdb.query(connection, `CREATE VIEW ${schema}.${name} AS FROM main.${name}`);
    }
    for (const table of request.listed) {
      if (created.has(foldName(table.name))) continue;
      const empty = tableQuery({ ...table, needed: undefined, extents: [], bareRows: 0 }, this.#scans);
      await this.#duckdb.query(connection, `CREATE VIEW main.${quoteIdentifier(table.name)} AS ${empty}`);
    }
    for (const statement of systemViews(request.system)) await this.#duckdb.query(connection, statement);
  }

  /** The text that will run, with its columns: the first candidate that DuckDB can bind to the tables. */
  async #bind(query: OpenQuery, request: RunRequest): Promise<{ sql: string; columns: OutputColumn[] }> {
    const { text } = query.statement;
    const candidates = await textsToRun(query, { ...query, text }, shapesOf(request));
    let failure: unknown;
    for (const { sql, asWritten } of candidates) {
      try {
        return { sql, columns: await this.#describe(query.connection, sql) };
      } catch (error) {
        failure = asWritten ? error : new Unplaced(error);
      }
    }
    throw failure;
  }

  async #describe(connection: Connection, sql: string): Promise<OutputColumn[]> {
    const statement = await this.#duckdb.prepare(connection, sql);
    try {
      return Array.from({ length: this.#duckdb.prepared_statement_column_count(statement) }, (_, i) => ({
        name: this.#duckdb.prepared_statement_column_name(statement, i),
        type: this.#duckdb.prepared_statement_column_logical_type(statement, i),
      }));
    } finally {
      this.#duckdb.destroy_prepare_sync(statement);
    }
  }

  /** The plan, as a query that gives its rows. */
  async #explain(
    query: OpenQuery,
    sql: string,
    pruning: readonly string[],
  ): Promise<{ sql: string; columns: OutputColumn[] }> {
    const rows = await runSql(this.#duckdb, query.connection, sql);
    rows.push(...pruning.map((text) => ["extents", text]));
    const values = rows.map(([key, value]) => `(${quoteText(key ?? "")}, ${quoteText(value ?? "")})`);
    const type = this.#duckdb.create_logical_type(this.#duckdb.Type.VARCHAR);
    const columns = ["explain_key", "explain_value"].map((name) => ({ name, type }));
    return { sql: `VALUES ${values.join(", ")}`, columns };
  }

  #clientError(thrown: unknown, quoted: QuotedText, columns: readonly string[]): unknown {
    if (thrown instanceof EngineError) return thrown;
    if (thrown instanceof RangeError) return new EngineError("invalid_query", "the query is nested too deeply");
    if (thrown instanceof QueryRefused) {
      const { message, position, suggestion } = thrown;
      return new EngineError("invalid_query", message, {
        ...(position === undefined ? {} : quoted.place(position)),
        ...(suggestion === undefined ? {} : { suggestion }),
      });
    }
    const error = readDuckDbError(thrown instanceof Unplaced ? thrown.cause : thrown);
    const placed = error.position !== undefined && !(thrown instanceof Unplaced) && isInQuery(error);
    const place = placed ? quoted.place(error.position ?? 0) : undefined;
    return asEngineError(error, place, columns, {
      memoryBytes: this.#memoryBytes,
      tempBytes: this.#options.spillBytes,
    });
  }
}

/** An error about a text that is not the user's own: its position means nothing to them. */
class Unplaced extends Error {
  constructor(cause: unknown) {
    super("a rewritten query does not bind", { cause });
  }
}

/** Where DuckDB puts what does not fit into memory, within the folder of a process. */
export function spillFolder(folder: string): string {
  return join(folder, "spill");
}

function settingsFor(options: SessionOptions): string[] {
  return [
    `memory_limit = '${options.memoryBytes}B'`,
    `threads = ${options.threads}`,
    `temp_directory = ${quoteText(spillFolder(options.folder))}`,
    `max_temp_directory_size = '${options.spillBytes}B'`,
    "TimeZone = 'UTC'",
    "errors_as_json = true",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
    // The newest 100 rows of a wide table read the wide columns of those rows only; the default is 50 rows.
    "late_materialization_max_rows = 1000",
  ];
}

type SystemMentions = { quoted: QuotedText; tables: readonly SystemTableName[] };

/** The system tables of the query, and its text with our name for their schema. */
async function findSystemTables(context: SqlContext, quoted: QuotedText, database: string): Promise<SystemMentions> {
  const none: SystemMentions = { quoted, tables: [] };
  if (!quoted.text.toLowerCase().includes(SYSTEM_SCHEMA)) return none;
  const { node } = await parseStatement(context, peel(quoted.text).text);
  const { tables: uses } = checkQuery(node);
  refuseOtherDatabases(uses, [database, SYSTEM_SCHEMA]);
  const tables = systemTablesOf(uses, quoted);
  return tables.length === 0 ? none : { quoted: withSystemSchema(quoted, node), tables };
}

function refuseOtherDatabases(uses: readonly TableUse[], allowed: readonly string[]): void {
  for (const { schema, position } of uses) {
    if (schema === "" || allowed.some((name) => foldName(name) === foldName(schema))) continue;
    const message = `a query reads tables of its own database ${JSON.stringify(allowed[0])}, not of ${JSON.stringify(schema)}`;
    throw new QueryRefused(message, position);
  }
}

async function openQuery(context: SqlContext, database: string, system: SystemMentions): Promise<OpenQuery> {
  const { quoted } = system;
  const statement = peel(quoted.text);
  if (statement.text.trim() === "") throw new EngineError("parse_error", "the query text is empty");
  const { node, pivot } = await begunMeanwhile(context, () => parseStatement(context, statement.text));
  const checked = checkQuery(node);
  refuseOtherDatabases(checked.tables, system.tables.length === 0 ? [database] : [database, SYSTEM_VIEWS_SCHEMA]);
  checked.tables = checked.tables.filter((use) => foldName(use.schema) !== SYSTEM_VIEWS_SCHEMA);
  const needs = await neededTables(context, checked);
  for (const { table, uses } of needs) {
    const { position, cte } = uses[0] ?? {};
    if (position !== undefined) Object.assign(table, quoted.place(position));
    if (cte !== undefined) table.cte = cte;
  }
  return { ...context, database, quoted, statement, node, pivot, checked, needs };
}

/** Of rows that wait to be written. With the default of 1 MB one thread waits for the other half of the time. */
const STREAMING_BUFFER_BYTES = 8 * 1024 * 1024;

/** The transaction has begun when the task is done: also when it fails, since nobody may close a connection in use. */
async function begunMeanwhile<T>({ duckdb, connection }: SqlContext, task: () => Promise<T>): Promise<T> {
  const begun = duckdb
    .query(connection, `SET streaming_buffer_size = '${STREAMING_BUFFER_BYTES}B'`)
    .then(() => duckdb.query(connection, "BEGIN TRANSACTION"));
  try {
    return await task();
  } finally {
    await begun;
  }
}

function refuseNul(quoted: QuotedText): void {
  const nul = quoted.text.indexOf("\0");
  if (nul === -1) return;
  const place = quoted.place(Buffer.byteLength(quoted.text.slice(0, nul)));
  throw new EngineError("parse_error", "the query text has a NUL character", place);
}

async function parseStatement(
  context: SqlContext,
  text: string,
): Promise<{ node: JsonObject; pivot: OpenPivot | undefined }> {
  const parsed = await parseTree(context.parser, text);
  if (parsed.tree !== undefined) return { node: parsed.tree, pivot: undefined };
  const pivot = openPivot(text);
  if (pivot === undefined) throw new QueryRefused(parsed.refused);
  // With some value in the place of each unknown list it is a plain SELECT, and can be checked like one.
  const listed = await parseTree(context.parser, pivot.withValues([["?"], ["?"], ["?"], ["?"]]));
  if (listed.tree === undefined) throw new QueryRefused(listed.refused);
  return { node: listed.tree, pivot };
}

function columnNames(request: RunRequest): string[] {
  return shapesOf(request).flatMap((table) => table.columns.map((column) => column.name));
}

function shapesOf(request: RunRequest): TableShape[] {
  return [...request.tables, ...request.system.map(({ name }) => ({ name, columns: SYSTEM_TABLES[name] }))];
}

function missingExtent(request: RunRequest): EngineError | undefined {
  const extents = request.tables.flatMap((table) => table.extents);
  const missing = extents.find(({ path }) => !existsSync(path));
  if (missing === undefined) return undefined;
  return new EngineError("query_failed", `the data of extent ${missing.id} is missing`);
}
