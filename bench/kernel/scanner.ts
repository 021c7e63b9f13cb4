import { DuckDBInstance } from "@duckdb/node-api";
import { z } from "zod";
import { systemClock } from "../../src/core/clock.ts";
import { ColumnSet } from "../../src/format/columns/column-set.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { byteScanner } from "../../src/format/ndjson/byte-scanner.ts";
import { encodeTlm, storedColumns } from "../../src/format/tlm.ts";
import { decodeTlm } from "../../src/format/tlm-decode.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { duckdbAnswersSql, hash24, mustAgree, type Answers } from "../support/answers.ts";
import { cutBySize } from "../support/bodies.ts";
import { DATASET_NAMES, requiredDataset, writeDataset, type DataFile } from "../support/data-file.ts";
import { duckdbReadJson } from "../support/dialects.ts";
import { MIB } from "../support/report.ts";
import type { Dataset } from "../support/shapes.ts";

const EXTENT_BYTES = 16 * MIB;

/** About as many bytes of each: rows differ in size. */
const ROWS: Readonly<Record<string, number>> = { wide: 60_000, nested: 100_000, text: 25_000, packages: 60_000 };
const DEFAULT_ROWS = 200_000;

const STAGES = ["scan", "stats", "encode", "checksum"] as const;
type Seconds = Record<(typeof STAGES)[number], number>;

/** Bodies of 1 MiB in extents of 16 MiB. */
export const benchmark = defineBenchmark({
  name: "kernel/scanner",
  question: "How fast does one core turn NDJSON into columns, and what do the other stages of sealing cost?",
  notMeasured:
    "HTTP, threads, storing. DuckDB's read_json keeps its columns in a table in memory, as the builders do; the rows of " +
    "JSON.parse, one for each line, are dropped: it is the floor.",
  options: z.strictObject({
    data: z.enum(DATASET_NAMES).default("logs").describe(DATASET_NAMES.join(", ")),
    rows: z.coerce.number().int().positive().optional().describe("as many as take about 60 MB unless given"),
  }),
  measures: {
    scan: { unit: "MB/s", better: "more", doc: "bytes to columns" },
    stats: { unit: "MB/s", better: "more", doc: "least, greatest and distinct values" },
    encode: { unit: "MB/s", better: "more", doc: "columns to the bytes of an extent" },
    checksum: { unit: "MB/s", better: "more", doc: "of the extent" },
    seal: { unit: "MB/s", better: "more", doc: "all four, one after the other" },
  },
  rounds: 7,
  hasPeers: true,
  open: async ({ data, rows }, { folder }) => {
    const dataset = requiredDataset(data, rows ?? ROWS[data] ?? DEFAULT_ROWS);
    const file = await writeDataset(dataset, folder);
    const mb = dataset.ndjson.length / 1e6;
    return {
      sides: [
        {
          name: "scanner",
          answers: async () => scannerAnswers(dataset),
          round: async () => {
            const seconds = seal(dataset);
            const whole = STAGES.reduce((sum, stage) => sum + seconds[stage], 0);
            return { ...Object.fromEntries(STAGES.map((stage) => [stage, mb / seconds[stage]])), seal: mb / whole };
          },
        },
        // Each round checks what it loaded.
        { name: "DuckDB", round: async () => ({ scan: mb / (await duckdb(file)) }) },
        {
          name: "JSON.parse",
          answers: async () => file.expected,
          round: async () => ({ scan: mb / parseLines(dataset.ndjson) }),
        },
      ],
    };
  },
});

/** As in the server, where builders and output buffers serve again. */
const output = new SharedArrayBuffer(2 * EXTENT_BYTES);

function seal({ ndjson, columns }: Dataset): Seconds {
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
