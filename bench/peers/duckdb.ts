import { open } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { quoteText } from "../../src/io/duckdb/duckdb.ts";
import { duckdbAnswersSql } from "../support/answers.ts";
import { duckdbReadJson } from "../support/dialects.ts";
import type { Library, PeerJob } from "./peer.ts";

/** `read_json` with declared columns into one Parquet file of zstd, synced; all cores, DuckDB's own settings. */
export async function openDuckDb(folder: string): Promise<Library> {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  const fileOf = ({ table }: PeerJob) => join(folder, `${table}.parquet`);
  return {
    prepare: async () => {},
    load: async (job) => {
      const from = duckdbReadJson(job.file.path, job.file.columns);
      await connection.run(
        `COPY (SELECT * FROM ${from}) TO ${quoteText(fileOf(job))} (FORMAT parquet, COMPRESSION zstd)`,
      );
      // DuckDB leaves that to the kernel.
      for (const path of [fileOf(job), folder]) await sync(path);
    },
    answers: async (job) => {
      const sql = duckdbAnswersSql(job.file.checks, `read_parquet(${quoteText(fileOf(job))})`);
      const [row] = (await connection.runAndReadAll(sql)).getRows();
      return { rows: Number(row?.[0]), sum: Number(row?.[1]), hash: Number(row?.[2]) };
    },
    close: async () => {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
