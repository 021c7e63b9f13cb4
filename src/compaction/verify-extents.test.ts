import { readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ExtentRecord, TableRecord } from "../catalog/catalog.ts";
import { ANONYMOUS } from "../auth/caller.ts";
import { snapshotExpired } from "../catalog/refusals.ts";
import { uuidV7Source } from "../core/ids.ts";
import { silentLog } from "../core/log.ts";
import { seededRandom } from "../core/random.ts";
import { JobFailure } from "../fabric/handler.ts";
import { standInJob, type StandInJob } from "../fabric/running-job.test-kit.ts";
import type { ColumnSpec, ColumnStats, ExtentFormat } from "../format/types.ts";
import type { FixtureRow } from "../io/duckdb/tlm.test-kit.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { openBench, type Bench, type ExtentFixture } from "./compaction.test-kit.ts";
import { createVerifyExtents, VERIFY_EXTENTS, type VerifyExtentsPorts } from "./verify-extents.ts";

const COLUMNS: readonly ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "ok", type: { kind: "bool" } },
  { name: "n", type: { kind: "long" } },
  { name: "x", type: { kind: "real" } },
  { name: "s", type: { kind: "string" } },
  { name: "props", type: { kind: "dynamic" } },
];
const AT = 1_704_067_200_000_000_000n;
const ROWS: readonly FixtureRow[] = [
  { at: AT + 5n, ok: true, n: 9_007_199_254_740_993n, x: -0.5, s: "ä", props: '{"a":1}' },
  { at: AT, ok: false, n: -1n, x: 1e300, s: "é".repeat(60), props: null },
  { at: AT + 9n, ok: null, n: null, x: null, s: null, props: null },
];
/** What a sealer says of them. */
const STATS: readonly ColumnStats[] = [
  { name: "at", nullCount: 0, min: String(AT), max: String(AT + 9n) },
  { name: "ok", nullCount: 1, min: "false", max: "true" },
  { name: "n", nullCount: 1, min: "-1", max: "9007199254740993" },
  { name: "x", nullCount: 1, min: "-5e-1", max: "1e+300" },
  { name: "s", nullCount: 1, min: "ä", max: `${"é".repeat(31)}ê` },
  { name: "props", nullCount: 2 },
];

let bench: Bench;
let table: TableRecord;
beforeEach(async () => {
  bench = await openBench();
  ({ table } = await bench.catalog.createTable({ database: "a", name: "events", columns: COLUMNS }));
});
afterEach(() => bench.close());

const fixture = (format: ExtentFormat, claims: ExtentFixture["claims"] = {}): ExtentFixture => ({
  format,
  columns: COLUMNS,
  rows: ROWS,
  claims: { stats: STATS, ...claims },
});

type Result = { extents: number; rows: number; bytes: number; problems: Record<string, string>[]; ok: boolean };

async function verify(
  job: Partial<StandInJob> = {},
  ports: Partial<VerifyExtentsPorts> = {},
): Promise<{ result: Result; job: StandInJob }> {
  const handler = createVerifyExtents(
    {
      ...bench,
      newId: uuidV7Source(bench.clock, seededRandom(1)),
      log: silentLog,
      ...ports,
    },
    {
      tempDir: join(bench.folder, "verify"),
      limits: { memoryBytes: 256 * 1024 * 1024, spillBytes: 1024 ** 3, threads: 1 },
      cpuShare: 1,
      ioBytesPerSec: 0,
    },
  );
  const payload = { database: "a", table: "events" };
  const running = standInJob({ kind: VERIFY_EXTENTS.name, database: "a", payload, ...job });
  return { result: (await handler.run(running)) as Result, job: running };
}

/** The one problem there is, which is also in the log. */
async function problem(): Promise<string> {
  const { result, job } = await verify();
  expect(result.ok).toBe(false);
  expect(result.problems).toHaveLength(1);
  const [found] = result.problems;
  expect(job.lines).toEqual([
    { level: "error", message: `extent ${found?.["extent_id"]} (${found?.["object_key"]}): ${found?.["problem"]}` },
  ]);
  return found?.["problem"] ?? "";
}

const onlyExtent = async (): Promise<ExtentRecord> => {
  const [extent] = await bench.live(table);
  if (extent === undefined) throw new Error("there is no extent");
  return extent;
};
const pathOf = async (): Promise<string> => bench.store.localPath?.((await onlyExtent()).key) ?? "";

test("sound extents of both formats pass, whatever their columns, and nothing is left behind", async () => {
  await bench.catalog.addColumns(table.id, [{ name: "later", type: { kind: "int" } }]);
  await bench.add(table, [fixture("tlm"), fixture("parquet")]);
  const { result, job } = await verify();
  const bytes = (await bench.live(table)).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  expect(result).toEqual({ extents: 2, rows: 6, bytes, problems_total: 0, problems: [], ok: true });
  expect(job.snapshots).toEqual([
    { extents_done: 0, extents_total: 2, bytes_read: 0, problems: 0 },
    { extents_done: 2, extents_total: 2, bytes_read: bytes, problems: 0 },
  ]);
  expect(await readdir(join(bench.folder, "verify"))).toEqual([]);
  const head = await bench.catalog.head();
  expect(await bench.catalog.expireSnapshots(head.id)).toEqual(head);
});

test("what merging writes passes too", async () => {
  await bench.add(table, [fixture("tlm"), fixture("tlm"), fixture("tlm"), fixture("parquet")]);
  bench.clock.aheadMs = 86_400_000;
  await bench.compactor()({ lease: bench.lease, signal: new AbortController().signal });
  expect((await onlyExtent()).rows).toBe(12);
  expect((await verify()).result).toMatchObject({ extents: 1, rows: 12, ok: true });
});

describe.each(["tlm", "parquet"] as const)("of a %s extent", (format) => {
  test("one byte that has changed is found", async () => {
    await bench.add(table, [fixture(format)]);
    const path = await pathOf();
    const bytes = await readFile(path);
    bytes[bytes.byteLength >> 1] = (bytes[bytes.byteLength >> 1] ?? 0) ^ 1;
    await writeFile(path, bytes);
    expect(await problem()).toMatch(/^checksum: the object has crc32:[0-9a-f]{8}, the catalog says crc32:/);
  });

  test("bytes that are cut off are found", async () => {
    await bench.add(table, [fixture(format)]);
    await truncate(await pathOf(), 100);
    expect(await problem()).toMatch(/^size: the object has 100 bytes, the catalog says \d+ bytes$/);
  });

  test("an object that is missing is found", async () => {
    await bench.add(table, [fixture(format)]);
    await rm(await pathOf());
    expect(await problem()).toBe("the object is missing");
  });

  test("a wrong number of rows is found", async () => {
    await bench.add(table, [fixture(format, { rows: 4 })]);
    expect(await problem()).toBe("rows: the object has 3, the catalog says 4");
  });

  test.each<[string, Partial<ColumnStats> & { name: string }]>([
    ['NULLs of column "n": the object has 1, the catalog says 2', { name: "n", nullCount: 2 }],
    ['minimum of column "n": the object has -1, the catalog says 0', { name: "n", min: "0" }],
    ['maximum of column "x": the object has 1e+300, the catalog says 2', { name: "x", max: "2" }],
    ['minimum of column "s": the object has ä, the catalog says z', { name: "s", min: "z" }],
    ['maximum of column "ok": the object has true, the catalog says false', { name: "ok", max: "false" }],
    ['NULLs of column "props": the object has 2, the catalog says 0', { name: "props", nullCount: 0 }],
  ])("a wrong statistic is found: %s", async (expected, wrong) => {
    const stats = STATS.map((own) => (own.name === wrong.name ? { ...own, ...wrong } : own));
    await bench.add(table, [fixture(format, { stats })]);
    expect(await problem()).toBe(expected);
  });

  test("wrong times are found", async () => {
    await bench.add(table, [fixture(format, { minAtNs: AT + 1n, maxAtNs: AT + 9n })]);
    expect(await problem()).toBe(`smallest at: the object has ${AT}, the catalog says ${AT + 1n}`);
  });

  test("a column with values that the catalog takes for empty is found", async () => {
    await bench.add(table, [fixture(format, { stats: STATS.filter(({ name }) => name !== "n") })]);
    expect(await problem()).toBe('NULLs of column "n": the object has 1, the catalog says 3');
  });
});

test("of a store without local files each object is brought here, and what is damaged there is found", async () => {
  await bench.add(table, [fixture("tlm"), fixture("parquet")]);
  const { localPath: _localPath, ...remote } = storeOf(bench.store);
  expect((await verify({}, { store: remote })).result).toMatchObject({ extents: 2, ok: true });
  const [first] = await bench.live(table);
  await rm(bench.store.localPath?.(first?.key ?? "") ?? "");
  const { result } = await verify({}, { store: remote });
  expect(result.problems).toEqual([{ extent_id: first?.id, object_key: first?.key, problem: "the object is missing" }]);
});

test("while it runs, nothing that it has yet to read can be deleted", async () => {
  await bench.add(table, [fixture("tlm")]);
  const { id } = await onlyExtent();
  const { head } = storeOf(bench.store);
  let oldest: number | undefined;
  const store = {
    ...storeOf(bench.store),
    head: async (key: string) => {
      await bench.catalog.endExtents(table.id, [id]);
      oldest = (await bench.catalog.expireSnapshots((await bench.catalog.head()).id)).id;
      return head(key);
    },
  };
  expect((await verify({}, { store })).result).toMatchObject({ extents: 1, ok: true });
  expect(oldest).toBe(1);
  expect((await bench.catalog.expireSnapshots(2)).id).toBe(2);
});

test("a snapshot that is lost on the way is no verdict: the job is done again", async () => {
  await bench.add(table, [fixture("tlm")]);
  const catalog: VerifyExtentsPorts["catalog"] = {
    table: (...of) => bench.catalog.table(...of),
    head: () => bench.catalog.head(),
    extents: async () => Promise.reject(snapshotExpired(1, await bench.catalog.head())),
    holdSnapshots: (...held) => bench.catalog.holdSnapshots(...held),
    releaseSnapshots: (node) => bench.catalog.releaseSnapshots(node),
    oldestSnapshot: () => bench.catalog.oldestSnapshot(),
  };
  const failed = await verify({}, { catalog }).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(JobFailure);
  expect((failed as JobFailure).failure).toMatchObject({ retryable: true });
});

test("a limit takes those with the newest rows, and problems beyond a hundred are only counted", async () => {
  const many = COLUMNS.map(({ name }) => ({ name, nullCount: 3, min: "?", max: "?" }));
  await bench.add(table, [
    { columns: COLUMNS, rows: [{ at: 5n }], claims: {} },
    ...Array.from({ length: 11 }, () => fixture("tlm", { stats: many })),
  ]);
  const limited = await verify({ payload: { database: "a", table: "events", limit: 11 } });
  expect(limited.result).toMatchObject({ extents: 11, problems_total: 110, ok: false });
  expect(limited.result.problems).toHaveLength(100);
  expect(limited.job.lines).toHaveLength(110);
});

test("it ends at once when it is told to stop, and leaves nothing", async () => {
  await bench.add(table, [fixture("tlm")]);
  const job = standInJob({ kind: VERIFY_EXTENTS.name, payload: {} });
  job.stop.abort(new Error("the lease is lost"));
  await expect(verify({ signal: job.signal })).rejects.toThrow("the lease is lost");
  const later = new AbortController();
  const store = {
    ...storeOf(bench.store),
    get: (_key: string, options?: { signal?: AbortSignal }) => {
      later.abort(new Error("cancelled"));
      options?.signal?.throwIfAborted();
      return Promise.reject(new Error("it went on"));
    },
    localPath: undefined,
  };
  await expect(verify({ signal: later.signal }, { store: store as unknown as ObjectStore })).rejects.toThrow(
    "cancelled",
  );
  expect(await readdir(join(bench.folder, "verify"))).toEqual([]);
});

test("tables and databases that are not the owner's, or not the job's, are refused", async () => {
  const owner = { ...ANONYMOUS, role: "write", databases: ["b"] } as const;
  await expect(verify({ owner })).rejects.toMatchObject({ code: "forbidden" });
  await expect(verify({ database: "b" })).rejects.toMatchObject({ code: "bad_request_body" });
  await expect(verify({ database: undefined })).rejects.toMatchObject({ code: "bad_request_body" });
  const payload = { database: "a", table: "missing" };
  await expect(verify({ payload })).rejects.toMatchObject({ code: "table_not_found" });
});

/** Its methods as properties, for stores that differ in one. */
function storeOf(store: ObjectStore) {
  return {
    put: store.put.bind(store),
    putFile: store.putFile.bind(store),
    get: store.get.bind(store),
    head: store.head.bind(store),
    list: store.list.bind(store),
    delete: store.delete.bind(store),
    localPath: store.localPath?.bind(store) ?? ((key: string) => key),
  };
}
