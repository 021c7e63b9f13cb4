import { DuckDBInstance } from "@duckdb/node-api";
import { systemClock } from "../../src/core/clock.ts";
import { ColumnSet } from "../../src/format/columns/column-set.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { byteScanner } from "../../src/format/ndjson/byte-scanner.ts";
import { encodeTlm, storedColumns } from "../../src/format/tlm.ts";
import { decodeTlm } from "../../src/format/tlm-decode.ts";
import { duckdbAnswersSql, hash24, mustAgree, type Answers } from "../support/answers.ts";
import { readArguments } from "../support/arguments.ts";
import { cutBySize } from "../support/bodies.ts";
import { DATASET_NAMES, datasetOf, withTemporaryFolder, writeDataset, type DataFile } from "../support/data-file.ts";
import { duckdbReadJson } from "../support/dialects.ts";
import { machine, median, MIB, printTable, shown } from "../support/report.ts";
import type { Dataset } from "../support/shapes.ts";

/**
 * Question: how fast does one core turn NDJSON into columns, and what do the other stages of sealing cost?
 *
 * The byte scanner into typed column builders, bodies of 1 MiB in extents of 16 MiB, against DuckDB's `read_json` with
 * one thread into a table in memory (the counterpart of the builders: every column is parsed and kept), and against
 * `JSON.parse` per line, whose rows are dropped, as the floor. The sides take turns.
 *
 *     node bench/kernel/scanner.ts [DATA…] [--rows 200000] [--rounds 5]
 */
const EXTENT_BYTES = 16 * MIB;
const OPTIONS = { rows: { type: "string" }, rounds: { type: "string", default: "5" } } as const;

/** About as many bytes of each: rows differ in size. */
const ROWS: Readonly<Record<string, number>> = { wide: 60_000, nested: 100_000, text: 25_000, packages: 60_000 };
const DEFAULT_ROWS = 200_000;

type Seconds = Record<(typeof STAGES)[number], number>;
const STAGES = ["scan", "stats", "encode", "checksum", "duckdb", "JSON.parse"] as const;

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const rounds = options.count("rounds");
  console.log(`${machine()}\nMB/s of NDJSON, medians of ${rounds} rounds; scan/duckdb above 1 is faster than DuckDB\n`);
  const rows: string[][] = [];
  for (const name of options.positionals.length === 0 ? DATASET_NAMES : options.positionals) {
    const count = options.text("rows") === undefined ? (ROWS[name] ?? DEFAULT_ROWS) : options.count("rows");
    const dataset = datasetOf(name, count);
    if (dataset !== undefined) rows.push(await measure(dataset, rounds));
  }
  printTable(["", "MB", ...STAGES, "whole seal", "scan/duckdb", "scan/JSON.parse"], rows);
}

async function measure(dataset: Dataset, rounds: number): Promise<string[]> {
  return withTemporaryFolder(async (folder) => {
    const file = await writeDataset(dataset, folder);
    mustAgree("the scanner", scannerAnswers(dataset), file.expected);
    const runs: Seconds[] = [];
    // The first round warms up.
    for (let round = 0; round <= rounds; round++) {
      const run = { ...seal(dataset), duckdb: await duckdb(file), "JSON.parse": parseLines(dataset.ndjson) };
      if (round > 0) runs.push(run);
    }
    const mb = dataset.ndjson.length / 1e6;
    const secondsOf = (stage: keyof Seconds) => median(runs.map((run) => run[stage]));
    const whole = median(runs.map((run) => run.scan + run.stats + run.encode + run.checksum));
    const ratio = (other: keyof Seconds) => shown(median(runs.map((run) => run[other] / run.scan)));
    const speeds = STAGES.map((stage) => shown(mb / secondsOf(stage)));
    return [dataset.name, shown(mb), ...speeds, shown(mb / whole), ratio("duckdb"), ratio("JSON.parse")];
  });
}

/** As in the server, where builders and output buffers serve again. */
const output = new SharedArrayBuffer(2 * EXTENT_BYTES);

function seal({ ndjson, columns }: Dataset): Pick<Seconds, "scan" | "stats" | "encode" | "checksum"> {
  const seconds = { scan: 0, stats: 0, encode: 0, checksum: 0 };
  const timed = <T>(stage: keyof typeof seconds, task: () => T): T => {
    const startedMs = systemClock.monotonicMs();
    const result = task();
    seconds[stage] += (systemClock.monotonicMs() - startedMs) / 1000;
    return result;
  };
  for (const part of cutBySize(ndjson, EXTENT_BYTES)) {
    const set = timed("scan", () => scan(part, columns));
    timed("stats", () => storedColumns(set).map((column) => column.stats(set.rows)));
    const bytes = timed("encode", () => encodeTlm(set, output));
    timed("checksum", () => checksumOf(bytes));
    set.release();
  }
  return seconds;
}

function scan(part: Buffer, columns: Dataset["columns"]): ColumnSet {
  const set = new ColumnSet(columns);
  for (const bytes of cutBySize(part, MIB)) byteScanner.scan({ bytes, evolve: true, arrivedAtNs: 0n }, set);
  return set;
}

/** What the extents hold, read back. */
function scannerAnswers({ ndjson, columns, checks }: Dataset): Answers {
  const answers: Answers = { rows: 0, sum: 0, hash: 0 };
  for (const part of cutBySize(ndjson, EXTENT_BYTES)) {
    const extent = decodeTlm(encodeTlm(scan(part, columns)));
    const valuesOf = (name: string) => extent.columns.find(({ spec }) => spec.name === name)?.values ?? [];
    answers.rows += valuesOf("at").length;
    for (const value of valuesOf(checks.sumColumn)) answers.sum += Number(value);
    for (const value of valuesOf(checks.hashColumn)) {
      answers.hash += hash24(String(value));
    }
  }
  return answers;
}

/** Seconds of DuckDB on one thread, from the file (which the kernel has in memory) to a table in memory. */
async function duckdb(file: DataFile): Promise<number> {
  const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
  const connection = await instance.connect();
  // The extension is loaded on first use.
  await connection.run("SELECT json_valid('{}')");
  const startedMs = systemClock.monotonicMs();
  await connection.run(`CREATE TABLE t AS SELECT * FROM ${duckdbReadJson(file.path, file.columns)}`);
  const seconds = (systemClock.monotonicMs() - startedMs) / 1000;
  const [row] = (await connection.runAndReadAll(duckdbAnswersSql(file.checks, "t"))).getRows();
  mustAgree("DuckDB", { rows: Number(row?.[0]), sum: Number(row?.[1]), hash: Number(row?.[2]) }, file.expected);
  connection.closeSync();
  instance.closeSync();
  return seconds;
}

function parseLines(ndjson: Buffer): number {
  const startedMs = systemClock.monotonicMs();
  let fields = 0;
  for (let start = 0; start < ndjson.length;) {
    const feed = ndjson.indexOf(10, start);
    const end = feed === -1 ? ndjson.length : feed;
    // Something must depend on the row, or the compiler might drop it.
    if (typeof JSON.parse(ndjson.toString("utf8", start, end)) === "object") fields++;
    start = end + 1;
  }
  if (fields === 0) throw new Error("there was nothing to parse");
  return (systemClock.monotonicMs() - startedMs) / 1000;
}

if (import.meta.main) await main(process.argv.slice(2));
