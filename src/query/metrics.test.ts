import { expect, test } from "vitest";
import { ANONYMOUS } from "../auth/caller.ts";
import { createMetrics } from "../core/metrics.ts";
import { createQueryHarness } from "./query.test-kit.ts";

const HOUR_NS = 3_600_000_000_000n;
const COLUMNS = [
  { name: "at", type: { kind: "timestamp" as const } },
  { name: "n", type: { kind: "int" as const } },
];

test("metrics tell where the time of queries went, what they read and left out, and what they hold", async () => {
  const metrics = createMetrics();
  const harness = createQueryHarness({ service: { metrics } });
  try {
    const rowAt = (hour: number) => ({ at: BigInt(hour) * HOUR_NS, n: hour });
    const extent = (hour: number) => ({ format: "tlm" as const, columns: COLUMNS, rows: [rowAt(hour)] });
    await harness.addTable("default", "t", COLUMNS, [1, 2, 3, 4].map(extent));
    expect(await harness.rows("SELECT n FROM t WHERE n > 2")).toHaveLength(2);
    await expect(harness.rows("SELECT nothing FROM t")).rejects.toMatchObject({ code: "invalid_query" });
    const text = await metrics.registry.metrics();
    for (const stage of ["queue", "parse", "plan", "fetch", "scan", "stream"]) {
      expect(text).toMatch(new RegExp(`^engine_query_stage_duration_seconds_count\\{stage="${stage}"\\} [12]$`, "m"));
    }
    for (const line of [
      // Two of the first query, and all four that the second one would have read.
      'engine_query_extents_total{result="read"} 6',
      'engine_query_extents_total{result="pruned"} 2',
      "engine_query_rows_total 2",
      'engine_query_processes{state="idle"} 1',
      'engine_query_processes{state="busy"} 0',
      'engine_queries_waiting{for="memory"} 0',
      'engine_queries_waiting{for="process"} 0',
      "engine_query_memory_reserved_bytes 0",
      "engine_query_processes_lost_total 0",
    ]) {
      expect(text.split("\n")).toContain(line);
    }
    expect(text).not.toMatch(/^engine_query_held_snapshot /m);
  } finally {
    await harness.close();
  }
});

test("a check counts as running until it is over", async () => {
  const metrics = createMetrics();
  const harness = createQueryHarness({ service: { metrics }, pool: { children: 2 } });
  const running = async (): Promise<string | undefined> =>
    /^engine_queries_running (\d+)$/m.exec(await metrics.registry.metrics())?.[1];
  try {
    expect(await running()).toBe("0");
    const { catalog } = harness;
    const resolve = catalog.resolve.bind(catalog);
    const [reached, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    catalog.resolve = async (...asked) => {
      catalog.resolve = resolve;
      reached.resolve();
      await held.promise;
      return await resolve(...asked);
    };
    const asked = { caller: ANONYMOUS, database: "default", language: "sql", requestId: "r" } as const;
    const checking = harness.service.check({ ...asked, text: "SELECT 1", signal: new AbortController().signal });
    await reached.promise;
    expect(await harness.rows("SELECT 1 AS n")).toEqual([{ n: 1 }]);
    expect(await running()).toBe("1");
    held.resolve();
    expect((await checking).diagnostics).toEqual([]);
    expect(await running()).toBe("0");
  } finally {
    await harness.close();
  }
});
