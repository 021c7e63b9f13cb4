import { afterAll, beforeAll, expect, test } from "vitest";
import { ingest } from "../support/client.ts";
import { ask, dataOf, only, sql, startAsked, storedRun, type AskedEngine } from "./agent.test-kit.ts";

/** Runs that take their whole minute. */
let asked: AskedEngine;
beforeAll(async () => {
  asked = await startAsked();
  expect((await ingest(asked.engine.url, "t", '{"n":1}\n')).status).toBe(200);
});
afterAll(() => asked.remove());

async function timed(question: string): Promise<{ events: Awaited<ReturnType<typeof ask>>; tookMs: number }> {
  const startedMs = performance.now();
  const events = await ask(asked.engine.url, question);
  return { events, tookMs: performance.now() - startedMs };
}

test("a run ends after 60 s, whatever it waits for: a silent model, a slow one, one query after the other", async () => {
  const long = sql("SELECT count(*) FROM range(100000000000) a, range(1000000) b");
  asked.play((request) => {
    const sent = JSON.stringify(request.body);
    if (sent.includes("silent")) return { hang: true };
    if (sent.includes("slow")) return { text: ["x".repeat(2_000)], byteDelayMs: 250 };
    return { toolCalls: [long] };
  });
  const runs = await Promise.all(["silent", "slow", "queries"].map(timed));
  for (const { events, tookMs } of runs) {
    expect(only(events, "run_error")).toMatchObject({ code: "timeout", retryable: false });
    const finished = only(events, "run_finished");
    expect(finished).toMatchObject({ status: "failed" });
    expect(finished["duration_ms"]).toBeGreaterThanOrEqual(60_000);
    // On a machine that runs other tests beside this one.
    expect(tookMs).toBeLessThan(62_000);
    const run = await storedRun(asked.engine.url, finished["run_id"]);
    expect(run).toMatchObject({ status: "failed", error: { code: "timeout" } });
  }
  expect(dataOf(runs[2]?.events ?? [], "tool_result").length).toBeGreaterThanOrEqual(2);
  for (const request of asked.asked().slice(0, 2)) await request.clientLeft;
});
