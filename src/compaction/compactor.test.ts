import { ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ExtentRecord, TableRecord } from "../catalog/catalog.ts";
import type { ColumnSpec } from "../format/types.ts";
import { createColumn } from "../format/columns/create.ts";
import { appendValue } from "../format/columns/column.test-kit.ts";
import type { FilterProbe } from "../format/filter/filter.ts";
import { probeNeedles, probeValues } from "../format/filter/probes.ts";
import { loadDuckDb, quoteText, runSql } from "../io/duckdb/duckdb.ts";
import { itemsToRead } from "../io/duckdb/parquet.test-kit.ts";
import { registerTlmScan } from "../io/duckdb/tlm-scan.ts";
import type { FixtureRow } from "../io/duckdb/tlm.test-kit.ts";
import { openBench, statsOf, type Bench } from "./compaction.test-kit.ts";
import { COMPACTION_METRICS } from "./metrics.ts";
import { dayOf } from "./pick.ts";

/** 2024-01-01T00:00:00Z */
const DAY_NS = 86_400_000_000_000n;
const START_NS = 19_723n * DAY_NS;

const COLUMNS: readonly ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "n", type: { kind: "int" } },
  { name: "Label", type: { kind: "string" } },
  { name: "big", type: { kind: "long" } },
  { name: "r", type: { kind: "real" } },
  { name: "ok", type: { kind: "bool" } },
  { name: "seen", type: { kind: "timestamp" } },
  { name: "props", type: { kind: "dynamic" } },
  { name: 'odd "name', type: { kind: "string" } },
  { name: "v", type: { kind: "vector", dimensions: 3 } },
];

/** Rows that come out of order, with awkward values. */
function row(n: number, atNs = START_NS + BigInt((n * 7_919) % 1_000) * 1_000_000_000n): FixtureRow {
  return {
    at: atNs,
    n,
    Label: n % 7 === 0 ? null : (["", "nul\0byte", "日本語", "Ärger", "😀".repeat(30), "x".repeat(100)][n % 6] ?? null),
    big: n % 5 === 0 ? 2n ** 63n - 1n - BigInt(n) : -(2n ** 53n) - BigInt(n),
    r: n % 3 === 0 ? -n / 8 : n * 1e300,
    ok: n % 2 === 0,
    seen: n % 11 === 0 ? null : -BigInt(n) * 1_000_000_007n,
    props: JSON.stringify({ n, text: '\\u0000 \\ud800 "', deep: [{ a: [] }] }),
    'odd "name': `value ${n % 50}`,
    v: [n, 0.5, -1],
  };
}

function rows(from: number, count: number): FixtureRow[] {
  return Array.from({ length: count }, (_, i) => row(from + i));
}

let bench: Bench;
let table: TableRecord;
beforeEach(async () => {
  bench = await openBench();
  ({ table } = await bench.catalog.createTable({ database: "d", name: "t", columns: COLUMNS }));
});
afterEach(() => bench.close());

/** Runs compaction; every merge must succeed. */
async function compact(...options: Parameters<Bench["compactor"]>): Promise<void> {
  await bench.compactor(...options)(turn());
  expect(bench.failures).toEqual([]);
}

const turn = () => ({ lease: bench.lease, signal: new AbortController().signal });

/** All rows of extents as JSON, in the order in which the files have them. */
async function read(extents: readonly ExtentRecord[]): Promise<Record<string, unknown>[]> {
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  await duckdb.query(connection, "SET threads = 1");
  const scans = registerTlmScan(duckdb, connection);
  const all: Record<string, unknown>[] = [];
  for (const { key, format } of extents) {
    const path = bench.store.localPath?.(key) ?? "";
    const own = { columns: COLUMNS, sources: [{ path }], rows: 0 };
    const from = format === "tlm" ? `engine_tlm_scan(${scans.add(own)})` : `read_parquet(${quoteText(path)})`;
    const columns = await runSql(duckdb, connection, `SELECT column_name, column_type FROM (DESCRIBE FROM ${from})`);
    const items = itemsToRead(columns.map(([name, type]) => [String(name), String(type)]));
    const exact = `* REPLACE (epoch_ns("at") AS "at")`;
    for (const [json] of await runSql(
      duckdb,
      connection,
      `SELECT CAST(to_json(x) AS VARCHAR) FROM (SELECT ${exact} FROM (SELECT ${items} FROM ${from})) x`,
    )) {
      all.push(JSON.parse(json ?? "") as Record<string, unknown>);
    }
  }
  return all;
}

const byN = (all: readonly Record<string, unknown>[]) => all.toSorted((a, b) => Number(a["n"]) - Number(b["n"]));

describe("a merge", () => {
  it("keeps every row of both formats and of several schema versions, sorted by time", async () => {
    await bench.add(table, [
      {
        columns: COLUMNS.slice(0, 3),
        rows: rows(0, 300).map(({ at = null, n = null, Label = null }) => ({ at, n, Label })),
      },
      {
        format: "parquet",
        columns: COLUMNS.slice(0, 8),
        rows: rows(300, 50).map(({ v: _v, 'odd "name': _o, ...rest }) => rest),
      },
      { columns: COLUMNS, rows: rows(350, 400) },
      { format: "parquet", columns: COLUMNS, rows: rows(750, 250) },
    ]);
    const before = await bench.live(table);
    await compact({ minExtents: 2 });
    const after = await bench.live(table);
    expect(after).toHaveLength(1);
    expect(after[0]).toMatchObject({ format: "parquet", rows: 1_000, schemaVersion: 1 });
    expect(after[0]?.key).toMatch(/^engine\/d\/t\/2024-01-01\/[0-9a-f-]{36}\.parquet$/);
    const [old, merged] = [await read(before), await read(after)];
    const isNull = ([, value]: [string, unknown]) => value !== null;
    const plain = (all: readonly Record<string, unknown>[]) =>
      byN(all).map((one) => Object.fromEntries(Object.entries(one).filter(isNull)));
    expect(plain(merged)).toEqual(plain(old));
    const times = merged.map((one) => BigInt(one["at"] as number));
    expect(times).toEqual(times.toSorted((a, b) => (a < b ? -1 : Number(a > b))));
    await bench.catalog.verify();
    expect(await bench.leftovers()).toEqual([]);
    expect(await COMPACTION_METRICS.of(bench.metrics).compactionMerges.get()).toMatchObject({
      values: [{ labels: { outcome: "published" }, value: 1 }],
    });
  });

  it("leaves alone what a newer version wrote in a way of its own", async () => {
    await bench.add(
      table,
      [0, 100, 200].map((from) => ({ columns: COLUMNS, rows: rows(from, 100) })),
    );
    const newer = (await bench.live(table))[0]?.id;
    const ofNewer = <T extends { id: string }>(all: T[]) =>
      all.map((extent) => (extent.id === newer ? { ...extent, formatVersion: 9 } : extent));
    const catalog = new Proxy(bench.catalog, {
      get(real, name) {
        if (name === "extents")
          return async (...args: Parameters<typeof real.extents>) => ofNewer(await real.extents(...args));
        const value: unknown = Reflect.get(real, name);
        return typeof value === "function" ? (value.bind(real) as unknown) : value;
      },
    });
    await compact({ minExtents: 2 }, { catalog });
    const after = await bench.live(table);
    expect(after.map(({ rows: n }) => n).toSorted((a, b) => a - b)).toEqual([100, 200]);
    expect(after.find(({ rows: n }) => n === 100)?.id).toBe(newer);
  });

  it("migrates tlm of a day that is not quiet, where new extents are Parquet", async () => {
    await bench.add(table, [
      { columns: COLUMNS, rows: rows(0, 10) },
      { format: "parquet", columns: COLUMNS, rows: rows(10, 5) },
      { columns: COLUMNS, rows: rows(15, 10) },
    ]);
    const before = await bench.live(table);
    // Long enough to be migrated, and by far not for a day of years ago to count as quiet.
    bench.clock.aheadMs = 7_200_000;
    await compact();
    expect(await bench.live(table)).toEqual(before);
    await compact({ isTlmPast: true });
    const after = await bench.live(table);
    const sizes = after.map(({ format, rows: count }) => `${count} in ${format}`);
    expect(new Set(sizes)).toEqual(new Set(["20 in parquet", "5 in parquet"]));
    expect(byN(await read(after))).toEqual(byN(await read(before)));
    await compact({ isTlmPast: true });
    expect(await bench.live(table)).toEqual(after);
    await bench.catalog.verify();
  });

  it("gives statistics of all its columns, as sealing would", async () => {
    const all = rows(0, 1_000);
    await bench.add(
      table,
      Array.from({ length: 4 }, (_, i) => ({ columns: COLUMNS, rows: all.slice(i * 250, (i + 1) * 250) })),
    );
    await compact({ minExtents: 2 });
    const [merged] = await bench.live(table);
    if (merged === undefined) throw new Error("no extent");
    expect(merged.stats.map(({ name }) => name)).toEqual(COLUMNS.map(({ name }) => name));
    for (const column of COLUMNS) {
      const sealed = createColumn(column);
      for (const one of all) appendValue(sealed, one[column.name] ?? null);
      const { distinct: _estimate, ...expected } = sealed.stats(all.length);
      const { distinct = 0, ...stats } = statsOf(merged, column.name) ?? { name: "" };
      expect(stats).toEqual(expected);
      const exact = new Set(all.map((one) => String(one[column.name] ?? null))).size - (expected.nullCount > 0 ? 1 : 0);
      expect(Math.abs(distinct - exact), `${column.name}: ${distinct}, not ${exact}`).toBeLessThanOrEqual(
        exact <= 600 ? 0 : exact / 4,
      );
    }
    expect([merged.minAtNs, merged.maxAtNs].map(String)).toEqual([
      statsOf(merged, "at")?.min,
      statsOf(merged, "at")?.max,
    ]);
  });

  it("keeps the number of misfits of each column, also of one without a value", async () => {
    const without = rows(0, 30).map(({ big: _big, ...rest }) => rest);
    await bench.add(table, [
      { columns: COLUMNS, rows: without.slice(0, 10), misfits: { big: 10, at: 1 } },
      { columns: COLUMNS, rows: without.slice(10, 20), misfits: { big: 7, seen: 1 } },
      // Another day: the merge of the first leaves it alone.
      { columns: COLUMNS, rows: [row(1, START_NS + DAY_NS)], misfits: { seen: 1 } },
      { format: "parquet", columns: COLUMNS, rows: without.slice(20), misfits: { big: 1 } },
    ]);
    const before = await bench.catalog.misfits(table.id);
    await compact({ minExtents: 2 });
    const merged = await bench.live(table);
    expect(merged.map((extent) => [extent.rows, statsOf(extent, "big")?.misfits])).toEqual([
      [1, undefined],
      [30, 18],
    ]);
    expect(await bench.catalog.misfits(table.id)).toEqual(before);
  });

  it("records the ids of columns as field ids, and those of the items of vectors apart", async () => {
    await bench.add(table, [
      { columns: COLUMNS, rows: rows(0, 20) },
      { columns: COLUMNS, rows: rows(20, 20) },
    ]);
    await compact({ minExtents: 2 });
    const [merged] = await bench.live(table);
    const path = bench.store.localPath?.(merged?.key ?? "") ?? "";
    const duckdb = await loadDuckDb();
    const connection = await duckdb.connect(await duckdb.open(":memory:"));
    const sql = `SELECT name, CAST(field_id AS BIGINT) FROM parquet_schema(${quoteText(path)}) WHERE field_id IS NOT NULL`;
    const ids = table.columns.map(({ name, id }) => [name, String(id)]);
    const item = `${1_000_000 + Number(ids.at(-1)?.[1])}`;
    const finer = table.columns.flatMap(({ name, id }) =>
      name === "seen" ? [["seen\u001fns", `${2_000_000 + id}`]] : [],
    );
    expect(await runSql(duckdb, connection, sql)).toEqual([...ids, ["element", item], ...finer]);
    expect(merged?.nanosecondColumnIds).toEqual(table.columns.flatMap(({ name, id }) => (name === "seen" ? [id] : [])));
  });

  it("keeps rows of one time in the order in which they came", async () => {
    const at = (n: number) => row(n, START_NS + BigInt(n % 3));
    const extents = Array.from({ length: 4 }, (_, e) => ({
      columns: COLUMNS,
      rows: Array.from({ length: 5_000 }, (_, i) => at(e * 5_000 + i)),
    }));
    await bench.add(table, extents);
    await compact();
    const merged = await read(await bench.live(table));
    for (const time of [0, 1, 2]) {
      const own = merged.map((one) => Number(one["n"])).filter((n) => n % 3 === time);
      expect(own).toEqual(own.toSorted((a, b) => a - b));
    }
    expect(merged).toHaveLength(20_000);
  });

  it("cuts at midnight, also before 1970 and at the ends of time", async () => {
    const times = [
      [-DAY_NS - 1n, -DAY_NS, -1n, 0n, DAY_NS - 1n],
      [DAY_NS, START_NS, START_NS + DAY_NS - 1n, START_NS + DAY_NS],
      [-(2n ** 63n) + 2n, 2n ** 63n - 2n],
      [-DAY_NS - 1n, 0n],
    ];
    const extents = times.map((of, e) => ({ columns: COLUMNS, rows: of.map((at, i) => row(e * 10 + i, at)) }));
    await bench.add(table, extents);
    const before = await read(await bench.live(table));
    bench.clock.aheadMs = 400 * 365 * 86_400_000;
    await compact({ minExtents: 2 });
    const after = await bench.live(table);
    for (const { minAtNs, maxAtNs } of after) expect(dayOf(minAtNs)).toBe(dayOf(maxAtNs));
    const days = new Set(times.flat().map(dayOf));
    expect(new Set(after.map(({ minAtNs }) => dayOf(minAtNs)))).toEqual(days);
    expect(after.map(({ format }) => format)).toEqual(after.map(() => "parquet"));
    expect(byN(await read(after))).toEqual(byN(before));
    expect(after.find(({ minAtNs }) => minAtNs === START_NS + DAY_NS)?.key).toContain("/2024-01-02/");
    await bench.catalog.verify();
  });

  it("runs for a part of the time, and for less while the server is busy", async () => {
    await bench.add(
      table,
      [0, 200].map((from) => ({ columns: COLUMNS, rows: rows(from, 200) })),
    );
    const stops = vi.spyOn(ChildProcess.prototype, "kill");
    const isBusy = vi.fn<() => boolean>(() => true);
    await compact({ minExtents: 2, cpuShare: 0.5 }, { isBusy });
    const signals = stops.mock.calls.map(([signal]) => signal);
    stops.mockRestore();
    // A tenth of each period: the work of a quarter of a second takes many of them.
    expect(isBusy.mock.calls.length).toBeGreaterThan(3);
    expect(signals.filter((signal) => signal === "SIGSTOP").length).toBeGreaterThan(3);
    expect((await bench.live(table)).map((extent) => extent.rows)).toEqual([400]);
  });

  it("makes filters of ids and of words that leave out what is not there", async () => {
    const columns: ColumnSpec[] = ["at", "id", "body", "few"].map((name) => {
      return { name, type: { kind: name === "at" ? "timestamp" : "string" } };
    });
    const { table: logs } = await bench.catalog.createTable({ database: "d", name: "logs", columns });
    const idOf = (n: number) => createHash("md5").update(String(n)).digest("hex");
    const line = (n: number) => ({
      at: START_NS + BigInt(n),
      id: idOf(n),
      body: `request ${n} of ${idOf(n % 100).slice(0, 6)} timed out after ${n % 1_000} ms`,
      few: `v${n % 3}`,
    });
    const extents = Array.from({ length: 4 }, (_, e) => ({
      columns,
      rows: Array.from({ length: 1_000 }, (_, i) => line(e * 1_000 + i)),
    }));
    await bench.add(logs, extents);
    await compact();
    const [merged] = await bench.live(logs);
    const without = async (column: string, probe: FilterProbe | undefined) => {
      if (probe === undefined || merged === undefined) throw new Error("nothing to ask");
      return (await bench.catalog.extentsWithout(logs.id, [merged.id], [{ column, ...probe }])).length;
    };
    for (let n = 0; n < 4_000; n += 97) {
      expect(await without("id", probeValues([idOf(n)]))).toBe(0);
      expect(await without("body", probeNeedles([`${idOf(n % 100).slice(0, 6)} timed`]))).toBe(0);
    }
    let passed = 0;
    for (let n = 4_000; n < 4_300; n++) passed += 1 - (await without("id", probeValues([idOf(n)])));
    expect(passed).toBeLessThan(10);
    expect(await without("body", probeNeedles(["connection refused"]))).toBe(1);
    // Three values need no filter.
    expect(await without("few", probeValues(["v9"]))).toBe(0);
  });
});

it("writes what a column is now: integers of before it was widened become doubles, of either format", async () => {
  const at = { name: "at", type: { kind: "timestamp" } } as const;
  const long = { name: "took", type: { kind: "long" }, inferred: true } as const;
  const real = { name: "took", type: { kind: "real" } } as const;
  const { table: narrow } = await bench.catalog.createTable({ database: "d", name: "wider", columns: [at, long] });
  const extent = (format: "tlm" | "parquet", took: (bigint | number | null)[], from: number) => ({
    format,
    columns: [at, typeof took[0] === "bigint" ? long : real],
    rows: took.map((value, i) => ({ at: START_NS + BigInt(from + i), took: value })),
  });
  const whole = [extent("tlm", [1n, null, -(2n ** 53n)], 0), extent("parquet", [2n ** 53n, 7n], 10)];
  await bench.add(narrow, whole);
  const wide = await bench.catalog.widenColumns(narrow.id, ["took"]);
  expect(wide.schemaVersion).toBe(2);
  await bench.add(wide, [extent("tlm", [0.5], 20), extent("parquet", [-0.25, 3], 30)]);
  // A late one, which was sealed before.
  await bench.add(narrow, [extent("tlm", [11n], 40)]);
  await compact({ minExtents: 2 });
  const live = await bench.live(wide);
  expect(live.map(({ format, schemaVersion }) => [format, schemaVersion])).toEqual([["parquet", 2]]);
  const took = (await read(live)).map((row) => row["took"]);
  expect(took).toEqual([1, null, -(2 ** 53), 2 ** 53, 7, 0.5, -0.25, 3, 11]);
  const [merged] = live;
  if (merged === undefined) throw new Error("nothing is left");
  expect(statsOf(merged, "took")).toMatchObject({ nullCount: 1, min: "-9007199254740992", max: "9007199254740992" });
});

it("feeds a merge of fresh extents alone with doubles, too", async () => {
  const at = { name: "at", type: { kind: "timestamp" } } as const;
  const long = { name: "took", type: { kind: "long" }, inferred: true } as const;
  const { table: narrow } = await bench.catalog.createTable({ database: "d", name: "wider", columns: [at, long] });
  const one = (took: bigint | number, from: number) => ({
    columns: [at, typeof took === "bigint" ? long : ({ name: "took", type: { kind: "real" } } as const)],
    rows: [{ at: START_NS + BigInt(from), took }],
  });
  await bench.add(narrow, [one(-5n, 3), one(4_294_967_296n, 1)]);
  const wide = await bench.catalog.widenColumns(narrow.id, ["took"]);
  await bench.add(wide, [one(0.125, 2), one(6, 0)]);
  await compact();
  const live = await bench.live(wide);
  expect(live).toHaveLength(1);
  expect((await read(live)).map((row) => row["took"])).toEqual([6, 4_294_967_296, 0.125, -5]);
});
