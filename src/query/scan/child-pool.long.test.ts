import { signalProcess } from "../../core/signals.test-kit.ts";
import { ANONYMOUS } from "../../auth/caller.ts";
import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { systemClock } from "../../core/clock.ts";
import type { EngineError } from "../../core/errors.ts";
import { silentLog } from "../../core/log.ts";
import { createChildPool } from "./child-pool.ts";
import { noConfinement } from "../../io/confinement/confinement.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";
import { eventually } from "../../core/waiting.test-kit.ts";

const MIB = 1024 * 1024;

/** Runs for minutes, in native code. */
const ENDLESS = "SELECT count(*) FROM range(10_000_000) a, range(10_000_000) b WHERE a.range * b.range % 7 = 3";
/** Its result is large and comes slowly to whoever reads slowly. */
const LARGE = "SELECT range, repeat('x', 1000) AS x FROM range(50_000)";

let harness: QueryHarness;
afterEach(() => harness.close());

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);

const failureOf = (answer: Promise<unknown>): Promise<EngineError> =>
  answer.then(
    () => expect.fail("answered"),
    (error: EngineError) => error,
  );

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe("a query process", () => {
  test("that is killed in the middle of a query is replaced and leaves no files", async () => {
    harness = createQueryHarness();
    await harness.text("SELECT 1");
    const [pid = 0] = harness.pool.pids();
    const answer = failureOf(harness.text(ENDLESS));
    await delay(300);
    signalProcess(pid, "SIGKILL");
    expect(await answer).toMatchObject({ code: "budget_exceeded" });
    expect(await harness.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
    expect(harness.pool.pids()).not.toContain(pid);
    expect(filesBelow(join(harness.folder, "tmp"))).toEqual([]);
  });

  test("above the usual number is started when large queries take all the others, and stays for a while", async () => {
    harness = createQueryHarness({ pool: { children: 2, maxChildren: 3, keepSpareMs: 300 } });
    await Promise.all([harness.text("SELECT 1"), harness.text("SELECT 1")]);
    const { pool } = harness;
    const usual = pool.pids();
    expect(usual).toHaveLength(2);
    pool.expectLarge(1);
    expect(pool.pids()).toEqual(usual);
    pool.expectLarge(2);
    expect(pool.pids()).toHaveLength(3);
    pool.expectLarge(0);
    pool.expectLarge(2);
    pool.expectLarge(0);
    await harness.text("SELECT 1");
    expect(pool.pids()).toHaveLength(3);
    await eventually(() => pool.pids().length === 2);
    expect(await harness.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
  });

  test("waits for the first query, when one is enough until then", async () => {
    harness = createQueryHarness({ pool: { children: 3, childrenAtFirst: 1 } });
    const { pool } = harness;
    const [first = 0] = pool.pids();
    expect(pool.pids()).toEqual([first]);
    await eventually(() => pool.state().idle === 1);
    signalProcess(first, "SIGKILL");
    await eventually(() => pool.state().idle === 1 && !pool.pids().includes(first));
    expect(pool.pids()).toHaveLength(1);
    expect(await harness.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
    expect(pool.pids()).toHaveLength(3);
    await eventually(() => pool.state().idle === 3);
  });

  test("that is killed while idle is replaced", async () => {
    harness = createQueryHarness();
    await harness.text("SELECT 1");
    const [pid = 0] = harness.pool.pids();
    signalProcess(pid, "SIGKILL");
    // The server does not know yet.
    expect(await harness.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
    await eventually(() => !harness.pool.pids().includes(pid));
    expect(await harness.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
  });

  test("ends with the server, and its folder with it", async () => {
    harness = createQueryHarness({ pool: { children: 2 } });
    await harness.text("SELECT 1");
    const pids = harness.pool.pids();
    const answer = failureOf(harness.text(ENDLESS));
    await delay(200);
    await harness.service.close();
    expect(await answer).toMatchObject({ code: "unavailable" });
    expect(pids.filter(isAlive)).toEqual([]);
    expect(readdirSync(join(harness.folder, "tmp"))).toEqual([]);
    expect(await failureOf(harness.text("SELECT 1"))).toMatchObject({ code: "unavailable" });
  });
});

describe("after queries that ran into their time", () => {
  const timesOut = (text: string, wallMs: number): Promise<EngineError> => {
    const { signal } = new AbortController();
    const request = { caller: ANONYMOUS, database: "default", requestId: "test", signal, budget: { wallMs } };
    return failureOf(harness.service.run({ ...request, text }));
  };

  test("the next one finds a process ready: it is the same", async () => {
    harness = createQueryHarness({ pool: { children: 2, cancelGraceMs: 20_000 } });
    await expect.poll(() => harness.pool.state().idle).toBe(2);
    const pids = harness.pool.pids();
    for (const text of [
      ENDLESS,
      LARGE.replace("50_000", "50_000_000"),
      "SELECT sum(hash(r)) FROM range(1e12::BIGINT) t(r)",
    ]) {
      const errors = await Promise.all([timesOut(text, 150), timesOut(text, 150), timesOut(text, 150)]);
      expect(errors.map(({ code }) => code)).toEqual(["budget_exceeded", "budget_exceeded", "budget_exceeded"]);
      expect(await harness.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
      expect(harness.pool.pids()).toEqual(pids);
    }
    await expect.poll(() => harness.pool.state().idle).toBe(2);
    // Nothing of them is left, not even a part of their results.
    expect(filesBelow(join(harness.folder, "tmp"))).toEqual([]);
  });

  test("whatever they were doing, in every format", async () => {
    harness = createQueryHarness({ pool: { cancelGraceMs: 20_000 } });
    const { signal } = new AbortController();
    const request = { caller: ANONYMOUS, database: "default", requestId: "test", signal };
    const [pid] = await harness.text("SELECT 1").then(() => harness.pool.pids());
    for (const format of ["ndjson", "json", "csv", "parquet", "arrow"] as const) {
      for (const wallMs of [10, 11, 13, 17, 25, 40, 80]) {
        const text = LARGE.replace("50_000", "5_000_000");
        const error = await failureOf(harness.service.run({ ...request, text, format, budget: { wallMs } }));
        expect(error.code).toBe("budget_exceeded");
        const answer = await harness.rows("SELECT count(*) AS n FROM range(10)");
        expect(answer).toEqual([{ n: 10 }]);
      }
    }
    expect(harness.pool.pids()).toEqual([pid]);
    expect(filesBelow(join(harness.folder, "tmp"))).toEqual([]);
  });

  test("one that does not hear is killed, and replaced while it is on its way out", async () => {
    harness = createQueryHarness({ pool: { cancelGraceMs: 100 } });
    await harness.text("SELECT 1");
    const pids = harness.pool.pids();
    const deaf = "SELECT levenshtein(repeat('x', 200_000), repeat('y', 200_000))";
    const startedMs = performance.now();
    expect(await timesOut(deaf, 200)).toMatchObject({ code: "budget_exceeded" });
    expect(performance.now() - startedMs).toBeLessThan(3_000);
    expect(await harness.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
    await eventually(() => harness.pool.pids().length === 1 && !harness.pool.pids().includes(pids[0] ?? 0));
  });
});

describe("budgets", () => {
  test("the wall clock ends a query within moments, with the header that says so", async () => {
    harness = createQueryHarness({ service: { wallMs: 700 } });
    harness.pool.release(await harness.pool.lease(new AbortController().signal));
    const startedMs = performance.now();
    const error = await failureOf(harness.text(ENDLESS));
    expect(performance.now() - startedMs).toBeLessThan(6_000);
    expect(error).toMatchObject({
      code: "budget_exceeded",
      status: 429,
      details: { headers: { "X-Engine-Budget-Limit": "wall_clock_ms=700" } },
    });
    await eventually(() => harness.pool.pids().length === 1);
  });

  test.each([
    "SELECT len(range(1000000000))",
    "SELECT max(len(list_transform(range(100000000), lambda x: [x, x, x, x])))",
    "SELECT len(repeat('x', 4000000000))",
    "SELECT len(list(r || repeat('y', 1000))) FROM range(10000000) t(r)",
    "SELECT string_agg(repeat('x', 10000), '') FROM range(10000000)",
  ])("memory ends a query: %s", async (sql) => {
    harness = createQueryHarness({ pool: { memoryBytes: 256 * MIB } });
    const error = await failureOf(harness.text(sql));
    // Some are refused by DuckDB as out of range before they take anything.
    expect(["budget_exceeded", "execution_error"]).toContain(error.code);
    const limit = error.details.headers?.["X-Engine-Budget-Limit"] ?? `memory_bytes=${256 * MIB}`;
    expect(limit).toBe(`memory_bytes=${256 * MIB}`);
    expect(await harness.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
  });

  test("what does not fit into memory spills, and the spilled files are gone after", async () => {
    // It takes as long as the disk and the other tests let it.
    harness = createQueryHarness({ pool: { memoryBytes: 96 * MIB }, service: { wallMs: 600_000 } });
    const sql = "SELECT r, hash(r) AS h FROM range(6_000_000) t(r) ORDER BY h LIMIT 3 OFFSET 5_000_000";
    expect(await harness.rows(sql)).toHaveLength(3);
    expect(filesBelow(join(harness.folder, "tmp"))).toEqual([]);
  });

  test("a result larger than the disk allowance ends its query", async () => {
    harness = createQueryHarness({ pool: { spillBytes: 8 * MIB } });
    const error = await failureOf(harness.text(LARGE));
    expect(["budget_exceeded", "query_failed"]).toContain(error.code);
    expect(await harness.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
    expect(filesBelow(join(harness.folder, "tmp"))).toEqual([]);
  });
});

describe("a client that leaves", () => {
  test("while the query runs: it ends, and its process takes the next one", async () => {
    harness = createQueryHarness({ pool: { cancelGraceMs: 20_000 } });
    await harness.text("SELECT 1");
    const pids = harness.pool.pids();
    const client = new AbortController();
    const answer = failureOf(harness.text(ENDLESS, { signal: client.signal }));
    await delay(200);
    client.abort();
    expect(await answer).toMatchObject({ code: "cancelled" });
    expect(await harness.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
    expect(harness.pool.pids()).toEqual(pids);
    expect(filesBelow(join(harness.folder, "tmp"))).toEqual([]);
  });

  test("while it waits for a process: it leaves the line", async () => {
    harness = createQueryHarness();
    await harness.text("SELECT 1");
    const first = new AbortController();
    const busy = failureOf(harness.text(ENDLESS, { signal: first.signal }));
    const second = new AbortController();
    const waiting = failureOf(harness.text("SELECT 1", { signal: second.signal }));
    second.abort();
    expect(await waiting).toMatchObject({ code: "cancelled" });
    first.abort();
    await busy;
    expect(await failureOf(harness.text("SELECT 1", { signal: second.signal }))).toMatchObject({ code: "cancelled" });
    expect(await harness.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
  });

  test("while it reads, or before: the file is closed and gone, the process serves on", async () => {
    harness = createQueryHarness();
    const run = (signal: AbortSignal) =>
      harness.service.run({ caller: ANONYMOUS, database: "default", text: LARGE, requestId: "r", signal });
    const client = new AbortController();
    const result = await run(client.signal);
    expect(result.rows).toBe(50_000);
    const reader = result.body[Symbol.asyncIterator]();
    expect((await reader.next()).done).toBe(false);
    client.abort();
    await expect(reader.next()).rejects.toThrow("aborted");

    const unread = await run(new AbortController().signal);
    await unread.body[Symbol.asyncIterator]().return?.();
    for await (const chunk of (await run(new AbortController().signal)).body) {
      expect(chunk.byteLength).toBeGreaterThan(0);
      break;
    }
    expect(filesBelow(join(harness.folder, "tmp"))).toEqual([]);
    expect(await harness.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
  });
});

describe("admission", () => {
  test("queries beyond the processes wait in line; beyond the line they are told to come back", async () => {
    harness = createQueryHarness({ pool: { maxQueued: 2, retryAfterSecs: 7 } });
    await harness.text("SELECT 1");
    const answers = await Promise.allSettled(Array.from({ length: 6 }, () => harness.rows("SELECT 1 AS a")));
    expect(answers.filter((answer) => answer.status === "fulfilled")).toHaveLength(3);
    const refused = answers.filter((answer) => answer.status === "rejected");
    expect(refused).toHaveLength(3);
    for (const { reason } of refused) {
      expect(reason).toMatchObject({ code: "too_many_requests", details: { headers: { "Retry-After": "7" } } });
    }
  });

  test("nobody waits for ever", async () => {
    harness = createQueryHarness({ pool: { maxWaitMs: 2_000 } });
    await harness.text("SELECT 1");
    const client = new AbortController();
    const busy = failureOf(harness.text(ENDLESS, { signal: client.signal }));
    expect(await failureOf(harness.text("SELECT 1"))).toMatchObject({ code: "too_many_requests" });
    client.abort();
    await busy;
  });

  test("the limit on queries in flight counts those that wait", async () => {
    harness = createQueryHarness({ service: { maxConcurrent: 2, retryAfterSecs: 3 } });
    await harness.text("SELECT 1");
    const answers = await Promise.allSettled(Array.from({ length: 4 }, () => harness.rows("SELECT 1 AS a")));
    const refused = answers.filter((answer) => answer.status === "rejected");
    expect(refused).toHaveLength(2);
    expect(refused[0]?.reason).toMatchObject({
      code: "too_many_requests",
      details: { headers: { "Retry-After": "3" } },
    });
  });

  test("two processes run two queries at a time", async () => {
    harness = createQueryHarness({ pool: { children: 2 } });
    await Promise.all([harness.text("SELECT 1"), harness.text("SELECT 1")]);
    await eventually(() => harness.pool.pids().length === 2);
    const client = new AbortController();
    const busy = failureOf(harness.text(ENDLESS, { signal: client.signal }));
    for (let i = 0; i < 20; i++) expect(await harness.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
    client.abort();
    await busy;
  });
});

test("folders of servers that are gone are swept at the start, those of living ones are not", async () => {
  harness = createQueryHarness();
  const tempDir = await mkdtemp(join(tmpdir(), "engine-sweep-test-"));
  const dead = join(tempDir, "query-999999999-abc");
  const samePid = join(tempDir, `query-${process.pid}-abc`);
  const alive = join(tempDir, `query-${process.ppid}-abc`);
  for (const folder of [dead, samePid, alive]) await mkdir(folder);
  const confinement = noConfinement("for the test");
  const options = { children: 1, memoryBytes: 256 * MIB, log: silentLog, clock: systemClock, tempDir, confinement };
  const pool = createChildPool(options);
  const second = createChildPool(options);
  const left = readdirSync(tempDir);
  expect([dead, samePid, alive].map((folder) => existsSync(folder))).toEqual([false, false, true]);
  expect(left).toHaveLength(3);
  await Promise.all([pool.close(), second.close()]);
  await rm(tempDir, { recursive: true });
});
