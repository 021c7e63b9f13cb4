import { ANONYMOUS } from "../../auth/caller.ts";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { createMetrics } from "../../core/metrics.ts";
import { eventually } from "../../core/waiting.test-kit.ts";
import type { EngineError } from "../../core/errors.ts";
import { budgetError, budgetOf, loweredBudget, type AskedBudget } from "./budget.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";

const MIB = 1024 * 1024;
/** Runs for minutes, and reads nothing. */
const ENDLESS = "SELECT count(*) FROM range(10_000_000) a, range(10_000_000) b WHERE a.range * b.range % 7 = 3";

let harness: QueryHarness;
afterEach(() => harness.close());

async function run(text: string, budget: AskedBudget = {}, signal = new AbortController().signal): Promise<string> {
  const { body } = await harness.service.run({
    caller: ANONYMOUS,
    database: "default",
    text,
    requestId: "test",
    budget,
    signal,
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

const failureOf = (answer: Promise<unknown>): Promise<EngineError> =>
  answer.then(
    () => expect.fail("answered"),
    (error: EngineError) => error,
  );

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);

describe("a budget", () => {
  test("is lowered by a request, never raised", () => {
    harness = createQueryHarness({ pool: { children: 0 } });
    const server = { wallMs: 100, memoryBytes: 200, objectStoreBytes: 300 };
    expect(loweredBudget(server)).toEqual(server);
    expect(loweredBudget(server, { wallMs: 50, objectStoreBytes: 0 })).toEqual({
      ...server,
      wallMs: 50,
      objectStoreBytes: 0,
    });
    expect(loweredBudget(server, { wallMs: 101, memoryBytes: 1e30, objectStoreBytes: undefined })).toEqual(server);
  });

  test("that is passed is named, with what was used and allowed", () => {
    harness = createQueryHarness({ pool: { children: 0 } });
    const error = budgetError("object_store_bytes", 12.5, 10);
    expect(error).toMatchObject({ code: "budget_exceeded", status: 429 });
    expect(error.message).toContain("13 bytes");
    expect(error.message).toContain("10 bytes");
    expect(budgetOf(error)).toEqual({ name: "object_store_bytes", used: 13, allowed: 10 });
    expect(budgetOf(new Error("other"))).toBeUndefined();
  });
});

describe("wall clock", () => {
  test("a lowered one ends its query within moments, and no other", async () => {
    harness = createQueryHarness({ pool: { children: 2 } });
    await Promise.all([run("SELECT 1"), run("SELECT 1")]);
    const other = run("SELECT count(*) AS n FROM range(20_000_000) WHERE range % 3 = 1");
    const startedMs = performance.now();
    const error = await failureOf(run(ENDLESS, { wallMs: 300 }));
    const tookMs = performance.now() - startedMs;
    expect(tookMs).toBeGreaterThan(295);
    // 50 ms are promised; a busy test machine may be far later, and the query would never end by itself.
    expect(tookMs).toBeLessThan(5_000);
    expect(error).toMatchObject({
      code: "budget_exceeded",
      details: {
        headers: { "X-Engine-Budget-Limit": "wall_clock_ms=300" },
        budget: { name: "wall_clock_ms", allowed: 300 },
      },
    });
    expect(error.details.budget?.used).toBeGreaterThanOrEqual(300);
    expect(await other).toBe('{"n":6666667}\n');
  });

  test("counts the wait for a process", async () => {
    harness = createQueryHarness();
    await run("SELECT 1");
    const client = new AbortController();
    const busy = failureOf(run(ENDLESS, {}, client.signal));
    expect(await failureOf(run("SELECT 1", { wallMs: 50 }))).toMatchObject({ code: "budget_exceeded" });
    client.abort();
    await busy;
  });
});

describe("memory", () => {
  const HUNGRY = "SELECT len(list(r || repeat('y', 100))) AS n FROM range(300_000) t(r)";

  test("a lowered one holds DuckDB, and the next query has its own again, in the same process", async () => {
    harness = createQueryHarness({ pool: { memoryBytes: 1024 * MIB } });
    expect(await run(HUNGRY)).toBe('{"n":300000}\n');
    const pids = harness.pool.pids();
    const error = await failureOf(run(HUNGRY, { memoryBytes: 16 * MIB }));
    expect(error).toMatchObject({
      code: "budget_exceeded",
      details: {
        headers: { "X-Engine-Budget-Limit": `memory_bytes=${16 * MIB}` },
        budget: { name: "memory_bytes", allowed: 16 * MIB },
      },
    });
    expect(error.details.budget?.used).toBeGreaterThanOrEqual(16 * MIB);
    expect(await run("SELECT 1 AS a", { memoryBytes: 16 * MIB })).toBe('{"a":1}\n');
    const spilling = "SELECT r FROM range(1_000_000) t(r) ORDER BY hash(r) LIMIT 1 OFFSET 900_000";
    expect(await run(spilling, { memoryBytes: 32 * MIB })).toContain('"r"');
    expect(await run(HUNGRY)).toBe('{"n":300000}\n');
    expect(harness.pool.pids()).not.toEqual([]);
    expect(pids).toHaveLength(1);
  });

  test("the least that may be asked for answers what is small", async () => {
    harness = createQueryHarness();
    expect(await run("SELECT 1 AS a", { memoryBytes: MIB })).toBe('{"a":1}\n');
  });

  test.runIf(process.platform === "linux")("what DuckDB does not count is caught from outside", async () => {
    harness = createQueryHarness({ pool: { memoryBytes: 4096 * MIB } });
    await run("SELECT 1");
    const [pid = 0] = harness.pool.pids();
    const idle = residentBytes(pid);
    let most = 0;
    const timer = setInterval(() => (most = Math.max(most, residentBytes(pid))), 2);
    const bomb = "SELECT max(len(list_transform(range(200_000_000), lambda x: x + 1)))";
    const error = await failureOf(run(bomb, { memoryBytes: 256 * MIB }));
    clearInterval(timer);
    expect(budgetOf(error)).toMatchObject({ name: "memory_bytes", allowed: 256 * MIB });
    // The allowance and its slack, and what a process takes between two looks.
    expect(most - idle).toBeLessThan((256 + 64 + 512) * MIB);
    expect(await run("SELECT 1 AS a")).toBe('{"a":1}\n');
  });

  const residentBytes = (pid: number): number => {
    try {
      return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024;
    } catch {
      return 0;
    }
  };
});

describe("a client that leaves", () => {
  test.runIf(process.platform === "linux")("frees process, files and places within moments", async () => {
    harness = createQueryHarness({ service: { maxConcurrent: 1 } });
    await run("SELECT 1");
    const client = new AbortController();
    const sorting = "SELECT * FROM (SELECT r, hash(r) AS h FROM range(100_000_000) t(r)) ORDER BY h";
    const answer = failureOf(run(sorting, { memoryBytes: 64 * MIB }, client.signal));
    await expect.poll(() => filesBelow(join(harness.folder, "tmp"))).not.toEqual([]);
    client.abort();
    expect(await answer).toMatchObject({ code: "cancelled" });
    // Its place is free at once.
    await run("SELECT 1", { wallMs: 30_000 });
    await expect.poll(() => filesBelow(join(harness.folder, "tmp"))).toEqual([]);
  });

  test("a hundred queries, some cancelled, some broken, some refused: nothing stays held", async () => {
    harness = createQueryHarness({
      pool: { children: 2, maxChildren: 3, keepSpareMs: 500 },
      service: { maxConcurrent: 30 },
    });
    await Promise.all([run("SELECT 1"), run("SELECT 1")]);
    const texts = ["SELECT 1", "SELEC", "FROM nowhere", "SELECT sum(range) FROM range(3_000_000)", ENDLESS];
    const outcomes = new Map<string, number>();
    const one = async (i: number): Promise<void> => {
      const client = new AbortController();
      // One client waits for its SELECT 1, however busy the machine is.
      const timer = i === 95 ? undefined : setTimeout(() => client.abort(), (i * 37) % 400);
      const format = (["ndjson", "arrow", "csv", "parquet"] as const)[i % 4];
      const request = {
        caller: ANONYMOUS,
        database: "default",
        text: texts[i % texts.length] ?? "",
        requestId: "r",
        format: format ?? "csv",
      };
      const outcome = await harness.service.run({ ...request, signal: client.signal }).then(
        async ({ body }) => {
          await body[Symbol.asyncIterator]().return?.();
          return "ok";
        },
        (error: EngineError) => error.code,
      );
      clearTimeout(timer);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    };
    await Promise.all(Array.from({ length: 100 }, async (_, i) => delay(i * 25).then(() => one(i))));
    expect([...outcomes.keys()].sort()).toEqual(expect.arrayContaining(["ok", "cancelled"]));
    // Thirty at a time, so every place must be free again.
    const again = await Promise.all(Array.from({ length: 30 }, () => run("SELECT 1 AS a")));
    expect(again).toEqual(again.map(() => '{"a":1}\n'));
    expect(filesBelow(join(harness.folder, "tmp"))).toEqual([]);
    await expect.poll(() => harness.pool.pids()).toHaveLength(2);
  });
});

describe("small queries beside large ones", () => {
  test("always find a process, however many large ones there are; those run in turn", async () => {
    const metrics = createMetrics();
    harness = createQueryHarness({
      pool: { children: 2, maxChildren: 3, keepSpareMs: 500 },
      service: { largeAfterMs: 200, metrics },
    });
    await run("SELECT 1");
    const client = new AbortController();
    const large = Array.from({ length: 5 }, () => failureOf(run(ENDLESS, {}, client.signal)));
    // Two run, and each of the others had its turn in the process of the small ones.
    const started = 'engine_query_restarts_total{reason="outgrown"} 3';
    await eventually(async () => (await metrics.registry.metrics()).includes(started));
    for (let i = 0; i < 20; i++) expect(await run("SELECT 1 AS a", { wallMs: 30_000 })).toBe('{"a":1}\n');
    expect(harness.pool.pids()).toHaveLength(3);
    client.abort();
    for (const error of await Promise.all(large)) expect(error).toMatchObject({ code: "cancelled" });
    await expect.poll(() => harness.pool.pids()).toHaveLength(2);
  });

  test("a large one that had to start over still answers right", async () => {
    harness = createQueryHarness({ pool: { children: 2 }, service: { largeAfterMs: 50 } });
    await run("SELECT 1");
    await expect.poll(() => harness.pool.state().idle).toBe(2);
    const client = new AbortController();
    const first = failureOf(run(ENDLESS, {}, client.signal));
    await delay(150);
    const second = run("SELECT count(*) AS n FROM range(10_000) a, range(20_000) b WHERE (a.range + b.range) % 7 = 3");
    await delay(100);
    // Cancelled in the middle, it waits for the first.
    await expect.poll(() => harness.pool.state().idle).toBe(1);
    client.abort();
    await first;
    expect(await second).toBe('{"n":28571429}\n');
  });
});
