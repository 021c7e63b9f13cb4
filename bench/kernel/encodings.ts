import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import type { RecordBatch } from "apache-arrow";
import { systemClock } from "../../src/core/clock.ts";
import { ColumnSet } from "../../src/format/columns/column-set.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { byteScanner } from "../../src/format/ndjson/byte-scanner.ts";
import { encodeTlm, storedColumns } from "../../src/format/tlm.ts";
import type { ColumnStats } from "../../src/format/types.ts";
import { loadDuckDb, runSql, type Connection, type DuckDb } from "../../src/io/duckdb/duckdb.ts";
import { registerTlmScan, TLM_SCAN, type TlmScans } from "../../src/io/duckdb/tlm-scan.ts";
import { readArguments } from "../support/arguments.ts";
import { withTemporaryFolder } from "../support/data-file.ts";
import { encodeBatch, fromDictionaries, openBatch, project, toDictionaries, zstd } from "../support/encoded-extents.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, printTable, shown } from "../support/report.ts";
import { SHAPES, synthetic, type Dataset, type ShapeName } from "../support/shapes.ts";

/**
 * Question: would extents be better off with dictionaries for text of few values, or under zstd?
 *
 * For extents of some sizes: what the encoding costs at write beside scan, statistics, plain encoding and checksum, what
 * it saves in bytes, checksum and in writing and syncing the file, and what reading costs: unpacking the columns that a
 * query needs, beside the query itself over the plain extent. Every encoding must read back as the plain extent. Writing
 * through the same Arrow writer is taken off from both sides. All sides take turns in each round.
 *
 * `zstd` is Arrow's own compression, every buffer by itself; `zstd file` packs the extent as a whole, which spares calls
 * but must always be unpacked whole. Both are level 1. Arrow's other codec, LZ4, comes with neither Node nor
 * apache-arrow.
 *
 *     node bench/kernel/encodings.ts [SHAPE:ROWS…] [--rounds 15]
 */
const OPTIONS = { rounds: { type: "string", default: "15" } } as const;
const CASES = ["logs:1000", "logs:3700", "logs:8000", "logs:60000", "wide:1000", "wide:3700", "wide:8000"];
/** Queries read copies of the extent up to about as many rows, so that they take more than their start. */
const QUERIED_ROWS = 60_000;
/** A dictionary pays where values repeat: by the statistics' estimate. */
const MIN_REPEATS = 8;

/** The column of the query over one column; both shapes have it. */
const TEXT_COLUMN = "label";

const ENCODINGS = ["plain", "dictionary", "zstd", "dictionary, zstd", "zstd file"] as const;
type Encoding = (typeof ENCODINGS)[number];
type PerEncoding<T> = Record<Encoding, T>;

/** What one round measured, in milliseconds. */
type Round = {
  /** Scan, statistics and plain encoding, as they are today. */
  base: number;
  /** More than plain. */
  encode: PerEncoding<number>;
  checksum: PerEncoding<number>;
  write: PerEncoding<number>;
  /** More than opening the plain extent, for the columns of the query. */
  unpackOne: PerEncoding<number>;
  unpackAll: PerEncoding<number>;
  /** Of one extent's rows, plain. */
  queryOne: number;
  queryAll: number;
  /** Like `queryOne` over a number, whose column is copied as it lies: no dictionary could be read faster. */
  queryNumber: number;
};

const HEAD = [
  "extent",
  "encoding",
  "KB",
  "of plain",
  "encode",
  "checksum",
  "write+sync",
  "seal ×",
  "seal+write ×",
  "unpack 1",
  "of query",
  "unpack all",
  "of query",
];

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const rounds = options.count("rounds");
  console.log(machine());
  console.log(
    `wall ms of one thread per MB of NDJSON, medians of ${rounds} rounds; × are ratios to plain within a round`,
  );
  console.log("seal: scan, statistics, encoding, checksum; queries: over one text column, over all columns\n");
  const reader = await openReader();
  const rows: string[][] = [];
  const queryRows: string[][] = [];
  for (const name of options.positionals.length === 0 ? CASES : options.positionals) {
    const dataset = datasetOf(name);
    const found = await withTemporaryFolder((folder) => measure(dataset, join(folder, "extent"), rounds, reader));
    rows.push(...ENCODINGS.map((encoding) => tableRow(dataset, encoding, found)));
    queryRows.push(queryRow(dataset, found.runs));
  }
  reader.duckdb.disconnect_sync(reader.connection);
  printTable(HEAD, rows);
  console.log("\nqueries over plain extents, ms per MB of NDJSON\n");
  printTable(["extent", "text", "number", "number / text", "all columns"], queryRows);
}

function datasetOf(name: string): Dataset {
  const [shape = "", rows] = name.split(":");
  const count = Number(rows);
  const isCase = shape in SHAPES && Number.isSafeInteger(count) && count > 0;
  if (!isCase) throw new Error(`${name} is no case; give a shape and rows, such as logs:3700`);
  return synthetic(shape as ShapeName, count);
}

type Found = { runs: readonly Round[]; sizes: PerEncoding<number> };

async function measure(dataset: Dataset, file: string, rounds: number, reader: Reader): Promise<Found> {
  // A third more to warm up.
  const warmUp = Math.ceil(rounds / 3);
  for (let round = 0; round < warmUp; round++) await measureRound(dataset, file, round, reader);
  const results: Result[] = [];
  for (let round = 0; round < rounds; round++) results.push(await measureRound(dataset, file, round, reader));
  const sizeOf = (encoding: Encoding) => median(results.map(({ sizeBytes }) => sizeBytes[encoding]));
  return { runs: results.map(({ run }) => run), sizes: inTurn(0, sizeOf) };
}

function tableRow(dataset: Dataset, of: Encoding, { sizes, runs }: Found): string[] {
  const mb = dataset.ndjson.length / 1e6;
  const middle = (value: (run: Round) => number) => shown(median(runs.map(value)));
  const seal = (run: Round, encoding: Encoding) => run.base + run.encode[encoding] + run.checksum[encoding];
  const written = (run: Round, encoding: Encoding) => seal(run, encoding) + run.write[encoding];
  return [
    `${dataset.name} ${dataset.rows}`,
    of,
    shown(sizes[of] / 1e3),
    shown(sizes[of] / sizes.plain),
    middle((run) => run.encode[of] / mb),
    middle((run) => run.checksum[of] / mb),
    middle((run) => run.write[of] / mb),
    middle((run) => seal(run, of) / seal(run, "plain")),
    middle((run) => written(run, of) / written(run, "plain")),
    middle((run) => run.unpackOne[of] / mb),
    middle((run) => run.unpackOne[of] / run.queryOne),
    middle((run) => run.unpackAll[of] / mb),
    middle((run) => run.unpackAll[of] / run.queryAll),
  ];
}

function queryRow({ name, rows, ndjson }: Dataset, runs: readonly Round[]): string[] {
  const mb = ndjson.length / 1e6;
  const middle = (value: (run: Round) => number) => shown(median(runs.map(value)));
  return [
    `${name} ${rows}`,
    middle((run) => run.queryOne / mb),
    middle((run) => run.queryNumber / mb),
    middle((run) => run.queryNumber / run.queryOne),
    middle((run) => run.queryAll / mb),
  ];
}

type Result = { run: Round; sizeBytes: PerEncoding<number> };

async function measureRound(dataset: Dataset, file: string, round: number, reader: Reader): Promise<Result> {
  const each = <T>(value: (encoding: Encoding) => T) => inTurn(round, value);
  const { result: sealed, ms: base } = timed(() => seal(dataset));
  const batch = openBatch(sealed.bytes);
  const names = dictionaryColumns(dataset, sealed.stats);
  const all = each((encoding) => timed(() => encode(encoding, batch, names)));
  const narrow = project(batch, [TEXT_COLUMN]);
  const one = each((encoding) => encode(encoding, encoding === "zstd file" ? batch : narrow, names));
  if (round === 0) each((encoding) => mustReadBack(encoding, all[encoding].result, batch));
  const unpackOne = each((encoding) => timed(() => unpack(encoding, one[encoding])).ms);
  const unpackAll = each((encoding) => timed(() => unpack(encoding, all[encoding].result)).ms);
  const run: Round = {
    base,
    encode: each((encoding) => all[encoding].ms - all.plain.ms),
    checksum: each((encoding) => timed(() => checksumOf(all[encoding].result)).ms),
    write: each((encoding) => timed(() => writeSynced(file, all[encoding].result)).ms),
    unpackOne: each((encoding) => unpackOne[encoding] - unpackOne.plain),
    unpackAll: each((encoding) => unpackAll[encoding] - unpackAll.plain),
    queryOne: await query(dataset, sealed.bytes, groupBy(TEXT_COLUMN), reader),
    queryAll: await query(dataset, sealed.bytes, (from) => `SELECT max(COLUMNS(*))::VARCHAR FROM ${from}`, reader),
    queryNumber: await query(dataset, sealed.bytes, groupBy(numberColumn(dataset)), reader),
  };
  return { run, sizeBytes: each((encoding) => all[encoding].result.length) };
}

/** Each round begins with another, so that none always comes first. */
function inTurn<T>(round: number, value: (encoding: Encoding) => T): PerEncoding<T> {
  const first = round % ENCODINGS.length;
  const order = [...ENCODINGS.slice(first), ...ENCODINGS.slice(0, first)];
  return Object.fromEntries(order.map((encoding) => [encoding, value(encoding)])) as PerEncoding<T>;
}

function timed<T>(task: () => T): { result: T; ms: number } {
  const startedMs = systemClock.monotonicMs();
  const result = task();
  return { result, ms: systemClock.monotonicMs() - startedMs };
}

function seal({ ndjson, columns }: Dataset): { bytes: Uint8Array; stats: ColumnStats[] } {
  const set = new ColumnSet(columns);
  byteScanner.scan({ bytes: ndjson, evolve: true, arrivedAtNs: 0n }, set);
  const stats = storedColumns(set).map((column) => column.stats(set.rows));
  const bytes = encodeTlm(set);
  set.release();
  return { bytes, stats };
}

function dictionaryColumns({ rows, columns }: Dataset, stats: readonly ColumnStats[]): Set<string> {
  const texts = new Set(columns.filter(({ type }) => type.kind === "string").map(({ name }) => name));
  const repeated = stats.filter(({ distinct = rows }) => distinct * MIN_REPEATS <= rows).map(({ name }) => name);
  return new Set(repeated.filter((name) => texts.has(name)));
}

function encode(encoding: Encoding, batch: RecordBatch, names: ReadonlySet<string>): Uint8Array {
  switch (encoding) {
    case "plain":
      return encodeBatch(batch, false);
    case "dictionary":
      return encodeBatch(toDictionaries(batch, names), false);
    case "zstd":
      return encodeBatch(batch, true);
    case "dictionary, zstd":
      return encodeBatch(toDictionaries(batch, names), true);
    case "zstd file":
      return zstd(encodeBatch(batch, false));
  }
}

/** What the scan takes: a batch of plain buffers. */
function unpack(encoding: Encoding, bytes: Uint8Array): RecordBatch {
  const batch = openBatch(encoding === "zstd file" ? zstdDecompressSync(bytes) : bytes);
  return encoding === "dictionary" || encoding === "dictionary, zstd" ? fromDictionaries(batch) : batch;
}

function mustReadBack(encoding: Encoding, bytes: Uint8Array, batch: RecordBatch): void {
  const same = Buffer.compare(encodeBatch(unpack(encoding, bytes), false), encodeBatch(batch, false)) === 0;
  if (!same) throw new Error(`${encoding} does not read back as it was`);
}

function writeSynced(file: string, bytes: Uint8Array): void {
  const descriptor = openSync(file, "w");
  writeSync(descriptor, bytes);
  fsyncSync(descriptor);
  closeSync(descriptor);
}

type Reader = { duckdb: DuckDb; connection: Connection; scans: TlmScans };

async function openReader(): Promise<Reader> {
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  await duckdb.query(connection, "SET threads = 1");
  return { duckdb, connection, scans: registerTlmScan(duckdb, connection) };
}

type Sql = (from: string) => string;

function groupBy(column: string): Sql {
  return (from) => `SELECT ${column}::VARCHAR, count(*)::VARCHAR FROM ${from} GROUP BY ${column}`;
}

function numberColumn({ columns }: Dataset): string {
  const found = columns.find(({ type }) => type.kind === "int" || type.kind === "bool");
  if (found === undefined) throw new Error("the shape has no number of few values");
  return found.name;
}

/** Milliseconds of the query per extent. */
async function query(dataset: Dataset, bytes: Uint8Array, sql: Sql, reader: Reader): Promise<number> {
  const { duckdb, connection, scans } = reader;
  const sources = Array.from({ length: Math.ceil(QUERIED_ROWS / dataset.rows) }, () => ({ bytes }));
  const scan = scans.add({ columns: dataset.columns, sources, rows: sources.length * dataset.rows });
  const startedMs = systemClock.monotonicMs();
  const rows = await runSql(duckdb, connection, sql(`${TLM_SCAN}(${scan})`));
  const ms = systemClock.monotonicMs() - startedMs;
  scans.clear();
  if (rows.length === 0) throw new Error("the query found nothing");
  return ms / sources.length;
}

if (import.meta.main) await main(process.argv.slice(2));
