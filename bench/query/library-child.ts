import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { DuckDBInstance, type DuckDBConnection } from "@duckdb/node-api";
import { systemClock } from "../../src/core/clock.ts";
import { messageOf } from "../../src/core/errors.ts";
import { quoteIdentifier, quoteText } from "../../src/io/duckdb/duckdb.ts";
import { itemsToRead } from "../../src/io/duckdb/parquet.test-kit.ts";
import { parquetOptions } from "../../src/io/duckdb/parquet.ts";
import { loadChdb, type ChdbSession } from "../peers/chdb.ts";
import { clickhouseColumns, duckdbReadJson } from "../support/dialects.ts";
import { TABLES } from "./data.ts";
import type { LibraryJob, LibraryReply, LibrarySetup } from "./side.ts";

/** The process of a library that the engine is compared with; see `side.ts`. */
type Library = {
  /** Runs the query to its last row, and says how long that took. */
  time(sql: string): Promise<number>;
  /** The answer as NDJSON. */
  ndjson(sql: string): Promise<string>;
};

async function open(setup: LibrarySetup): Promise<Library> {
  await mkdir(setup.folder, { recursive: true });
  switch (setup.library) {
    case "raw":
      return openRaw(setup);
    case "table":
      return openOwnTable(setup);
    case "chdb":
      return openChdb(setup);
  }
}

/** Views over exactly the engine's extents, but that times are of the type that the queries compare them with. */
async function openRaw({ files, folder, threads }: LibrarySetup): Promise<Library> {
  const connection = await connectTo(":memory:", threads);
  for (const [table, paths] of Object.entries(files)) {
    const own: string[] = [];
    for (const path of paths) own.push(await withNanoseconds(connection, path, folder));
    const list = own.map((path) => quoteText(path)).join(", ");
    await connection.run(`CREATE VIEW ${quoteIdentifier(table)} AS SELECT * FROM read_parquet([${list}])`);
  }
  return duckdbLibrary(connection, folder);
}

/** A copy of the extent with TIMESTAMP_NS in the place of microseconds, so that bounds prune its row groups; made once. */
async function withNanoseconds(connection: DuckDBConnection, path: string, folder: string): Promise<string> {
  const copy = join(folder, `raw-${basename(path)}`);
  if (existsSync(copy)) return copy;
  const file = `read_parquet(${quoteText(path)})`;
  const described = await connection.runAndReadAll(`SELECT column_name, column_type FROM (DESCRIBE FROM ${file})`);
  const items = itemsToRead(described.getRows().map(([name, type]) => [String(name), String(type)]));
  const options = parquetOptions({ encodings: "v2" });
  await connection.run(`COPY (SELECT ${items} FROM ${file}) TO ${quoteText(`${copy}.part`)} (${options})`);
  await rename(`${copy}.part`, copy);
  return copy;
}

/** Tables of DuckDB's own file format, loaded when the file is not there yet. */
async function openOwnTable({ ndjson, folder, threads }: LibrarySetup): Promise<Library> {
  const path = join(folder, "own.duckdb");
  if (!existsSync(path)) {
    const loading = `${path}.loading`;
    await rm(loading, { force: true });
    const connection = await connectTo(loading, threads);
    for (const { name, columns } of Object.values(TABLES)) {
      const from = duckdbReadJson(ndjson[name] ?? "", columns);
      await connection.run(`CREATE TABLE ${quoteIdentifier(name)} AS SELECT * FROM ${from}`);
    }
    await connection.run("CHECKPOINT");
    connection.closeSync();
    await rename(loading, path);
  }
  return duckdbLibrary(await connectTo(path, threads), folder);
}

async function connectTo(path: string, threads: number): Promise<DuckDBConnection> {
  const instance = await DuckDBInstance.create(path, { threads: String(threads) });
  return instance.connect();
}

function duckdbLibrary(connection: DuckDBConnection, folder: string): Library {
  return {
    // Every chunk is taken out of the result; no value becomes one of JavaScript's.
    time: async (sql) => {
      const startedMs = systemClock.monotonicMs();
      const result = await connection.stream(sql);
      for (let rows = 1; rows > 0;) rows = (await result.fetchChunk())?.rowCount ?? 0;
      return systemClock.monotonicMs() - startedMs;
    },
    ndjson: async (sql) => {
      const file = join(folder, `answer-${process.pid}.ndjson`);
      await connection.run(`COPY (${sql}) TO ${quoteText(file)} (FORMAT json)`);
      const text = await readFile(file, "utf8");
      await rm(file);
      return text;
    },
  };
}

/** Tables as in `peers/bulk.ts`, without waiting for the disk. Answers are NDJSON, whose making is part of the time. */
async function openChdb({ ndjson, folder, threads }: LibrarySetup): Promise<Library> {
  const session = loadChdb(join(folder, "clickhouse"));
  const database = "bench";
  if (!session.query(`SHOW DATABASES`).split("\n").includes(`"${database}"`)) {
    await loadTables(session, database, ndjson);
  }
  session.query(`USE ${database}`);
  const settings = `SETTINGS max_threads = ${threads}, output_format_json_quote_64bit_integers = 0`;
  const run = (sql: string) => session.query(`${sql} ${settings}`, "JSONEachRow");
  return {
    time: async (sql) => {
      const startedMs = systemClock.monotonicMs();
      run(sql);
      return systemClock.monotonicMs() - startedMs;
    },
    ndjson: async (sql) => run(sql),
  };
}

async function loadTables(session: ChdbSession, database: string, ndjson: LibrarySetup["ndjson"]): Promise<void> {
  const loading = `${database}_loading`;
  session.query(`DROP DATABASE IF EXISTS ${loading}`);
  session.query(`CREATE DATABASE ${loading} ENGINE = Atomic`);
  for (const { name, columns } of Object.values(TABLES)) {
    const types = clickhouseColumns(columns);
    session.query(`CREATE TABLE ${loading}.${name} (${types}) ENGINE = MergeTree ORDER BY at`);
    const structure = types.replaceAll("\\", "\\\\").replaceAll("'", "\\'");
    session.query(
      `INSERT INTO ${loading}.${name} SELECT * FROM file(${quoteText(ndjson[name] ?? "")}, 'JSONEachRow', '${structure}')
        SETTINGS date_time_input_format = 'best_effort', input_format_json_read_objects_as_strings = 1`,
    );
  }
  session.query(`RENAME DATABASE ${loading} TO ${database}`);
}

async function answer(library: Library, { sql, keep }: LibraryJob): Promise<LibraryReply> {
  return keep
    ? { ok: true, ms: 0, ndjson: await library.ndjson(sql) }
    : { ok: true, ms: await library.time(sql), ndjson: "" };
}

let library: Library | undefined;

async function obey(message: LibrarySetup | LibraryJob): Promise<LibraryReply> {
  if ("library" in message) {
    library = await open(message);
    return { ok: true, ms: 0, ndjson: "" };
  }
  if (library === undefined) throw new Error("a query came before the set-up");
  return answer(library, message);
}

process.on("message", (message: LibrarySetup | LibraryJob) => {
  obey(message)
    .catch((error: unknown): LibraryReply => ({ ok: false, reason: messageOf(error) }))
    .then((reply) => process.send?.(reply))
    .catch((error: unknown) => console.error(error));
});
process.once("disconnect", () => process.exit());
