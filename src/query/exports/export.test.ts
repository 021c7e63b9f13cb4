import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ANONYMOUS } from "../../auth/caller.ts";
import { systemClock } from "../../core/clock.ts";
import { EngineError, type ErrorCode } from "../../core/errors.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { silentLog } from "../../core/log.ts";
import { systemRandom } from "../../core/random.ts";
import { JobFailure } from "../../fabric/handler.ts";
import { standInJob, type StandInJob } from "../../fabric/running-job.test-kit.ts";
import { loadDuckDb, quoteText, runSql } from "../../io/duckdb/duckdb.ts";
import { openFilesystemStore } from "../../io/objectstore/filesystem.ts";
import type { ObjectStore } from "../../io/objectstore/objectstore.ts";
import { createExportSweep, EXPORT_KEPT_MS } from "./sweep.ts";
import { createQueryExport, QUERY_EXPORT } from "./export.ts";
import { NO_ENGINES } from "./no-engines.test-kit.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";

const COLUMNS = [
  { name: "at", type: { kind: "timestamp" as const } },
  { name: "n", type: { kind: "long" as const } },
];
const JOB_ID = "01900000-0000-7000-8000-000000000001";

let harness: QueryHarness;
let store: ObjectStore;
beforeAll(async () => {
  harness = createQueryHarness();
  const rows = Array.from({ length: 1_000 }, (_, n) => ({ at: BigInt(n), n: BigInt(n) }));
  await harness.addTable("default", "t", COLUMNS, [{ format: "tlm", columns: COLUMNS, rows }]);
  const root = join(harness.folder, "objects");
  store = await openFilesystemStore({ root, random: systemRandom, log: silentLog });
});
afterAll(() => harness.close());

const tempDir = (): string => join(harness.folder, "tmp", "exports");

function exportJob(query: string, job: Partial<StandInJob> = {}, asked: Record<string, unknown> = {}): StandInJob {
  const payload = { query, database: "Default", ...asked };
  return standInJob({ kind: QUERY_EXPORT.name, id: JOB_ID, database: "default", payload, ...job });
}

async function run(job: StandInJob, options: { maxBytes?: number } = {}): Promise<Record<string, unknown>> {
  const newId = uuidV7Source(systemClock, systemRandom);
  const ports = { ...NO_ENGINES, query: async () => harness.service, store, newId };
  const handler = createQueryExport(ports, { keyPrefix: "engine", tempDir: tempDir(), ...options });
  return (await handler.run(job)) as Record<string, unknown>;
}

async function keys(): Promise<string[]> {
  const found: string[] = [];
  for await (const { key } of store.list("engine/")) found.push(key);
  return found;
}

async function ask(sql: string): Promise<(string | null)[][]> {
  const duckdb = await loadDuckDb();
  return await runSql(duckdb, await duckdb.connect(await duckdb.open(":memory:")), sql);
}

test("the result is a Parquet file under the job's fence, compressed by zstd, and nothing else is left", async () => {
  const job = exportJob("SELECT n, n * 2 AS twice FROM t WHERE n >= 10", { fence: 3 });
  const result = await run(job);
  const key = `engine/_exports/default/${JOB_ID}/3.parquet`;
  const info = await store.head(key);
  expect(result).toEqual({ key, rows: 990, bytes: info?.sizeBytes, columns: ["n", "twice"] });
  expect(job.snapshots).toEqual([{ phase: "query" }, { phase: "upload", rows: 990, bytes: info?.sizeBytes }]);
  const file = quoteText(store.localPath?.(key) ?? "");
  expect(await ask(`SELECT count(*), min(n), max(twice) FROM read_parquet(${file})`)).toEqual([["990", "10", "1998"]]);
  expect(await ask(`SELECT DISTINCT compression FROM parquet_metadata(${file})`)).toEqual([["ZSTD"]]);
  expect(await readdir(tempDir())).toEqual([]);
});

test("a result without rows is a file with its columns", async () => {
  const { key, rows, columns } = await run(exportJob("SELECT n FROM t WHERE n < 0", { fence: 4 }));
  expect([rows, columns]).toEqual([0, ["n"]]);
  const file = quoteText(store.localPath?.(String(key)) ?? "");
  expect(await ask(`SELECT column_name FROM (DESCRIBE FROM read_parquet(${file}))`)).toEqual([["n"]]);
});

test("the query may do no more than its owner's queries", async () => {
  const owner = { ...ANONYMOUS, role: "read", databases: ["other"] } as const;
  await expect(run(exportJob("SELECT 1", { owner }))).rejects.toMatchObject({ code: "forbidden" });
  await expect(run(exportJob("SELECT 1", { database: "other" }))).rejects.toMatchObject({ code: "bad_request_body" });
  for (const text of ["COPY t TO 'x.parquet'", "SELECT * FROM read_csv('/etc/passwd')", "DROP TABLE t"]) {
    await expect(run(exportJob(text))).rejects.toMatchObject({ code: "invalid_query" });
  }
  expect(await readdir(tempDir())).toEqual([]);
});

test("a query past its budget, and a result that is too large, fail for good and keep nothing", async () => {
  const before = await keys();
  const slow = exportJob("SELECT count(*) FROM t a, t b, t c, t d", {}, { budgets: { max_wall_clock_ms: 300 } });
  await expect(run(slow)).rejects.toMatchObject({ code: "budget_exceeded" });
  const large = await run(exportJob("SELECT n FROM t"), { maxBytes: 100 }).catch((error: unknown) => error);
  expect(large).toBeInstanceOf(JobFailure);
  expect((large as JobFailure).failure.error).toMatch(/^the result has \d+ bytes; an export may have 100$/);
  expect(await keys()).toEqual(before);
  expect(await readdir(tempDir())).toEqual([]);
});

test("a server that is full is asked again later, one whose queries fail not for ever", async () => {
  const failing = async (code: ErrorCode, attempt: number): Promise<unknown> => {
    const error = new EngineError(code, "so it is", { headers: { "Retry-After": "1" } });
    const query = async () => ({ run: () => Promise.reject(error) });
    const ports = { ...NO_ENGINES, query, store, newId: uuidV7Source(systemClock, systemRandom) };
    const handler = createQueryExport(ports, { keyPrefix: "engine", tempDir: tempDir() });
    return handler.run(exportJob("SELECT 1", { attempt })).catch((thrown: JobFailure) => thrown.failure);
  };
  expect(await failing("too_many_requests", 9)).toEqual({ error: "so it is", retryable: true });
  expect(await failing("query_failed", 1)).toEqual({ error: "so it is", retryable: true });
  expect(await failing("query_failed", 3)).toEqual({ error: "so it is", retryable: false });
});

test("a job that is told to stop ends its query at once", async () => {
  const job = exportJob("SELECT count(*) FROM t a, t b, t c, t d, t e");
  const ended = run(job);
  await expect.poll(() => job.snapshots).toEqual([{ phase: "query" }]);
  await expect.poll(() => harness.pool.state().busy).toBe(1);
  job.stop.abort(new Error("cancelled"));
  await expect(ended).rejects.toThrow("the client left");
  // The next process has started.
  await expect.poll(() => harness.pool.state().busy).toBe(0);
  expect(await readdir(tempDir())).toEqual([]);
});

test("names of columns are cut off where the result would not fit into its job", async () => {
  const wide = Array.from({ length: 300 }, (_, i) => `1 AS "${"c".repeat(1_000)}${i}"`).join(", ");
  const { columns } = await run(exportJob(`SELECT ${wide}`, { fence: 5 }));
  expect(columns).toHaveLength(65);
});

test("the sweep deletes results once they are old, and nothing else", async () => {
  const result = `engine/_exports/default/${JOB_ID}/7.parquet`;
  const others = [
    `engine/_exports/default/${JOB_ID}/notes.txt`,
    `engine/_staged/default/${JOB_ID}`,
    "engine/default/t/2024-01-01/01900000-0000-7000-8000-000000000002.parquet",
  ];
  for (const key of [result, ...others]) await store.put(key, new Uint8Array(1));
  const before = await keys();
  const writtenAtMs = (await store.head(result))?.modifiedAtMs ?? 0;
  let nowMs = writtenAtMs + EXPORT_KEPT_MS;
  const sweep = createExportSweep(
    { nowMs: async () => nowMs, store, log: silentLog },
    { keyPrefix: "engine", graceMs: 6 * 3_600_000 },
  );
  await sweep({ signal: new AbortController().signal });
  expect(await keys()).toEqual(before);
  nowMs += 86_400_000;
  await expect(sweep({ signal: AbortSignal.abort(new Error("stop")) })).rejects.toThrow("stop");
  await sweep({ signal: new AbortController().signal });
  expect(await keys()).toEqual(others);
});
