import { join } from "node:path";
import { quoteText } from "../../src/io/duckdb/duckdb.ts";
import { clickhouseColumns } from "../support/dialects.ts";
import { loadPeer } from "./install.ts";
import type { Library, PeerJob } from "./peer.ts";

/** What is used of the package. */
type Chdb = { Session: new (path: string) => ChdbSession };
export type ChdbSession = { query(sql: string, format?: string): string; close(): void };

/** A session over the databases in that folder. The package must be installed. */
export function loadChdb(folder: string): ChdbSession {
  const { Session } = loadPeer("chdb") as Chdb;
  return new Session(folder);
}

/** A part and its folder are synced before the insert returns; by itself ClickHouse leaves that to the kernel. */
const DURABLE = "fsync_after_insert = 1, fsync_part_directory = 1";

/** ClickHouse in process: a MergeTree table with declared columns, ordered by time, loaded with one INSERT. */
export async function openChdb(folder: string): Promise<Library> {
  const session = loadChdb(join(folder, "clickhouse"));
  session.query("CREATE DATABASE IF NOT EXISTS bench ENGINE = Atomic");
  return {
    prepare: async ({ file, table }) => {
      const columns = clickhouseColumns(file.columns);
      session.query(`CREATE TABLE bench.${table} (${columns}) ENGINE = MergeTree ORDER BY at SETTINGS ${DURABLE}`);
    },
    load: async ({ file, table }) => {
      const from = `file(${quoteText(file.path)}, 'JSONEachRow', ${clickhouseText(clickhouseColumns(file.columns))})`;
      session.query(`INSERT INTO bench.${table} SELECT * FROM ${from} SETTINGS date_time_input_format = 'best_effort'`);
    },
    answers: async (job) =>
      JSON.parse(session.query(answersSql(job), "JSONEachRow")) as Awaited<ReturnType<Library["answers"]>>,
    close: async () => session.close(),
  };
}

function answersSql({ file, table }: PeerJob): string {
  const { sumColumn, hashColumn } = file.checks;
  const hash = `reinterpretAsUInt32(reverse(substring(MD5(\`${hashColumn}\`), 1, 3)))`;
  return (
    `SELECT count() AS rows, toInt64(sum(\`${sumColumn}\`)) AS sum, toInt64(sum(${hash})) AS hash FROM bench.${table} ` +
    "SETTINGS output_format_json_quote_64bit_integers = 0"
  );
}

/** Backslashes escape in ClickHouse. */
function clickhouseText(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
