import { CACHE_METRICS } from "./metrics.ts";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { PlannedExtent } from "../../../catalog/catalog.ts";
import type { ColumnSpec } from "../../../format/types.ts";
import {
  loadDuckDb,
  quoteIdentifier,
  quoteText,
  runSql,
  type Connection,
  type DuckDb,
} from "../../../io/duckdb/duckdb.ts";
import { tlmToParquet } from "../../../io/duckdb/parquet.test-kit.ts";
import { tlmFixture, type FixtureRow } from "../../../io/duckdb/tlm.test-kit.ts";
import { tableQuery } from "../../scan/views.ts";
import { bytesOf, openCacheKit, type CacheKit } from "./cache.test-kit.ts";

const COLUMNS: ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "body", type: { kind: "string" } },
  { name: "label", type: { kind: "string" } },
  { name: "ok", type: { kind: "bool" } },
  { name: "i", type: { kind: "int" } },
  { name: "l", type: { kind: "long" } },
  { name: "r", type: { kind: "real" } },
  { name: "Props", type: { kind: "dynamic" } },
  { name: "v", type: { kind: "vector", dimensions: 3 } },
  { name: "odd.name", type: { kind: "string" } },
];
const NAMES = COLUMNS.map((column) => column.name);
const ROWS = 130_000;
const MIB = 1024 * 1024;

/** Of two row groups, most of it in `body`. */
let parquet: Uint8Array;
let duckdb: DuckDb;
let connection: Connection;
let kit: CacheKit;
let extent: PlannedExtent;

function rowOf(n: number, noise: Buffer): FixtureRow {
  return {
    at: 1_704_067_200_000_000_000n + BigInt(n) * 1_000_003n,
    body: noise.toString("base64", n * 24, n * 24 + 24),
    label: n % 11 === 0 ? null : `label ${n % 3}`,
    ok: n % 5 === 0 ? null : n % 2 === 0,
    i: n % 1000,
    l: 9_223_372_036_854_000_000n + BigInt(n % 100),
    r: n % 4 === 0 ? null : (n % 50) / 8,
    Props: n % 7 === 0 ? null : JSON.stringify({ a: n % 10 }),
    v: [n % 10, 0.1, -1.5],
    "odd.name": `x${n % 5}`,
  };
}

beforeAll(async () => {
  const noise = Buffer.from(bytesOf(3, ROWS * 24 + 24));
  const rows = Array.from({ length: ROWS }, (_, n) => rowOf(n, noise));
  parquet = await tlmToParquet(tlmFixture(COLUMNS, rows));
  duckdb = await loadDuckDb();
  connection = await duckdb.connect(await duckdb.open(":memory:"));
  // With more, the rows come in another order each time.
  await duckdb.query(connection, "SET threads = 1");
});

beforeEach(async () => {
  kit = await openCacheKit();
  extent = await kit.addExtent("p", parquet, "parquet");
});
afterEach(() => kit.close());

/** Everything about some columns that an answer could depend on. */
async function answer(path: string, columns: readonly string[]): Promise<unknown> {
  const items = columns.map((name) => {
    const column = quoteIdentifier(name);
    return `md5(string_agg(CAST(${column} AS VARCHAR), ',')), count(${column}), min(CAST(${column} AS VARCHAR))`;
  });
  return runSql(
    duckdb,
    connection,
    `SELECT ${["count(*)", ...items].join(", ")} FROM read_parquet(${quoteText(path)})`,
  );
}

async function answerOfWhole(columns: readonly string[]): Promise<unknown> {
  const path = join(kit.folder, "whole.parquet");
  writeFileSync(path, parquet);
  return answer(path, columns);
}

const onDisk = (path: string): number => statSync(path).blocks * 512;
const subsets = NAMES.filter((name) => name !== "body").map((name) => [name]);

describe("some columns of a Parquet extent", () => {
  test.each([[[]], ...subsets.map((names) => [names]), [["at", "v"]], [["Props", "l", "ok"]]])(
    "%j: are fetched alone, with the answers of the whole",
    async (columns) => {
      const lease = await kit.cache.acquire(extent, kit.want({ columns }));
      expect(await answer(lease.path, columns)).toEqual(await answerOfWhole(columns));
      expect(kit.store.bytesAsked).toBeLessThan(parquet.length / 2);
      expect(kit.charged()).toBe(kit.store.bytesAsked);
      expect(statSync(lease.path).size).toBe(parquet.length);
      expect(onDisk(lease.path)).toBeLessThan(kit.store.bytesAsked + 256 * 1024);
    },
  );

  test("are found without regard to case, also ones that the extent does not have", async () => {
    const lease = await kit.cache.acquire(extent, kit.want({ columns: ["LABEL", "PROPS", "later"] }));
    expect(await answer(lease.path, ["label", "Props"])).toEqual(await answerOfWhole(["label", "Props"]));
    lease.release();
    kit.store.gets.length = 0;
    expect(await kit.cache.acquire(extent, kit.want({ columns: ["label", "Later"] }))).toMatchObject({ hit: true });
    expect(kit.store.gets).toEqual([]);
  });

  test("answer filters, with their Bloom filters", async () => {
    const lease = await kit.cache.acquire(extent, kit.want({ columns: ["label", "i"] }));
    const expected = Array.from({ length: ROWS }, (_, n) => n).filter(
      (n) => n % 11 > 0 && n % 3 === 1 && n % 1000 > 500,
    );
    const sql = `SELECT count(*) FROM read_parquet(${quoteText(lease.path)}) WHERE label = 'label 1' AND i > 500`;
    expect(await runSql(duckdb, connection, sql)).toEqual([[String(expected.length)]]);
  });

  test("are all that a view over them opens for a query that needs no other", async () => {
    const lease = await kit.cache.acquire(extent, kit.want({ columns: ["at", "label", "v", "i"] }));
    const columns = COLUMNS.map(({ name }) => name);
    const extents = [
      { id: "p", path: lease.path, format: "parquet" as const, formatVersion: 1, rows: ROWS, columns, minAtNs: 0n },
    ];
    const scans = { add: () => expect.fail("no tlm here"), clear: () => {} };
    const needed = ["at", "label", "v", "i"];
    const view = tableQuery({ name: "t", columns: COLUMNS, needed, extents, bareRows: 0 }, scans);
    await duckdb.query(connection, `CREATE OR REPLACE TEMP VIEW t AS ${view}`);
    const run = (sql: string): Promise<unknown> => runSql(duckdb, connection, sql);
    expect(await run("SELECT count(*) FROM t")).toEqual([[String(ROWS)]]);
    const matching = Array.from({ length: ROWS }, (_, n) => n).filter((n) => n % 11 === 0 || n % 1000 === 3);
    const filtered = await run("SELECT count(*) FROM t WHERE label IS NULL OR i = 3");
    expect(filtered).toEqual([[String(matching.length)]]);
    expect(await run("SELECT label FROM t WHERE v[1] > 8 ORDER BY i DESC, label LIMIT 1")).toEqual([["label 0"]]);
    expect(await run("SELECT a.label FROM t a JOIN t b USING (i) WHERE a.i = 7 ORDER BY 1 LIMIT 1")).toEqual([
      ["label 0"],
    ]);
  });

  test("fail loudly where a column is read that was not fetched", async () => {
    const lease = await kit.cache.acquire(extent, kit.want({ columns: ["i"] }));
    await expect(answer(lease.path, ["body"])).rejects.toThrow("TProtocolException");
  });

  test("are added to those that are here, which are not fetched again", async () => {
    const one = await kit.cache.acquire(extent, kit.want({ columns: ["label"] }));
    const before = kit.store.bytesAsked;
    const two = await kit.cache.acquire(extent, kit.want({ columns: ["i", "label"] }));
    expect(two.path).toBe(one.path);
    expect(kit.store.gets.filter((get) => get.offset + get.sizeBytes === parquet.length)).toHaveLength(1);
    expect(await answer(one.path, ["label", "i"])).toEqual(await answerOfWhole(["label", "i"]));
    expect(kit.store.bytesAsked - before).toBeLessThan(before + MIB);
    expect((await kit.cache.acquire(extent, kit.want({ columns: ["i"] }))).hit).toBe(true);
  });

  test("come from the whole where that is here, and the whole replaces them where it is needed", async () => {
    const part = await kit.cache.acquire(extent, kit.want({ columns: ["i"] }));
    const whole = await kit.cache.acquire(extent, kit.want());
    expect(Buffer.compare(readFileSync(whole.path), parquet)).toBe(0);
    expect(await kit.cache.acquire(extent, kit.want({ columns: ["i"] }))).toMatchObject({
      hit: true,
      path: whole.path,
    });
    expect(await answer(part.path, ["i"])).toEqual(await answerOfWhole(["i"]));
  });

  test("are not fetched alone when they are most of it", async () => {
    const lease = await kit.cache.acquire(extent, kit.want({ columns: ["body"] }));
    expect(Buffer.compare(readFileSync(lease.path), parquet)).toBe(0);
  });

  test("are fetched once for queries that need them at the same time, of the same or of other columns", async () => {
    const wants = [["i"], ["label"], ["i"], ["r", "l"], ["label", "i"]];
    const leases = await Promise.all(wants.map((columns) => kit.cache.acquire(extent, kit.want({ columns }))));
    for (const [n, columns] of wants.entries()) {
      expect(await answer(leases[n]?.path ?? "", columns)).toEqual(await answerOfWhole(columns));
    }
    const asked = kit.store.gets.map((get) => `${get.offset}+${get.sizeBytes}`);
    expect(new Set(asked).size).toBe(asked.length);
  });

  test("survive a restart", async () => {
    const columns = ["label", "v"];
    (await kit.cache.acquire(extent, kit.want({ columns }))).release();
    kit.store.gets.length = 0;
    const cache = await kit.reopen();
    const lease = await cache.acquire(extent, kit.want({ columns }));
    expect(lease.hit).toBe(true);
    expect(kit.store.gets).toEqual([]);
    expect(await answer(lease.path, columns)).toEqual(await answerOfWhole(columns));
    await cache.acquire(extent, kit.want({ columns: ["i"] }));
    expect(await answer(lease.path, ["i", "v"])).toEqual(await answerOfWhole(["i", "v"]));
  });

  test.each([
    ["the file", (path: string) => writeFileSync(path, Buffer.alloc(parquet.length))],
    ["the length of the file", (path: string) => writeFileSync(path, "x")],
    ["the manifest", (path: string) => writeFileSync(`${path}.json`, "{")],
    ["what the manifest says", (path: string) => writeFileSync(`${path}.json`, '{"ranges":[]}')],
  ])("are fetched again when %s is damaged", async (_, damage) => {
    const lease = await kit.cache.acquire(extent, kit.want({ columns: ["label"] }));
    lease.release();
    const cache = await kit.reopen();
    damage(lease.path);
    const again = await cache.acquire(extent, kit.want({ columns: ["label"] }));
    expect(again.hit).toBe(false);
    expect(await answer(again.path, ["label"])).toEqual(await answerOfWhole(["label"]));
  });

  test("count for the bound with the bytes that are here", async () => {
    const lease = await kit.cache.acquire(extent, kit.want({ columns: ["label"] }));
    const { value } = (await CACHE_METRICS.of(kit.metrics).queryCacheBytes.get()).values[0] ?? { value: 0 };
    expect(Math.abs(value - onDisk(lease.path))).toBeLessThan(256 * 1024);
    lease.release();
    await kit.reopen({ capacityBytes: 1024 });
    await expect.poll(() => readdirSync(kit.cacheDir)).toEqual([]);
  });

  test("of a query that is cancelled leave nothing", async () => {
    const open = kit.store.hold();
    const stop = new AbortController();
    const lease = kit.cache.acquire(extent, kit.want({ columns: ["label"], signal: stop.signal }));
    stop.abort(new Error("left"));
    await expect(lease).rejects.toThrow("left");
    open();
    await expect.poll(() => readdirSync(kit.cacheDir)).toEqual([]);
  });
});

describe("an extent that is no Parquet file we can read", () => {
  test.each([
    ["without the magic", (bytes: Buffer) => bytes.fill(0, bytes.length - 4)],
    ["with a footer larger than it", (bytes: Buffer) => bytes.writeUInt32LE(2 ** 25, bytes.length - 8)],
    ["with noise for a footer", (bytes: Buffer) => bytes.set(bytesOf(9, 200), bytes.length - 208)],
  ])("%s is fetched whole", async (_, damage) => {
    const bytes = Buffer.from(parquet);
    damage(bytes);
    const odd = await kit.addExtent("odd", bytes, "parquet");
    const lease = await kit.cache.acquire(odd, kit.want({ columns: ["label"] }));
    expect(Buffer.compare(readFileSync(lease.path), bytes)).toBe(0);
    expect(readdirSync(kit.cacheDir)).toHaveLength(1);
  });
});
