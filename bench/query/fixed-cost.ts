import { ANONYMOUS } from "../../src/auth/caller.ts";
import { mkdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import type { Catalog, ExtentRecord, NewExtent, TableRecord } from "../../src/catalog/catalog.ts";
import { systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { systemRandom } from "../../src/core/random.ts";
import { quoteText } from "../../src/io/duckdb/duckdb.ts";
import { planQuery } from "../../src/query/prune/plan.ts";
import { readArguments, type Arguments } from "../support/arguments.ts";
import { withTemporaryFolder } from "../support/data-file.ts";
import { median, quantile } from "../../src/capacity/quantile.ts";
import { machine, printTable, shown } from "../support/report.ts";
import { startBenchServer } from "../support/server.ts";
import { queryData, TABLES } from "./data.ts";
import { QueryClient } from "./query-client.ts";
import { FRESH_ROWS, seedHome, withStorage, type SeededHome } from "./seed.ts";

/**
 * Questions: what does a query cost that does nothing, how fast do rows become NDJSON, and what does planning cost on a
 * table of very many extents?
 *
 *     node bench/query/fixed-cost.ts [--requests 2000] [--rows 200000] [--extents 100000] [--rounds 5]
 */
const OPTIONS = {
  requests: { type: "string", default: "2000" },
  rows: { type: "string", default: "200000" },
  extents: { type: "string", default: "100000" },
  rounds: { type: "string", default: "5" },
  keep: { type: "string" },
} as const;

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  const kept = options.text("keep");
  if (kept === undefined) await withTemporaryFolder((folder) => measure(folder, options));
  else await measure(kept, options);
}

async function measure(folder: string, options: Arguments): Promise<void> {
  await mkdir(folder, { recursive: true });
  await measureNdjson(folder, options);
  await measurePlanning(folder, options);
}

const SELECT_1 = "SELECT 1 AS one";
/** Before anything is timed: query processes take turns, and JavaScript is compiled as it runs. */
const WARM_UPS = 50;

async function timesOf(client: QueryClient, sql: string, requests: number): Promise<Float64Array> {
  for (let i = 0; i < Math.min(WARM_UPS, requests); i++) await client.run(sql);
  const ms = new Float64Array(requests);
  for (let i = 0; i < requests; i++) ms[i] = (await client.run(sql)).ms;
  return ms.sort();
}

/** A whole table over HTTP, and as DuckDB on one thread writes it into a file from the same extents. */
async function measureNdjson(folder: string, options: Arguments): Promise<void> {
  const rows = options.count("rows");
  const data = await queryData(join(folder, `data-${rows}`), rows);
  const cut = { sizeBytes: 16 * 1024 * 1024 };
  const home = await seedHome(join(folder, `home-ndjson-${rows}`), data, { format: "parquet", cut });
  const server = await startBenchServer({ home: home.home });
  const client = new QueryClient(server.url);
  const copy = await duckdbCopy(folder, home);
  try {
    const sql = "SELECT * FROM events";
    const answer = await client.run(sql, { keep: true });
    const lines = answer.body.split("\n").length - 1;
    if (lines !== rows) throw new Error(`${lines} rows came, not ${rows}`);
    const pairs: { engine: number; duckdb: number }[] = [];
    for (let round = 0; round <= options.count("rounds"); round++) {
      const { ms, sizeBytes } = await client.run(sql);
      const engine = sizeBytes / 1000 / ms;
      const duckdb = await copy.run();
      if (round > 0) pairs.push({ engine, duckdb });
    }
    console.log(`\nSELECT * of ${rows} rows to NDJSON, MB/s`);
    const [engine, duckdb] = [median(pairs.map((pair) => pair.engine)), median(pairs.map((pair) => pair.duckdb))];
    const ratio = median(pairs.map((pair) => pair.engine / pair.duckdb));
    printTable(
      ["", "engine over HTTP", "DuckDB COPY, one thread", "engine / DuckDB"],
      [["SELECT *", shown(engine), shown(duckdb), `${shown(ratio)}×`]],
    );
  } finally {
    copy.close();
    client.close();
    await server.stop();
  }
}

async function duckdbCopy(folder: string, { files }: SeededHome) {
  const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
  const connection = await instance.connect();
  const list = (files[TABLES.events.name] ?? []).map((path) => quoteText(path)).join(", ");
  const file = join(folder, "copy.ndjson");
  const sql = `COPY (SELECT * FROM read_parquet([${list}])) TO ${quoteText(file)} (FORMAT json)`;
  return {
    run: async () => {
      const startedMs = systemClock.monotonicMs();
      await connection.run(sql);
      const ms = systemClock.monotonicMs() - startedMs;
      const { size } = await stat(file);
      await rm(file);
      return size / 1000 / ms;
    },
    close: () => {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

const TOUCHED = 10;
const MANY = "many";

/** A query over the ten newest extents: of a table that has no others, and of one that has very many. */
async function measurePlanning(folder: string, options: Arguments): Promise<void> {
  const extents = options.count("extents");
  const rowsPerExtent = Math.min(FRESH_ROWS, Math.ceil(options.count("rows") / TOUCHED));
  const rows = TOUCHED * rowsPerExtent;
  const data = await queryData(join(folder, `data-${rows}`), rows);
  const cut = { rows: rowsPerExtent };
  const { home } = await seedHome(join(folder, `home-planning-${extents}-${rows}`), data, { format: "parquet", cut });
  const { fromNs, ms: planMs } = await withStorage(home, async ({ catalog }) => {
    const fromNs = await addManyExtents(catalog, extents);
    return { fromNs, ms: await planTimes(catalog, fromNs, options.count("requests") / 10) };
  });
  const server = await startBenchServer({ home });
  const client = new QueryClient(server.url);
  try {
    const sqlOf = (table: string) => `SELECT count(*) AS n FROM ${table} WHERE "at" >= make_timestamp_ns(${fromNs})`;
    for (const table of [TABLES.events.name, MANY]) {
      const { body } = await client.run(sqlOf(table), { keep: true });
      if (body !== `{"n":${rows}}\n`) throw new Error(`${table} answers ${body}`);
    }
    const requests = options.count("requests");
    const times = [
      [`SELECT 1`, await timesOf(client, SELECT_1, requests)],
      [`count over ${TOUCHED} of ${TOUCHED} extents`, await timesOf(client, sqlOf("events"), Math.ceil(requests / 10))],
      [`count over ${TOUCHED} of ${extents} extents`, await timesOf(client, sqlOf(MANY), Math.ceil(requests / 10))],
      [`planQuery of the last, in process`, planMs],
    ] as const;
    console.log("\nmilliseconds");
    printTable(
      ["", "p50", "p90", "p99"],
      times.map(([name, ms]) => [name, ...[0.5, 0.9, 0.99].map((q) => shown(quantile(ms, q)))]),
    );
    const [, few, many] = times.map(([, ms]) => quantile(ms, 0.5));
    console.log(`planning over HTTP (${extents} extents less ${TOUCHED}): ${shown((many ?? 0) - (few ?? 0))} ms`);
  } finally {
    client.close();
    await server.stop();
  }
}

async function planTimes(catalog: Catalog, minNs: bigint, times: number): Promise<Float64Array> {
  const ms = new Float64Array(Math.ceil(times));
  for (let i = -WARM_UPS; i < ms.length; i++) {
    const startedMs = systemClock.monotonicMs();
    const plan = await planQuery(
      catalog,
      { caller: ANONYMOUS, database: "default" },
      {
        tables: [{ name: MANY, mentions: [{ range: { minNs }, predicates: [] }] }],
        listings: [],
        system: [],
      },
      { clock: systemClock },
    );
    const tookMs = systemClock.monotonicMs() - startedMs;
    const planned = plan.tables[0]?.extents.length;
    if (planned !== TOUCHED) throw new Error(`the plan has ${planned} extents, not ${TOUCHED}`);
    if (i >= 0) ms[i] = tookMs;
  }
  return ms.sort();
}

const EXTENTS_PER_COMMIT = 1_000;

/**
 * Makes a table of the extents of `events` and so many others, each before the last in time, that it has `extents` in
 * all. The others exist in the catalog alone. Returns where the real ones begin.
 */
async function addManyExtents(catalog: Catalog, extents: number): Promise<bigint> {
  const events = await catalog.table("default", TABLES.events.name);
  const found = await catalog.extents(events?.id ?? -1, (await catalog.head()).id);
  // They were committed as their sealing ended, on several threads.
  const real = found.toSorted((a, b) => Number(a.minAtNs - b.minAtNs));
  const newId = uuidV7Source(systemClock, systemRandom);
  const first = real[0];
  if (first === undefined) throw new Error("events has no extents");
  const { table, created } = await catalog.createTable({ database: "default", ...TABLES.events, name: MANY });
  if (created) {
    const others = Array.from({ length: extents - real.length }, (_, i) => i + 1);
    for (let i = 0; i < others.length; i += EXTENTS_PER_COMMIT) {
      const batch = others.slice(i, i + EXTENTS_PER_COMMIT);
      await commit(
        catalog,
        table,
        batch.map((place) => earlier(first, place, newId())),
      );
    }
    await commit(
      catalog,
      table,
      real.map((extent) => earlier(extent, 0, newId())),
    );
  }
  return first.minAtNs;
}

async function commit(catalog: Catalog, { id, schemaVersion }: TableRecord, extents: NewExtent[]): Promise<void> {
  const [outcome] = await catalog.commit([{ tableId: id, schemaVersion, newColumns: [], extents, ledger: [] }]);
  if (outcome?.kind !== "committed") throw new Error(`the catalog said ${outcome?.kind}`);
}

/** A copy of the extent, `places` of its own length before it. */
function earlier(extent: ExtentRecord, places: number, id: string): NewExtent {
  const shiftNs = (extent.maxAtNs - extent.minAtNs + 1n) * BigInt(places);
  return {
    ...newExtentOf(extent),
    id,
    key: places === 0 ? extent.key : `${extent.key}.${places}`,
    minAtNs: extent.minAtNs - shiftNs,
    maxAtNs: extent.maxAtNs - shiftNs,
  };
}

function newExtentOf(extent: ExtentRecord): NewExtent {
  const { tableId: _table, schemaVersion: _version, beginSnapshot: _begin, ...rest } = extent;
  return rest;
}

if (import.meta.main) await main(process.argv.slice(2));
