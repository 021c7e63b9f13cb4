import { expect, test } from "vitest";
import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import type { FlushCommit, TableRecord } from "../../src/catalog/catalog.ts";
import { openBench, type Bench } from "../../src/compaction/compaction.test-kit.ts";
import { spansDays } from "../../src/compaction/pick.ts";
import { systemClock } from "../../src/core/clock.ts";
import { messageOf } from "../../src/core/errors.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { seededRandom, systemRandom } from "../../src/core/random.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { Chooser } from "../../src/format/ndjson/generate-values.test-kit.ts";
import type { ColumnSpec } from "../../src/format/types.ts";
import { loadDuckDb, quoteText, runSql } from "../../src/io/duckdb/duckdb.ts";
import { tlmToParquet } from "../../src/io/duckdb/parquet.test-kit.ts";
import { tlmFixture, type FixtureRow } from "../../src/io/duckdb/tlm.test-kit.ts";
import { compareRows, parseLines, type Exact } from "../query/differential/compare.test-kit.ts";
import { makeTables, type DataTable } from "../query/differential/dataset.test-kit.ts";
import { randomQuery } from "../query/differential/queries.test-kit.ts";
import { Context, type Select } from "../query/differential/sources.test-kit.ts";
import { createQueryHarness, type QueryHarness } from "../../src/query/query.test-kit.ts";
import { fixtureStats } from "../../src/query/stats.test-kit.ts";

/** The same random queries before and after all tables were compacted, time travel among them: nobody can tell. */
const QUERIES = 120;
/** Of the data, which has several extents in each day: one that is alone stays as it is. Queries are drawn. */
const DATA_SEED = 20_261_122;
const EXTENT_ROWS = 9;
/** Of the query pool. */
const PROCESSES = 3;

const newId = uuidV7Source(systemClock, systemRandom);

test(`${QUERIES} random queries have the same answers before and after compaction`, { timeout: 300_000 }, async () => {
  const seed = drawnSeed();
  const bench = await openBench();
  const { catalog, store } = bench;
  const harness = createQueryHarness({ pool: { children: PROCESSES }, service: { catalog, store } });
  try {
    const data = makeTables(seededRandom(DATA_SEED));
    const newest = Math.max(...data.map(({ versions }) => versions.length));
    await fill(bench, data, newest);
    const queries = Array.from({ length: QUERIES }, (_, i) =>
      randomQuery(new Context(new Chooser(seededRandom((seed ^ Math.imul(i + 1, 0x9e3779b1)) >>> 0)), newest)),
    );
    const before: Answer[] = [];
    for (let i = 0; i < queries.length; i += PROCESSES)
      before.push(...(await answers(harness, queries.slice(i, i + PROCESSES))));

    const extents = await liveExtents(bench);
    // All days are long over, and what is left of each is merged.
    bench.clock.aheadMs = 400 * 86_400_000;
    await bench.compactor({ minExtents: 2 })({ lease: bench.lease, signal: new AbortController().signal });
    expect(bench.failures).toEqual([]);
    const merged = await liveExtents(bench);
    expect(new Set(merged.map(({ format }) => format))).toEqual(new Set(["parquet"]));
    expect(merged.length).toBeLessThan(extents.length);
    expect(merged.filter(spansDays)).toEqual([]);
    const old = new Set(extents.map(({ id }) => id));
    expect(merged.filter(({ id }) => !old.has(id)).length).toBeGreaterThan(merged.length / 2);
    await catalog.verify();

    let answered = 0;
    const after: Answer[] = [];
    for (let i = 0; i < queries.length; i += PROCESSES)
      after.push(...(await answers(harness, queries.slice(i, i + PROCESSES))));
    for (const [i, { sql, ordered }] of queries.entries()) {
      const [was, is] = [before[i], after[i]];
      if (was === undefined || is === undefined) throw new Error("no answer");
      expect(differenceOf(is, was, ordered), `seed ${seed}: ${sql.ours}`).toBeUndefined();
      if ("rows" in was && was.rows.length > 0) answered++;
    }
    expect(answered).toBeGreaterThan(QUERIES * 0.4);
  } finally {
    await harness.close();
    await bench.close();
  }
});

test("rows of a compacted file are sorted by time, then by the table's cluster columns, then by arrival", async () => {
  const bench = await openBench();
  try {
    const columns: ColumnSpec[] = [
      { name: "at", type: { kind: "timestamp" } },
      { name: "Host", type: { kind: "string" } },
      { name: "level", type: { kind: "int" } },
      { name: "n", type: { kind: "long" } },
    ];
    const clusterBy = ["level", "HOST"];
    const { table } = await bench.catalog.createTable({ database: "default", name: "events", columns, clusterBy });
    const random = seededRandom(DATA_SEED);
    const hosts = ["a", "b", "Ä", "z", null];
    const rows = Array.from({ length: 600 }, (_, n): Clustered => ({
      // Two days; in the second no row has a level, so that no extent of it has the column.
      at: 1_704_067_200_000_000_000n + BigInt(n % 2) * DAY_NS + BigInt(Math.floor(random.next() * 5)) * 1_000n,
      Host: hosts[Math.floor(random.next() * hosts.length)] ?? null,
      level: n % 2 === 1 || random.next() < 0.1 ? null : Math.floor(random.next() * 3),
      n: BigInt(n),
    }));
    for (const day of [0, 1]) {
      const own = rows.filter((_, n) => n % 2 === day);
      const extents = Array.from({ length: 6 }, (_, i) => ({ columns, rows: own.slice(i * 50, i * 50 + 50) }));
      await bench.add(table, extents);
    }
    bench.clock.aheadMs = 400 * 86_400_000;
    await bench.compactor({ minExtents: 2 })({ lease: bench.lease, signal: new AbortController().signal });
    expect(bench.failures).toEqual([]);
    const merged = await bench.live(table);
    expect(merged.map(({ format, rows: count }) => [format, count])).toEqual([
      ["parquet", 300],
      ["parquet", 300],
    ]);
    for (const [day, { key }] of merged.toSorted((a, b) => Number(a.minAtNs - b.minAtNs)).entries()) {
      const own = rows.filter((_, n) => n % 2 === day).toSorted(byTimeLevelAndHost);
      expect(await numbersIn(bench.store.localPath?.(key) ?? "")).toEqual(own.map(({ n }) => String(n)));
    }
  } finally {
    await bench.close();
  }
});

const DAY_NS = 86_400_000_000_000n;

type Clustered = FixtureRow & { at: bigint; level: number | null; Host: string | null };

/** NULL comes last. The sort is stable, and so keeps the order of arrival. */
function byTimeLevelAndHost(a: Clustered, b: Clustered): number {
  if (a.at !== b.at) return a.at < b.at ? -1 : 1;
  if (a.level !== b.level) return (a.level ?? Infinity) - (b.level ?? Infinity);
  if (a.Host === null || b.Host === null) return Number(a.Host === null) - Number(b.Host === null);
  return Buffer.compare(Buffer.from(a.Host), Buffer.from(b.Host));
}

/** The column `n` of a Parquet file, in the order of its rows. */
async function numbersIn(path: string): Promise<(string | null)[]> {
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  await duckdb.query(connection, "SET threads = 1");
  const rows = await runSql(duckdb, connection, `SELECT CAST(n AS VARCHAR) FROM read_parquet(${quoteText(path)})`);
  return rows.map(([n]) => n ?? null);
}

type Answer = { rows: Map<string, Exact>[] } | { error: string };

function answers(harness: QueryHarness, queries: readonly Select[]): Promise<Answer[]> {
  return Promise.all(queries.map(({ sql }) => answer(harness, sql.ours)));
}

async function answer(harness: QueryHarness, sql: string): Promise<Answer> {
  try {
    return { rows: parseLines(await harness.text(sql)) };
  } catch (error) {
    return { error: messageOf(error) };
  }
}

function differenceOf(is: Answer, was: Answer, ordered: boolean): string | undefined {
  if ("rows" in is && "rows" in was) return compareRows(is.rows, was.rows, ordered);
  return "error" in is && "error" in was ? undefined : `${JSON.stringify(is)} instead of ${JSON.stringify(was)}`;
}

/** One snapshot for each version of the tables, which grow columns on the way; extents of both formats. */
async function fill(bench: Bench, data: readonly DataTable[], newest: number): Promise<void> {
  const tables = new Map<string, TableRecord>();
  for (const { name, columns, versions } of data) {
    const first = versions[0]?.columns ?? columns;
    const { table } = await bench.catalog.createTable({ database: "default", name, columns: first });
    tables.set(name, table);
  }
  for (let version = 0; version < newest; version++) {
    const flushes: FlushCommit[] = [];
    for (const { name, versions } of data) {
      const [table, part] = [tables.get(name), versions[version]];
      if (table === undefined || part === undefined) continue;
      const known = new Set(versions[version - 1]?.columns ?? part.columns);
      const newColumns = part.columns.filter((column) => !known.has(column));
      const { schemaVersion = 1 } = (await bench.catalog.table("default", name)) ?? {};
      const extents = await extentsOf(bench, name, part);
      flushes.push({ tableId: table.id, schemaVersion, newColumns, extents, ledger: [] });
    }
    const outcomes = await bench.catalog.commit(flushes);
    expect(outcomes.map(({ kind }) => kind)).toEqual(flushes.map(() => "committed"));
  }
}

async function extentsOf(
  { store }: Bench,
  table: string,
  { columns, rows }: { columns: readonly ColumnSpec[]; rows: readonly FixtureRow[] },
): Promise<FlushCommit["extents"]> {
  const extents: FlushCommit["extents"][number][] = [];
  for (let start = 0; start < rows.length; start += EXTENT_ROWS) {
    const own = rows.slice(start, start + EXTENT_ROWS);
    const format = extents.length % 3 === 2 ? "parquet" : "tlm";
    const tlm = tlmFixture(columns, own);
    const bytes = format === "tlm" ? tlm : await tlmToParquet(tlm);
    const id = newId();
    const key = `engine/default/${table}/2024-01-01/${id}.${format}`;
    await store.put(key, bytes);
    const times = own.map((row) => row["at"] as bigint).sort((a, b) => (a < b ? -1 : 1));
    extents.push({
      id,
      key,
      format,
      formatVersion: 1,
      rows: own.length,
      sizeBytes: bytes.byteLength,
      checksum: checksumOf(bytes),
      minAtNs: times[0] ?? 0n,
      maxAtNs: times.at(-1) ?? 0n,
      stats: columns.map((column) => fixtureStats(column, own)),
    });
  }
  return extents;
}

async function liveExtents({ catalog }: Bench) {
  const { id: head } = await catalog.head();
  const tables = await catalog.tables("default");
  return (await Promise.all(tables.map(({ id }) => catalog.extents(id, head)))).flat();
}
