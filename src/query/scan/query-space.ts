import { rmSync } from "node:fs";
import { join } from "node:path";
import {
  quoteText,
  readTextRows,
  type Connection,
  type Database,
  type DuckDb,
  type PreparedStatement,
} from "../../io/duckdb/duckdb.ts";
import { registerTlmScan, type TlmScans } from "../../io/duckdb/tlm-scan.ts";
import { REFUSING_MACROS, TIME_MACROS } from "../../io/duckdb/macros.ts";
import { inputFolder, outputFolder, spillFolder } from "./process-folders.ts";

/**
 * The DuckDB of a query process, in which nothing of one query reaches the next.
 *
 * Each query gets a space of its own: a fresh connection, whose temporary database in memory holds the views that stand
 * for its tables, and is gone with it. What queries share cannot be written: our macros are in a database that is
 * attached read-only, DuckDB's own catalog takes no changes, the configuration is locked, and no file outside the folders
 * of the process can be opened. After every query the databases that are attached are compared with those that must be; a
 * difference ends the process.
 *
 * A fresh instance of DuckDB for each query would say the same with less to explain, but takes 13 ms of CPU to open
 * (measured 2026-11 on two cores); a space takes 0.5, which are spent after the answer of the query before.
 */
export type SpaceOptions = {
  duckdb: DuckDb;
  /** The folder of the process. */
  folder: string;
  memoryBytes: number;
  /** Of disk, for what does not fit into memory. */
  spillBytes: number;
  threads: number;
};

/** What one query runs in. */
export type QuerySpace = { connection: Connection };

/** The database with our macros. */
const SHARED = "engine";

/** Of rows that wait to be written. With the default of 1 MB one thread waits for the other half of the time. */
const STREAMING_BUFFER_BYTES = 8 * 1024 * 1024;

/** Settings that change with a query. No text of a user's reaches them, for SET is no query. */
const CHANGEABLE = [
  "memory_limit",
  "search_path",
  "streaming_buffer_size",
  "enable_progress_bar",
  "enable_progress_bar_print",
];

/** Progress is only counted where a bar may be shown. */
const COUNT_PROGRESS = "SET enable_progress_bar = true; SET enable_progress_bar_print = false";

export class QuerySpaces {
  readonly scans: TlmScans;
  readonly #options: SpaceOptions;
  readonly #database: Database;
  /** For what concerns all queries. */
  readonly #control: Connection;
  readonly #sizes: PreparedStatement;
  /** Of memory, before the first query; as DuckDB says it. */
  #memoryLimit: string | undefined;

  private constructor(
    options: SpaceOptions,
    database: Database,
    open: { control: Connection; sizes: PreparedStatement; scans: TlmScans },
  ) {
    this.#options = options;
    this.#database = database;
    this.#control = open.control;
    this.#sizes = open.sizes;
    this.scans = open.scans;
  }

  /** Opens the database and locks it. */
  static async open(options: SpaceOptions): Promise<QuerySpaces> {
    const { duckdb, folder } = options;
    const database = await duckdb.open(":memory:");
    const control = await duckdb.connect(database);
    const scans = registerTlmScan(duckdb, control);
    for (const setting of settingsFor(options)) await duckdb.query(control, `SET GLOBAL ${setting}`);
    await attachMacros(duckdb, control, join(outputFolder(folder), "macros.duckdb"));
    for (const setting of locksFor(folder)) await duckdb.query(control, `SET GLOBAL ${setting}`);
    // One row for each database but DuckDB's own `system` and `temp`; nothing else tells both as fast.
    const sizes = await duckdb.prepare(control, "SELECT database_name, memory_limit FROM pragma_database_size()");
    return new QuerySpaces(options, database, { control, sizes, scans });
  }

  /** Makes the space of the next query. */
  async create(): Promise<QuerySpace> {
    const { duckdb } = this.#options;
    const connection = await duckdb.connect(this.#database);
    await duckdb.query(
      connection,
      `SET search_path = '${SHARED}.main'; SET streaming_buffer_size = '${STREAMING_BUFFER_BYTES}B'`,
    );
    return { connection };
  }

  /** Has DuckDB count how far the query of a space is. The counting costs nothing that shows; to ask for it is 0.2 ms. */
  async countProgress({ connection }: QuerySpace): Promise<void> {
    await this.#options.duckdb.query(connection, COUNT_PROGRESS);
  }

  /** What DuckDB may take from now on before it spills; the process's own limit again after the query. */
  async limitMemory(memoryBytes: number): Promise<void> {
    await this.#options.duckdb.query(this.#control, `SET GLOBAL memory_limit = '${memoryBytes}B'`);
  }

  /** Ends the space of a query, whatever state it is in. Throws when anything of it is left. */
  async remove({ connection }: QuerySpace): Promise<void> {
    const { duckdb, memoryBytes } = this.#options;
    // Rolls back, and takes what is temporary with it.
    duckdb.disconnect_sync(connection);
    this.scans.clear();
    const rows = await readTextRows(duckdb, await duckdb.execute_prepared(this.#sizes));
    const names = rows
      .map(([name]) => name ?? "")
      .toSorted((a, b) => (a < b ? -1 : 1))
      .join(" ");
    if (names !== SHARED) throw new Error(`a query left databases behind: ${names}`);
    const limit = rows[0]?.[1] ?? undefined;
    // Set only where it is another: that takes DuckDB's caches along, which is 3 ms of the next query.
    if (this.#memoryLimit !== undefined && limit !== this.#memoryLimit) await this.limitMemory(memoryBytes);
    else this.#memoryLimit = limit;
  }
}

/** Our macros, in a file that is attached read-only: nothing that runs later can change them. */
async function attachMacros(duckdb: DuckDb, connection: Connection, path: string): Promise<void> {
  const file = quoteText(path);
  // Macros with typed parameters need a newer format than the default.
  await duckdb.query(connection, `ATTACH ${file} AS ${SHARED} (STORAGE_VERSION 'v1.4.0'); USE ${SHARED}`);
  for (const macro of [...TIME_MACROS, ...REFUSING_MACROS]) await duckdb.query(connection, `CREATE MACRO ${macro}`);
  await duckdb.query(connection, `USE memory; DETACH ${SHARED}; ATTACH ${file} AS ${SHARED} (READ_ONLY)`);
  // The first database could be written by whoever names it.
  await duckdb.query(connection, `USE ${SHARED}; DETACH memory`);
  rmSync(path);
}

function settingsFor(options: SpaceOptions): string[] {
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

/** From here on nothing but files of this process can be opened, and no other setting can change. */
function locksFor(folder: string): string[] {
  const folders = [inputFolder(folder), outputFolder(folder)].map(quoteText).join(", ");
  return [
    `allowed_directories = [${folders}]`,
    "enable_external_access = false",
    `allowed_configs = [${CHANGEABLE.map(quoteText).join(", ")}]`,
    "lock_configuration = true",
  ];
}
