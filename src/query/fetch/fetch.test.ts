import { ANONYMOUS } from "../../auth/caller.ts";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { PlannedExtent } from "../../catalog/catalog.ts";
import { systemClock } from "../../core/clock.ts";
import type { EngineError } from "../../core/errors.ts";
import { silentLog } from "../../core/log.ts";
import { createMetrics } from "../../core/metrics.ts";
import { systemRandom } from "../../core/random.ts";
import type { ColumnSpec } from "../../format/types.ts";
import { tlmToParquet } from "../../io/duckdb/parquet.test-kit.ts";
import { tlmFixture } from "../../io/duckdb/tlm.test-kit.ts";
import { openFilesystemStore } from "../../io/objectstore/filesystem.ts";
import type { ObjectStore } from "../../io/objectstore/objectstore.ts";
import { ReadBudget } from "../budgets/read-budget.ts";
import { bytesOf, extentOf, RemoteStore } from "./cache/cache.test-kit.ts";
import { createExtentFetcher, type ExtentFetcher, type FetchTable } from "./fetch.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";

const KIB = 1024;
const COLUMNS: ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "i", type: { kind: "int" } },
  { name: "body", type: { kind: "string" } },
];

const failureOf = (work: Promise<unknown>): Promise<EngineError> =>
  work.then(
    () => expect.fail("no failure"),
    (error: EngineError) => error,
  );

describe("extents", () => {
  let folder: string;
  let local: ObjectStore;
  let store: RemoteStore;
  let fetcher: ExtentFetcher;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "engine-fetch-test-"));
    local = await openFilesystemStore({ root: join(folder, "store"), random: systemRandom, log: silentLog });
    store = new RemoteStore(local);
    fetcher = fetcherOver(store);
  });
  // What was begun beside a fetch that failed may still write.
  afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));

  const fetcherOver = (over: ObjectStore, cacheBytes = 2 ** 30): ExtentFetcher =>
    createExtentFetcher({
      store: over,
      cacheDir: join(folder, "cache"),
      cacheBytes,
      clock: systemClock,
      log: silentLog,
      metrics: createMetrics(),
    });
  const never = new AbortController().signal;
  const addExtents = (count: number): Promise<PlannedExtent[]> =>
    Promise.all(
      Array.from({ length: count }, async (_, n) => {
        const bytes = bytesOf(n, 10 * KIB);
        await local.put(`t/${n}.tlm`, bytes);
        return extentOf(`e${n}`, `t/${n}.tlm`, bytes, "tlm");
      }),
    );
  const addParquet = async (): Promise<PlannedExtent> => {
    const noise = Buffer.from(bytesOf(3, 40_000 * 60)).toString("latin1");
    const rows = Array.from({ length: 40_000 }, (_, n) => ({
      at: BigInt(n),
      i: n % 100,
      body: noise.slice(n * 60, n * 60 + 60),
    }));
    const bytes = await tlmToParquet(tlmFixture(COLUMNS, rows, 3000));
    await local.put("t/p.parquet", bytes);
    return extentOf("p", "t/p.parquet", bytes, "parquet");
  };
  const tableOf = (extents: readonly PlannedExtent[], needed?: readonly string[]): FetchTable => ({
    name: "t",
    columns: COLUMNS,
    extents,
    needed,
  });

  test("of several tables are fetched, in order, and stay until they are released", async () => {
    const extents = await addExtents(40);
    const tables = [tableOf(extents.slice(0, 30)), tableOf([]), tableOf(extents.slice(30))];
    fetcher = fetcherOver(store, 0);
    const budget = new ReadBudget(400 * KIB);
    const fetched = await fetcher.fetch(tables, { signal: never, budget });
    expect(fetched.tables.map((table) => table.extents.length)).toEqual([30, 0, 10]);
    for (const [n, extent] of fetched.tables.flatMap((table) => table.extents).entries()) {
      expect(extent).toMatchObject({ id: `e${n}`, format: "tlm", rows: 1 });
      expect(Buffer.compare(readFileSync(extent.path), bytesOf(n, 10 * KIB))).toBe(0);
      expect(extent.path.startsWith(join(folder, "cache"))).toBe(true);
    }
    expect(budget.usedBytes).toBe(400 * KIB);
    fetched.release();
    await expect.poll(() => readdirSync(join(folder, "cache"))).toEqual([]);
  });

  test("of one query leave requests to the store for others", async () => {
    const extents = await addExtents(40);
    const open = store.hold();
    const many = fetcher.fetch([tableOf(extents)], { signal: never, budget: new ReadBudget(Infinity) });
    await expect.poll(() => store.gets.length).toBe(16);
    const [other] = await addExtents(41).then((all) => all.slice(40));
    const one = fetcher.fetch([tableOf(other === undefined ? [] : [other])], {
      signal: never,
      budget: new ReadBudget(Infinity),
    });
    await expect.poll(() => store.gets.length).toBe(17);
    open();
    expect((await one).cacheHits).toBe(0);
    expect((await many).cacheHits).toBe(0);
  });

  test("past the budget are refused before the first request, and cached ones are free", async () => {
    const extents = await addExtents(40);
    const refused = await failureOf(
      fetcher.fetch([tableOf(extents)], { signal: never, budget: new ReadBudget(399 * KIB) }),
    );
    expect(refused).toMatchObject({
      code: "budget_exceeded",
      status: 429,
      details: {
        headers: { "X-Engine-Budget-Limit": `object_store_bytes=${399 * KIB}` },
        budget: { name: "object_store_bytes", used: 400 * KIB, allowed: 399 * KIB },
      },
    });
    expect(store.gets).toEqual([]);
    const half = new ReadBudget(200 * KIB);
    await fetcher.fetch([tableOf(extents.slice(0, 20))], { signal: never, budget: half });
    const rest = new ReadBudget(200 * KIB);
    const all = await fetcher.fetch([tableOf(extents)], { signal: never, budget: rest });
    expect(all.cacheHits).toBe(20);
    expect(rest.usedBytes).toBe(200 * KIB);
    await fetcher.fetch([tableOf(extents)], { signal: never, budget: new ReadBudget(0) });
  });

  test("of a query that is cancelled are not waited for, and leave nothing", async () => {
    const extents = await addExtents(40);
    const open = store.hold();
    const stop = new AbortController();
    const fetching = failureOf(
      fetcher.fetch([tableOf(extents)], { signal: stop.signal, budget: new ReadBudget(Infinity) }),
    );
    await delay(50);
    stop.abort(new Error("left"));
    // While the store still holds all of them.
    expect((await fetching).message).toBe("left");
    expect(store.aborted).toHaveLength(16);
    open();
    await expect.poll(() => readdirSync(join(folder, "cache"))).toEqual([]);
    expect(store.gets).toHaveLength(16);
  });

  test("end with the first that fails", async () => {
    const extents = await addExtents(40);
    await local.delete(["t/3.tlm"]);
    const failure = await failureOf(
      fetcher.fetch([tableOf(extents)], { signal: never, budget: new ReadBudget(Infinity) }),
    );
    expect(failure).toMatchObject({ code: "query_failed", message: "the data of extent e3 is missing" });
    expect(store.gets.length).toBeLessThan(40);
  });

  test("in Parquet are charged with the columns that are needed of them", async () => {
    const extent = await addParquet();
    const budget = new ReadBudget(extent.sizeBytes / 2);
    await fetcher.fetch([tableOf([extent], ["at", "i"])], { signal: never, budget });
    expect(budget.usedBytes).toBe(store.bytesAsked);
    expect(budget.usedBytes).toBeGreaterThan(64 * KIB);
    await fetcher.fetch([tableOf([extent], ["i"])], { signal: never, budget: new ReadBudget(0) });
    const small = new ReadBudget(100 * KIB);
    expect(
      await failureOf(fetcher.fetch([tableOf([extent], ["body"])], { signal: never, budget: small })),
    ).toMatchObject({ code: "budget_exceeded" });
    expect(store.bytesAsked).toBe(budget.usedBytes);
  });

  test("of a local store are opened in place, and charged with what may be read of them", async () => {
    const extent = await addParquet();
    const inPlace = fetcherOver(local);
    const fetchWith = async (allowedBytes: number, needed?: readonly string[]): Promise<number> => {
      const budget = new ReadBudget(allowedBytes);
      const fetched = await inPlace.fetch([tableOf([extent], needed)], { signal: never, budget });
      expect(fetched.tables[0]?.extents[0]?.path).toBe(local.localPath?.(extent.key));
      return budget.usedBytes;
    };
    expect(await fetchWith(extent.sizeBytes)).toBe(extent.sizeBytes);
    const some = await fetchWith(extent.sizeBytes - 1, ["i"]);
    expect(some).toBeGreaterThan(0);
    expect(some).toBeLessThan(extent.sizeBytes / 4);
    expect(await fetchWith(some, ["i"])).toBe(some);
    expect(await failureOf(fetchWith(some - 1, ["i"]))).toMatchObject({ code: "budget_exceeded" });
    expect(await failureOf(fetchWith(extent.sizeBytes - 1))).toMatchObject({ code: "budget_exceeded" });
    expect(readdirSync(folder)).toEqual(["store"]);
  });

  test("of a sample are told of as they are found or come, and no others", async () => {
    const extents = await addExtents(10);
    const sampled = async (from: ExtentFetcher): Promise<{ read: string[]; ready: string[] }> => {
      const ready: string[] = [];
      const fetched = await from.fetch([tableOf(extents)], {
        signal: never,
        budget: new ReadBudget(35 * KIB),
        mayBePartial: true,
        onReady: (extent) => ready.push((extent as PlannedExtent).id),
      });
      const read = fetched.tables.flatMap((table) => table.extents).map(({ id }) => id);
      fetched.release();
      return { read: read.sort(), ready: ready.sort() };
    };
    // The first by the SHA-256 of their ids.
    const first = ["e4", "e5", "e9"];
    expect(await sampled(fetcherOver(local))).toEqual({ read: first, ready: first });
    // Of a cache that has them all no byte is charged.
    (await fetcher.fetch([tableOf(extents)], { signal: never, budget: new ReadBudget(Infinity) })).release();
    const all = extents.map(({ id }) => id);
    expect(await sampled(fetcher)).toEqual({ read: all, ready: all });
  });

  test("of a sample begin with the first, whose footer is read before it is charged", async () => {
    // By the SHA-256 of its id it comes before the others.
    const parquet = { ...(await addParquet()), id: "p7" };
    const others = await addExtents(10);
    const whole = new ReadBudget(Infinity);
    const columns = ["i"];
    (await fetcherOver(store, 0).fetch([tableOf([parquet], columns)], { signal: never, budget: whole })).release();
    const budget = new ReadBudget(whole.usedBytes);
    const tables = [tableOf([parquet, ...others], columns)];
    const fetched = await fetcherOver(store, 0).fetch(tables, { signal: never, budget, mayBePartial: true });
    expect(fetched.tables.flatMap((table) => table.extents).map(({ id }) => id)).toEqual(["p7"]);
    fetched.release();
  });
});

describe("a query", () => {
  let harness: QueryHarness;
  afterEach(() => harness.close());

  const rows = (from: number): { at: bigint; i: number; body: string }[] =>
    Array.from({ length: 500 }, (_, n) => ({ at: BigInt(from + n), i: from + n, body: `row ${n}` }));
  const open = async (options: Parameters<typeof createQueryHarness>[0]): Promise<void> => {
    harness = createQueryHarness(options);
    await harness.addTable("default", "t", COLUMNS, [
      { format: "tlm", columns: COLUMNS, rows: rows(0) },
      { format: "parquet", columns: COLUMNS, rows: rows(500) },
    ]);
    await harness.addTable("default", "u", COLUMNS, [{ format: "tlm", columns: COLUMNS, rows: rows(2000) }]);
  };
  const run = async (text: string, objectStoreBytes?: number): Promise<number> => {
    const { signal } = new AbortController();
    const budget = objectStoreBytes === undefined ? {} : { budget: { objectStoreBytes } };
    const { rows: count, body } = await harness.service.run({
      caller: ANONYMOUS,
      database: "default",
      text,
      requestId: "r",
      signal,
      ...budget,
    });
    for await (const _ of body);
    return count;
  };

  test.each([true, false])("past its budget of bytes gets 429 (local store: %s)", async (local) => {
    await open({ local });
    expect(await failureOf(run("SELECT * FROM t", 1_000))).toMatchObject({
      code: "budget_exceeded",
      details: { headers: { "X-Engine-Budget-Limit": "object_store_bytes=1000" }, budget: { allowed: 1_000 } },
    });
    expect(await run("SELECT 1", 0)).toBe(1);
    expect(await run("SELECT * FROM t")).toBe(1_000);
  });

  test("is not charged with what the cache has", async () => {
    await open({ local: false });
    expect(await harness.rows("SELECT sum(i) AS s FROM t")).toEqual([{ s: 499_500 }]);
    expect(await run("SELECT * FROM t", 0)).toBe(1_000);
    expect(await failureOf(run("SELECT * FROM t, u", 0))).toMatchObject({ code: "budget_exceeded" });
    expect(readdirSync(join(harness.folder, "extents"))).toHaveLength(2);
  });

  test("over a remote store without a cache leaves no file", async () => {
    await open({ local: false, service: { cacheBytes: 0 } });
    expect(await harness.rows("SELECT count(*) AS n, min(u.i) AS i FROM t, u")).toEqual([{ n: 500_000, i: 2_000 }]);
    await expect.poll(() => readdirSync(join(harness.folder, "extents"))).toEqual([]);
  });

  const textsOf = async (queries: readonly string[]): Promise<string[]> => {
    const answers: string[] = [];
    for (const sql of queries) answers.push(await harness.text(sql));
    return answers;
  };

  test("over parts of Parquet extents answers as over the whole", async () => {
    const noise = Buffer.from(bytesOf(3, 40_000 * 60)).toString("latin1");
    const large = Array.from({ length: 40_000 }, (_, n) => ({
      at: 1_704_067_200_000_000_000n + BigInt(n) * 1_000_000_000n,
      i: n % 100,
      body: noise.slice(n * 60, n * 60 + 60),
      ok: n % 3 === 0,
      label: `label ${n % 7}`,
      props: JSON.stringify({ a: n % 10 }),
    }));
    const columns: ColumnSpec[] = [
      ...COLUMNS,
      { name: "ok", type: { kind: "bool" } },
      { name: "label", type: { kind: "string" } },
      { name: "props", type: { kind: "dynamic" } },
    ];
    const answersOf = async (options: Parameters<typeof createQueryHarness>[0]): Promise<string[]> => {
      harness = createQueryHarness(options);
      await harness.addTable("default", "t", columns, [
        { format: "parquet", columns, rows: large },
        { format: "tlm", columns, rows: large.slice(0, 50) },
      ]);
      return textsOf(QUERIES);
    };
    const expected = await answersOf({});
    const expectedOfAll = await textsOf(QUERIES_OF_ALL);
    await harness.close();
    expect(await answersOf({ local: false })).toEqual(expected);
    const kinds = readdirSync(join(harness.folder, "extents")).map((name) => name.split(".").slice(2).join("."));
    expect(kinds.sort()).toEqual(["partial", "partial.json", "tlm"]);
    expect(await textsOf(QUERIES_OF_ALL)).toEqual(expectedOfAll);
    await expect.poll(() => readdirSync(join(harness.folder, "extents"))).toHaveLength(2);
  });
});

/** One row each, or in a certain order. */
const QUERIES = [
  "SELECT count(*) AS n FROM t",
  "SELECT count(*) AS n FROM t WHERE label = 'label 3'",
  "SELECT count(*) AS n FROM t WHERE at >= '2024-01-01T05:00:00Z'",
  "SELECT sum(i) AS s FROM t AS x WHERE x.ok",
  "SELECT label, count(*) AS n FROM t GROUP BY label ORDER BY n DESC, label",
  "SELECT label, count(*) FILTER (ok) AS n FROM t GROUP BY label ORDER BY label",
  "SELECT i FROM t ORDER BY at DESC, label LIMIT 3",
  "SELECT props.a AS a, max(i) AS m FROM t GROUP BY 1 ORDER BY 1",
  "WITH x AS (SELECT i, label FROM t) SELECT count(*) AS n FROM x a JOIN x b USING (i) WHERE a.i = 3 AND b.label = 'label 1'",
  "WITH x AS MATERIALIZED (SELECT i FROM t) SELECT sum(i) AS s FROM x",
  "SELECT count(*) AS n FROM (SELECT DISTINCT ok, label FROM t)",
  "SELECT (SELECT max(i) FROM t) - min(i) AS d FROM t",
  "SELECT i FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.i = a.i + 1 AND b.ok) ORDER BY i DESC LIMIT 1",
  "SELECT i, row_number() OVER (PARTITION BY label ORDER BY at, i) AS r FROM t ORDER BY r DESC, i LIMIT 2",
  "SELECT label FROM t QUALIFY row_number() OVER (ORDER BY at, i) = 9",
  "SELECT sum(i) AS s FROM t UNION ALL SELECT count(ok) FROM t ORDER BY 1",
  'SELECT LABEL, "I" FROM t ORDER BY at, i LIMIT 1',
];

/** For which all columns are fetched. */
const QUERIES_OF_ALL = [
  "SELECT label, count(*) AS n FROM t GROUP BY ALL ORDER BY ALL",
  "SELECT * EXCLUDE (body) FROM t ORDER BY at DESC LIMIT 2",
  "PIVOT (SELECT label, ok FROM t) ON ok USING count(*) ORDER BY label",
  "SELECT md5(string_agg(body, '' ORDER BY at, i)) AS h FROM t",
];
