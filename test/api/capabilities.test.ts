import { afterEach, expect, test } from "vitest";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** What is off is explained. */
type State = { name: string; enabled: boolean; reason: string | null };

const started: { engine: Engine; remove: () => Promise<void> }[] = [];
afterEach(async () => {
  for (const { engine, remove } of started.splice(0)) {
    await engine.stop();
    await remove();
  }
});

async function start(env: Record<string, string>): Promise<Engine> {
  const { home, remove } = await temporaryHome();
  const engine = await startEngine({ home, env });
  started.push({ engine, remove });
  return engine;
}

async function capabilitiesOf({ url }: Engine): Promise<Map<string, State>> {
  const answer = await fetch(`${url}/v1/capabilities`);
  expect(answer.status).toBe(200);
  const { capabilities } = (await answer.json()) as { capabilities: State[] };
  for (const { enabled, reason } of capabilities) expect(reason === null).toBe(enabled);
  expect(capabilities.map(({ name }) => name)).toEqual(capabilities.map(({ name }) => name).toSorted());
  return new Map(capabilities.map((state) => [state.name, state]));
}

test("a bare server says what each thing that is off takes", async () => {
  const engine = await start({ ENGINE_SANDBOX_RUNTIME: "off", ENGINE_GRPC_ADDR: "off", ENGINE_INGEST_MODE: "staged" });
  const states = await capabilitiesOf(engine);
  const off = [...states.values()].filter(({ enabled }) => !enabled);
  expect(Object.fromEntries(off.map(({ name, reason }) => [name, reason]))).toEqual({
    agent: expect.stringContaining("PUT /v1/agent/engine"),
    credentials: expect.stringContaining("openssl rand -base64 32"),
    flight: expect.stringContaining("ENGINE_GRPC_ADDR"),
    query_engines: expect.stringContaining("engine query-engine add"),
    recall_by_meaning: expect.stringContaining("Fast recall"),
    sandboxes: "No node runs sandboxes: ENGINE_SANDBOX_RUNTIME is off here.",
    visible_at_once: expect.stringContaining("ENGINE_INGEST_MODE"),
  });
});

test("what is set up is on", async () => {
  const engine = await start({
    ENGINE_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
    ENGINE_EMBED_PROVIDER: "ollama",
    ENGINE_SANDBOX_RUNTIME: "off",
    ENGINE_GRPC_ADDR: "127.0.0.1:0",
  });
  const json = { "Content-Type": "application/json" };
  const engineOf = { method: "PUT", headers: json, body: JSON.stringify({ kind: "localmodel", model: "m" }) };
  expect((await fetch(`${engine.url}/v1/agent/engine`, engineOf)).status).toBe(200);
  const named = { name: "big", kind: "trino", url: "http://localhost:8080", catalog: "lake" };
  const add = { method: "POST", headers: json, body: JSON.stringify(named) };
  expect((await fetch(`${engine.url}/v1/admin/query-engines`, add)).status).toBe(201);
  const states = await capabilitiesOf(engine);
  expect([...states.values()].filter(({ enabled }) => !enabled).map(({ name }) => name)).toEqual(["sandboxes"]);
});
