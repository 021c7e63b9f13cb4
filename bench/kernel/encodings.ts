import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import type { RecordBatch } from "apache-arrow";
import { z } from "zod";
import { median } from "../../src/capacity/quantile.ts";
import { systemClock } from "../../src/core/clock.ts";
import { ColumnSet } from "../../src/format/columns/column-set.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { byteScanner } from "../../src/format/ndjson/byte-scanner.ts";
import { encodeTlm, storedColumns } from "../../src/format/tlm.ts";
import type { ColumnStats } from "../../src/format/types.ts";
import { loadDuckDb, runSql, type Connection, type DuckDb } from "../../src/io/duckdb/duckdb.ts";
import { registerTlmScan, TLM_SCAN, type TlmScans } from "../../src/io/duckdb/tlm-scan.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { encodeBatch, fromDictionaries, openBatch, project, toDictionaries, zstd } from "../support/encoded-extents.ts";
import { synthetic, type Dataset } from "../support/shapes.ts";

/** Queries read copies of the extent up to about as many rows, so that they take more than their start. */
const QUERIED_ROWS = 60_000;
/** A dictionary pays where values repeat: by the statistics' estimate. */
const MIN_REPEATS = 8;
/** The column of the query over one column; both shapes have it. */
const TEXT_COLUMN = "label";

const ENCODINGS = ["plain", "dictionary", "zstd", "dictionary, zstd", "zstd file"] as const;
type Encoding = (typeof ENCODINGS)[number];

/**
 * `zstd` is Arrow's own compression, every buffer by itself; `zstd file` packs the extent as a whole, which spares calls
 * but must always be unpacked whole. Both are level 1. All sides write through the same Arrow writer, whose time is taken
 * off.
 */
export const benchmark = defineBenchmark({
  name: "kernel/encodings",
  question: "Would extents be better off with dictionaries for text of few values, or under zstd?",
  notMeasured:
    "Arrow's other codec, LZ4, which comes with neither Node nor apache-arrow. Queries run over the plain extent alone: " +
    "what unpacking adds to them is a measure of its own.",
  options: z.strictObject({
    data: z.enum(["logs", "wide"]).default("logs").describe("logs, wide"),
    rows: z.coerce.number().int().positive().default(3_700).describe("in the extent"),
    times: z.coerce.number().int().positive().default(15).describe("each of them in one round"),
  }),
  measures: {
    size: { unit: "KB", better: "less", doc: "of the extent" },
    seal: { unit: "ms/MB", better: "less", doc: "of NDJSON: scan, statistics, encoding, checksum" },
    checksum: { unit: "ms/MB", better: "less", doc: "of NDJSON: the checksum alone" },
    write: { unit: "ms/MB", better: "less", doc: "of NDJSON: writing and syncing the file" },
    sealWrite: { unit: "ms/MB", better: "less", doc: "of NDJSON: sealing, writing and syncing" },
    unpackOne: { unit: "ms/MB", better: "less", doc: "of NDJSON: the text column, to what the scan takes" },
    unpackAll: { unit: "ms/MB", better: "less", doc: "of NDJSON: all columns, to what the scan takes" },
    queryOne: { unit: "ms/MB", better: "less", doc: "of NDJSON: grouping by the text column" },
    queryNumber: { unit: "ms/MB", better: "less", doc: "of NDJSON: by a number, as fast as any dictionary could be" },
    queryAll: { unit: "ms/MB", better: "less", doc: "of NDJSON: the greatest value of every column" },
  },
  rounds: 7,
  open: async ({ data, rows, times }, { folder }) => {
    await mkdir(folder, { recursive: true });
    const dataset = synthetic(data, rows);
    const { bytes, stats } = seal(dataset);
    const batch = openBatch(bytes);
    const names = dictionaryColumns(dataset, stats);
    const extent: Extent = { dataset, bytes, batch, names, file: join(folder, "extent") };
    const reader = await openReader();
    const queries = () => queryTimes(dataset, bytes, reader);
    const sides = ENCODINGS.map((encoding) => sideOf(extent, encoding, { times, queries }));
    return { sides, close: async () => reader.duckdb.disconnect_sync(reader.connection) };
  },
});

type Extent = {
  dataset: Dataset;
  /** Plain, as ingest writes it. */
  bytes: Uint8Array;
  batch: RecordBatch;
  /** Columns that get a dictionary. */
  names: ReadonlySet<string>;
  /** Where it is written. */
  file: string;
};

type Times = Record<string, number>;
type SideOptions = { times: number; queries: () => Promise<Times> };

function sideOf(extent: Extent, encoding: Encoding, { times, queries }: SideOptions): Side {
  const megabytes = extent.dataset.ndjson.length / 1e6;
  return {
    name: encoding,
    answers: async () => {
      const encoded = encode(encoding, extent.batch, extent.names);
      return checksumOf(encodeBatch(unpack(encoding, encoded), false));
    },
    round: async () => {
      const all: Times[] = [];
      const queried: Times[] = [];
      for (let i = 0; i < times; i++) {
        all.push(timesOf(extent, encoding));
        if (encoding === "plain") queried.push(await queries());
      }
      const size = encode(encoding, extent.batch, extent.names).length / 1e3;
      return { size, ...mediansPer(all, megabytes), ...mediansPer(queried, megabytes) };
    },
  };
}

function mediansPer(all: readonly Times[], megabytes: number): Times {
  const names = Object.keys(all[0] ?? {});
  return Object.fromEntries(names.map((name) => [name, median(all.map((one) => one[name] ?? Number.NaN)) / megabytes]));
}

/** Milliseconds. */
function timesOf({ dataset, batch, names, file }: Extent, encoding: Encoding): Times {
  const { ms: sealMs } = timed(() => seal(dataset));
  const { ms: plainMs } = timed(() => encode("plain", batch, names));
  const { result: encoded, ms: encodeMs } = timed(() => encode(encoding, batch, names));
  const narrow = encode(encoding, encoding === "zstd file" ? batch : project(batch, [TEXT_COLUMN]), names);
  const { ms: checksum } = timed(() => checksumOf(encoded));
  const { ms: write } = timed(() => writeSynced(file, encoded));
  const whole = sealMs + (encoding === "plain" ? 0 : encodeMs - plainMs) + checksum;
  return {
    seal: whole,
    checksum,
    write,
    sealWrite: whole + write,
    unpackOne: timed(() => unpack(encoding, narrow)).ms,
    unpackAll: timed(() => unpack(encoding, encoded)).ms,
  };
}

async function queryTimes(dataset: Dataset, bytes: Uint8Array, reader: Reader): Promise<Times> {
  return {
    queryOne: await query(dataset, bytes, groupBy(TEXT_COLUMN), reader),
    queryNumber: await query(dataset, bytes, groupBy(numberColumn(dataset)), reader),
    queryAll: await query(dataset, bytes, (from) => `SELECT max(COLUMNS(*))::VARCHAR FROM ${from}`, reader),
  };
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
