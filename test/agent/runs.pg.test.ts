import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { sharedTestServer, type TestDatabases } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { ask, eventsOf, only, send, startAsked, storedRun, type AskedEngine } from "./agent.test-kit.ts";

/** Two servers on one catalog. */
describe.skipIf(lacks("PostgreSQL"))("two servers on PostgreSQL", () => {
  let postgres: TestDatabases;
  let first: AskedEngine;
  let second: Engine;
  const closers: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    postgres = await sharedTestServer();
    closers.push(() => postgres.stop());
    const catalog = { ENGINE_CATALOG_URL: await postgres.createDatabase() };
    first = await startAsked("anthropic", catalog);
    closers.push(() => first.remove());
    const { home, remove } = await temporaryHome();
    closers.push(remove);
    second = await startEngine({ home, env: first.env });
    closers.push(() => second.stop("SIGKILL"));
  });
  afterAll(async () => {
    for (const close of closers.toReversed()) await close();
  });

  test("a session goes on at either, one question at a time", async () => {
    first.play((_request, index) => (index === 1 ? { text: ["slow"], delayMs: 1_500 } : { text: ["quick"] }));
    const { sessionId } = only(await ask(first.engine.url, "Begin"), "session");
    const slow = ask(first.engine.url, { question: "Slowly", session_id: sessionId });
    await eventually(async () => {
      const session = await send(second.url, "GET", `/v1/agent/sessions/${String(sessionId)}`);
      return ((await session.json()) as { turn_count: number }).turn_count === 3;
    });
    const refused = await send(second.url, "POST", "/v1/agent/ask", { question: "Too soon", session_id: sessionId });
    expect(refused.status).toBe(409);
    await slow;
    const events = await ask(second.url, { question: "Now", session_id: sessionId });
    expect(only(events, "run_finished")).toMatchObject({ status: "done" });
    const run = await storedRun(first.engine.url, only(events, "run_started")["run_id"]);
    expect(run).toMatchObject({ status: "done", answer: "quick" });
  });

  test("a run whose server is killed is ended by the other one within 30 s", async () => {
    first.play([{ text: ["Said before ", "the kill. ", "And"], hang: true }]);
    const response = await send(first.engine.url, "POST", "/v1/agent/ask", { question: "Slowly" });
    const text: string[] = [];
    const reading = (async () => {
      for await (const chunk of response.body ?? []) text.push(Buffer.from(chunk).toString());
    })().catch(() => "the connection was lost");
    await eventually(() => text.join("").includes("before"));
    const { run_id: runId } = only(eventsOf(text.join("")), "run_started");
    await eventually(async () => JSON.stringify(await storedRun(second.url, runId)).includes("before"));
    const killedAtMs = performance.now();
    await first.engine.stop("SIGKILL");
    expect(await reading).toBe("the connection was lost");
    await eventually(async () => (await storedRun(second.url, runId))["status"] === "failed", 40_000);
    expect(performance.now() - killedAtMs).toBeLessThan(30_000);
    expect(await storedRun(second.url, runId)).toMatchObject({
      error: { code: "interrupted" },
      answer: expect.stringContaining("Said before"),
    });
  });
});
