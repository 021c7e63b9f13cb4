import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../../../../src/core/errors.ts";
import { foldName } from "../../../../src/core/names.ts";
import type { ColumnSpec } from "../../../../src/format/types.ts";
import { loadDuckDb, runSql, type Database, type DuckDb } from "../../../../src/io/duckdb/duckdb.ts";
import { tlmToParquet } from "../../../../src/io/duckdb/parquet.test-kit.ts";
import { tlmFixture } from "../../../../src/io/duckdb/tlm.test-kit.ts";
import { lendFiles } from "../../../../src/query/scan/lend-files.ts";
import { inputFolder, outputFolder } from "../../../../src/query/scan/process-folders.ts";
import type { LocalExtent, ResolvedTable } from "../../../../src/query/contract/tables.ts";
import type { NeededTable } from "../../../../src/query/resolve/needs.ts";
import { QuerySession } from "../../../../src/query/scan/session.ts";
import { CANARY } from "./evidence.test-kit.ts";
import type { Target } from "./texts.test-kit.ts";

/**
 * What runs in a query process, run in this one, so that a test sees the state of DuckDB that a query leaves to the
 * next: its functions, settings, databases and so on. Two databases, as in `Target`; queries are of `mine`.
 */
export type LocalEngine = {
  target: Target;
  /** Parses the text, and runs it where its tables are there. Errors come back as their message. */
  run(sql: string): Promise<string>;
  /** What a query that comes now would find in DuckDB, one line each. */
  state(): Promise<string[]>;
  close(): void;
};

const COLUMNS: readonly ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "label", type: { kind: "string" } },
  { name: "body", type: { kind: "string" } },
];
const MEMORY_BYTES = 256 * 1024 * 1024;

export async function openLocalEngine(): Promise<LocalEngine> {
  const home = mkdtempSync(join(tmpdir(), "engine-local-test-"));
  const target = await writeExtents(home);
  const folder = join(home, "process");
  for (const each of [folder, inputFolder(folder), outputFolder(folder)]) mkdirSync(each);
  const { duckdb, latest } = watched(await loadDuckDb());
  const spent: unknown[] = [];
  const session = await QuerySession.open({
    duckdb,
    folder,
    memoryBytes: MEMORY_BYTES,
    spillBytes: MEMORY_BYTES,
    threads: 1,
    onSpent: (reason) => spent.push(reason),
  });
  const parse = (text: string) => session.parse({ kind: "parse", text, database: "mine", memoryBytes: MEMORY_BYTES });
  const tableOf = ({ name, database, travel }: NeededTable): ResolvedTable | undefined => {
    const isOwn = database === undefined && travel === undefined;
    if (!["logs", "users"].includes(foldName(name)) || !isOwn) return undefined;
    return { name, columns: COLUMNS, needed: undefined, extents: extentsOf(target), bareRows: 0 };
  };
  return {
    target,
    async run(sql) {
      try {
        const needs = await parse(sql);
        const tables = needs.tables.flatMap((table) => tableOf(table) ?? []);
        if (tables.length < needs.tables.length || needs.system.length > 0) {
          session.drop();
          return "not all of its tables are there";
        }
        const lent = await lendFiles(inputFolder(folder), tables);
        try {
          await session.run({ kind: "run", tables: lent.tables, listed: [], format: "csv", system: [], pruning: [] });
          return "answered";
        } finally {
          await lent.release();
        }
      } catch (error) {
        return messageOf(error);
      }
    },
    async state() {
      // While a query is open, its database is the one that it sees.
      await parse("SELECT 1");
      const lines = await stateOf(duckdb, latest());
      session.drop();
      return lines;
    },
    close: () => rmSync(home, { recursive: true, force: true }),
  };
}

/** DuckDB, with the database to which somebody last connected. */
function watched(duckdb: DuckDb): { duckdb: DuckDb; latest: () => Database } {
  let database: Database | undefined;
  const connect = (to: Database) => {
    database = to;
    return duckdb.connect(to);
  };
  return {
    duckdb: Object.create(duckdb, { connect: { value: connect } }) as DuckDb,
    latest: () => {
      if (database === undefined) throw new Error("nobody connected");
      return database;
    },
  };
}

const STATE = [
  "SELECT concat_ws(' ', 'function', schema_name, function_name, function_type, return_type, parameters::VARCHAR, macro_definition) FROM duckdb_functions()",
  "SELECT concat_ws(' ', 'setting', name, value) FROM duckdb_settings()",
  "SELECT concat_ws(' ', 'database', database_name, path, readonly) FROM duckdb_databases()",
  "SELECT concat_ws(' ', 'schema', database_name, schema_name) FROM duckdb_schemas()",
  "SELECT concat_ws(' ', 'table', database_name, schema_name, table_name) FROM duckdb_tables()",
  "SELECT concat_ws(' ', 'view', database_name, schema_name, view_name, sql) FROM duckdb_views()",
  "SELECT concat_ws(' ', 'type', database_name, schema_name, type_name, logical_type) FROM duckdb_types()",
  "SELECT concat_ws(' ', 'sequence', database_name, schema_name, sequence_name) FROM duckdb_sequences()",
].join(" UNION ALL ");

async function stateOf(duckdb: DuckDb, database: Database): Promise<string[]> {
  const connection = await duckdb.connect(database);
  try {
    // As the space of a query has it: a connection that nobody has set up has no database.
    await duckdb.query(connection, "SET search_path = 'engine.main'");
    return (await runSql(duckdb, connection, STATE)).map(([line]) => line ?? "").toSorted();
  } finally {
    duckdb.disconnect_sync(connection);
  }
}

async function writeExtents(home: string): Promise<Target> {
  const root = join(home, "data");
  const fileOf = (database: string, name: string) => join(root, database, "logs", "2026-01-01", name);
  for (const database of ["mine", "theirs"]) {
    const label = database === "theirs" ? CANARY : "plain";
    const tlm = tlmFixture(COLUMNS, [{ at: 1n, label, body: "text" }]);
    mkdirSync(fileOf(database, "."), { recursive: true });
    writeFileSync(fileOf(database, "1.tlm"), tlm);
    writeFileSync(fileOf(database, "2.parquet"), await tlmToParquet(tlm));
  }
  return {
    root,
    folder: join(root, "theirs"),
    ownFolder: join(root, "mine"),
    tlm: fileOf("theirs", "1.tlm"),
    parquet: fileOf("theirs", "2.parquet"),
    catalog: join(home, "catalog.db"),
  };
}

function extentsOf({ ownFolder }: Target): LocalExtent[] {
  const columns = COLUMNS.map(({ name }) => name);
  const folder = join(ownFolder, "logs", "2026-01-01");
  return [
    { id: "1", format: "tlm", formatVersion: 1, rows: 1, columns, minAtNs: 0n, path: join(folder, "1.tlm") },
    { id: "2", format: "parquet", formatVersion: 1, rows: 1, columns, minAtNs: 0n, path: join(folder, "2.parquet") },
  ];
}
