import { open } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance, type DuckDBConnection } from "@duckdb/node-api";
import { quoteIdentifier, quoteText } from "../../src/io/duckdb/duckdb.ts";
import { duckdbAnswersSql, type Answers } from "../support/answers.ts";
import { duckdbReadJson } from "../support/dialects.ts";
import type { Library, PeerJob } from "./peer.ts";

/** `read_json` with declared columns into one Parquet file of zstd, synced; all cores, DuckDB's own settings. */
export function openDuckDb(folder: string): Promise<Library> {
  return openFiles(folder, {
    from: ({ file }) => duckdbReadJson(file.path, file.columns),
    answersSql: duckdbAnswersSql,
  });
}

/** The same by `read_json_auto`, which finds the columns and their types itself. */
export function openDuckDbAuto(folder: string): Promise<Library> {
  return openFiles(folder, {
    from: ({ file }) => `read_json_auto(${quoteText(file.path)}, format = 'newline_delimited')`,
    answersSql: (checks, from) => {
      // Text of 32 hexadecimal digits becomes a UUID, which is written with hyphens.
      const column = quoteIdentifier(checks.hashColumn);
      const text = `CASE typeof(${column}) WHEN 'UUID' THEN replace(${column}::VARCHAR, '-', '') ELSE ${column}::VARCHAR END`;
      return duckdbAnswersSql(checks, `(SELECT * REPLACE (${text} AS ${column}) FROM ${from})`);
    },
  });
}

type Reading = { from: (job: PeerJob) => string; answersSql: typeof duckdbAnswersSql };

async function openFiles(folder: string, { from, answersSql }: Reading): Promise<Library> {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  const fileOf = ({ table }: PeerJob) => join(folder, `${table}.parquet`);
  return {
    prepare: async () => {},
    load: async (job) => {
      await connection.run(
        `COPY (SELECT * FROM ${from(job)}) TO ${quoteText(fileOf(job))} (FORMAT parquet, COMPRESSION zstd)`,
      );
      // DuckDB leaves that to the kernel.
      for (const path of [fileOf(job), folder]) await sync(path);
    },
    answers: (job) => answersOf(connection, answersSql(job.file.checks, `read_parquet(${quoteText(fileOf(job))})`)),
    close: async () => {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

/** `read_json` with declared columns into a table of a database file, checkpointed; all cores, DuckDB's own settings. */
export async function openDuckDbTable(folder: string): Promise<Library> {
  const instance = await DuckDBInstance.create(join(folder, "tables.duckdb"));
  const connection = await instance.connect();
  return {
    prepare: async () => {},
    load: async ({ file, table }) => {
      const from = duckdbReadJson(file.path, file.columns);
      await connection.run(`CREATE TABLE ${quoteIdentifier(table)} AS SELECT * FROM ${from}`);
      // The rows leave the log for the file, which is synced.
      await connection.run("CHECKPOINT");
    },
    answers: ({ file, table }) => answersOf(connection, duckdbAnswersSql(file.checks, quoteIdentifier(table))),
    close: async () => {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

async function answersOf(connection: DuckDBConnection, sql: string): Promise<Answers> {
  const [row] = (await connection.runAndReadAll(sql)).getRows();
  return { rows: Number(row?.[0]), sum: Number(row?.[1]), hash: Number(row?.[2]) };
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
