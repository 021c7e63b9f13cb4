import { afterEach, expect, test } from "vitest";
import { pause, systemClock } from "../../src/core/clock.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { ingest, ndjson } from "../support/client.ts";
import { startEngine } from "../support/engine.ts";
import { send, startAsked, type AskedEngine } from "./agent.test-kit.ts";

/** Dreams whose server dies, or has no engine. */
type Json = Record<string, unknown>;
const PATH = "/v1/agent/memory/dreaming";

let asked: AskedEngine | undefined;
afterEach(() => asked?.remove());

async function get(url: string, path: string): Promise<Json> {
  return (await (await send(url, "GET", path)).json()) as Json;
}

async function newestRun(url: string): Promise<Json> {
  const { runs } = await get(url, `${PATH}/runs`);
  return (runs as Json[])[0] ?? {};
}

const PROPOSALS = {
  reasoning: "As the events say.",
  proposals: [{ action: "add", reason: "It says so.", evidence: ["e1"], content: "The gateway listens on 8080." }],
};

test("without an engine a dream fails, and has read nothing", async () => {
  asked = await startAsked("anthropic", { ANTHROPIC_API_KEY: "" });
  const { url } = asked.engine;
  expect((await ingest(url, "firehose", ndjson([{ body: "The gateway listens on 8080." }]))).status).toBe(200);
  expect((await send(url, "POST", `${PATH}/run`)).status).toBe(202);
  await eventually(async () => (await newestRun(url))["status"] === "failed", 20_000);
  expect(await newestRun(url)).toMatchObject({
    error: { code: "not_configured", message: expect.stringMatching(/key|credential/iu) },
    events_scanned: 0,
    started_at: expect.any(String),
    finished_at: expect.any(String),
  });
  expect(asked.provider.requests).toEqual([]);
  // A run that failed stands in nobody's way.
  expect((await send(url, "POST", `${PATH}/run`)).status).toBe(202);
});

// Killed while the model thinks, and at several moments after it handed in its proposals.
test.each([undefined, 0, 15, 40, 90])(
  "a dream whose server is killed is dreamt by the next one, and written once (%s ms after the answer)",
  async (afterMs) => {
    const env = { ENGINE_FABRIC_LEASE_SECS: "10", ENGINE_FABRIC_SWEEP_SECS: "1" };
    asked = await startAsked("anthropic", env);
    const { engine, provider, home } = asked;
    expect((await ingest(engine.url, "firehose", ndjson([{ body: "The gateway listens on 8080." }]))).status).toBe(200);
    const reply = { toolCalls: [{ name: "propose_memories", input: PROPOSALS }] };
    asked.play(() => (afterMs === undefined ? { hang: true } : reply));
    expect((await send(engine.url, "POST", `${PATH}/run`)).status).toBe(202);
    await provider.reached(1);
    await pause(systemClock, afterMs ?? 50, new AbortController().signal);
    await engine.stop("SIGKILL");
    asked.play(() => reply);
    const next = await startEngine({ home, env: asked.env });
    asked.engine = next;
    await eventually(async () => (await newestRun(next.url))["status"] === "done", 60_000);
    const runs = (await get(next.url, `${PATH}/runs`))["runs"] as Json[];
    expect(runs).toMatchObject([{ events_scanned: 1, memories_written: 1 }]);
    const { memory_nodes: nodes } = await get(next.url, "/v1/agent/memory/export");
    expect(nodes).toMatchObject([{ content: "The gateway listens on 8080.", version: 1 }]);
    // The watermark is where the run left it.
    await eventually(async () => (await send(next.url, "POST", `${PATH}/run`)).status === 202, 30_000);
    await eventually(
      async () => ((await get(next.url, `${PATH}/runs`))["runs"] as Json[]).every(({ status }) => status === "done"),
      30_000,
    );
    expect(await newestRun(next.url)).toMatchObject({ events_scanned: 0, memories_written: 0 });
  },
  120_000,
);
