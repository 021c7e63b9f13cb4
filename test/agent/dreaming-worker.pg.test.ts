import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { sharedTestServer, type TestDatabases } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { pause, systemClock } from "../../src/core/clock.ts";
import { ingest, ndjson } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { send } from "./agent.test-kit.ts";
import { claimDream, newWorker, ofJob, type HeldDream } from "./dream-worker.test-kit.ts";

/** Dreams on workers whose server dies, has no engine, or hears of an end that is none. The server runs no jobs itself. */

type Json = Record<string, unknown>;
const PATH = "/v1/agent/memory/dreaming";

let postgres: TestDatabases;
let env: Record<string, string>;
let engine: Engine;
let home = "";
let remove: () => Promise<void> = async () => {};
afterEach(async () => {
  await engine.stop("SIGKILL");
  await remove();
});

const get = async (path: string): Promise<Json> => (await (await send(engine.url, "GET", path)).json()) as Json;
const newestRun = async (): Promise<Json> => ((await get(`${PATH}/runs?limit=1`))["runs"] as Json[])[0] ?? {};
const post = (dream: HeldDream, path: string, body?: unknown) => ofJob(engine.url, dream, path, body);

/** A server with an event, and a dream of it that a worker holds. */
async function heldDream({ hasEngine = true } = {}): Promise<HeldDream> {
  ({ home, remove } = await temporaryHome());
  const ENGINE_CATALOG_URL = await postgres.createDatabase();
  env = { ENGINE_CATALOG_URL, ENGINE_ROLES: "query,ingest", ENGINE_FABRIC_LEASE_SECS: "60" };
  engine = await startEngine({ home, env });
  if (hasEngine) {
    const body = { kind: "localmodel", model: "m", credential_id: null, host: null, extras: {} };
    await send(engine.url, "PUT", "/v1/agent/engine", body);
  }
  expect((await ingest(engine.url, "firehose", ndjson([{ body: "The gateway listens on 8080." }]))).status).toBe(200);
  expect((await send(engine.url, "POST", `${PATH}/run`)).status).toBe(202);
  const { token } = await newWorker(engine.url, {});
  return await claimDream(engine.url, token);
}

async function answerTo(dream: HeldDream): Promise<Json> {
  const { json } = await post(dream, "dreaming/next");
  const { position } = json["question"] as { position: string };
  const proposal = { action: "add", reason: "It says so.", evidence: ["e1"], content: "The gateway listens on 8080." };
  return { position, usage: { input_tokens: 10, output_tokens: 5 }, proposals: [proposal] };
}

describe.skipIf(lacks("PostgreSQL"))("a dream on a worker", () => {
  beforeAll(async () => {
    postgres = await sharedTestServer();
  });
  afterAll(() => postgres.stop());

  // Before the answer, and at several moments after it was sent.
  test.each([undefined, 0, 10, 25, 60])(
    "goes on with the next server when one is killed, and is written once (%s ms after the answer)",
    async (afterMs) => {
      const dream = await heldDream();
      const body = await answerTo(dream);
      if (afterMs !== undefined) {
        void post(dream, "dreaming/apply", body).catch(() => undefined);
        await pause(systemClock, afterMs, new AbortController().signal);
      }
      await engine.stop("SIGKILL");
      engine = await startEngine({ home, env });
      const result = { run_id: (await newestRun())["id"], events_scanned: 1, memories_written: 1 };
      const over = { status: 200, json: { over: true, result, failure: null } };
      expect(await post(dream, "dreaming/apply", body)).toEqual(over);
      expect(await post(dream, "dreaming/apply", body)).toEqual(over);
      expect((await post(dream, "complete", result)).status).toBe(204);
      expect(await newestRun()).toMatchObject({ status: "done", stats: { questions: 1, accepted: { add: 1 } } });
      const { memory_nodes: nodes } = await get("/v1/agent/memory/export");
      expect(nodes).toMatchObject([{ content: "The gateway listens on 8080.", version: 1 }]);
    },
    60_000,
  );

  test("fails without an engine, and shows no event", async () => {
    const dream = await heldDream({ hasEngine: false });
    const { status, json } = await post(dream, "dreaming/next");
    const failure = { error: expect.stringMatching(/^not_configured: .*PUT/u), retryable: false, retry_after_ms: null };
    expect({ status, json }).toEqual({
      status: 200,
      json: { over: true, result: null, failure, question: null, engine: null, tool: null },
    });
    expect(await newestRun()).toMatchObject({ status: "failed", error: { code: "not_configured" }, events_scanned: 0 });
    expect((await post(dream, "dreaming/next")).json).toMatchObject({ over: true, failure });
  });

  test("that is said to be done and is not leaves a run that failed, and the events to the next one", async () => {
    const dream = await heldDream();
    await answerTo(dream);
    expect((await post(dream, "complete", { memories_written: 1_000 })).status).toBe(204);
    expect(await newestRun()).toMatchObject({ status: "failed", memories_written: 0, error: { code: "interrupted" } });
    expect((await send(engine.url, "POST", `${PATH}/run`)).status).toBe(202);
    const again = await claimDream(engine.url, dream.token);
    const body = await answerTo(again);
    expect((await post(again, "dreaming/apply", body)).json).toMatchObject({
      over: true,
      result: { events_scanned: 1 },
    });
  });
});
