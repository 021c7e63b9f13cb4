import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runChild } from "../../src/cli/cli.test-kit.ts";
import { ProviderServer } from "../../src/knowledge/memory/embed/provider-server.test-kit.ts";
import { startServices } from "../edge/run.test-kit.ts";
import { temporaryHome } from "../support/engine.ts";
import { Remembering } from "./recall.test-kit.ts";
import type { Json } from "./services.test-kit.ts";

/** Recall by meaning, through a whole server and a provider that is scripted. */

let provider: ProviderServer;
let home: string;
let closers: (() => Promise<unknown>)[];

beforeEach(async () => {
  provider = await ProviderServer.start();
  const folder = await temporaryHome();
  home = folder.home;
  closers = [folder.remove, () => provider.stop()];
});
afterEach(async () => {
  for (const close of closers.toReversed()) await close();
});

async function start(env: Record<string, string> = {}): Promise<{ memory: Remembering; url: string }> {
  const embed = { ENGINE_EMBED_PROVIDER: "openai-compat", ENGINE_EMBED_BASE_URL: `${provider.url}/v1` };
  const running = await startServices({ ENGINE_HOME: home, ENGINE_ROLES: "query", ...embed, ...env });
  closers.push(() => running.stop());
  return { memory: Remembering.open(running.url), url: running.url };
}

const embeddingOf = async (memory: Remembering) => (await memory.done("GET", "overview"))["embedding"] as Json;
const isReady = async (memory: Remembering) =>
  await expect.poll(async () => (await embeddingOf(memory))["state"], { timeout: 5_000 }).toBe("ready");

const MEMORIES = ["Our vessel is painted red", "The gate is locked at night", "The kitchen is on the left"];

test("finds what has no word in common with the question, and says how close it is", async () => {
  const { memory, url } = await start();
  await memory.save(MEMORIES);
  await isReady(memory);
  const { memories } = await memory.recall("boat?", { limit: 1 });
  expect(memories.map(({ content }) => content)).toEqual(["Our vessel is painted red"]);
  expect(memories[0]?.score_parts).toMatchObject({ lexical: 0, entity: 0, vector: 1, fused: 1 });
  expect(await memory.texts("which entrance?", { limit: 1 })).toEqual(["The gate is locked at night"]);
  expect(await embeddingOf(memory)).toEqual({
    state: "ready",
    model: "openai-compat/text-embedding-3-small",
    commits: 1,
    reason: null,
  });
  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect(metrics).toMatch(/^engine_memory_embeddings_total\{outcome="stored"\} 3$/m);
  // By words it is found, too, and both count.
  const [both] = (await memory.recall("vessel", { limit: 1 })).memories;
  expect(both?.score_parts).toMatchObject({ vector: 1, fused: 2 });
  expect(both?.score_parts["lexical"]).toBeGreaterThan(0);
});

test("finds what `engine sync` has saved beside a running server, and before one started", async () => {
  const agent = join(home, "agent");
  const files = join(agent, "projects", "-work-web", "memory");
  await mkdir(files, { recursive: true });
  const sync = async (name: string, text: string): Promise<void> => {
    await writeFile(join(files, name), text);
    const { code, stderr } = await runChild(["sync"], { env: { ENGINE_HOME: home, ENGINE_CA_HOME: agent } });
    expect([code, stderr]).toEqual([0, ""]);
  };
  await sync("one.md", "Our vessel is painted red");
  const { memory } = await start();
  const found = async (question: string, text: string) =>
    await expect
      .poll(async () => (await memory.recall(question, { limit: 1 })).memories[0], { timeout: 20_000, interval: 200 })
      .toMatchObject({ content: text, score_parts: { lexical: 0, vector: 1 } });
  await found("boat?", "Our vessel is painted red");
  await sync("two.md", "The gate is locked at night");
  await found("which entrance?", "The gate is locked at night");
});

test("leads on over edges, and chooses by type, tags, importance and time as words do", async () => {
  const { memory } = await start();
  const nodes = [
    { id: "seen", content: "Our vessel is painted red", tags: ["x"], importance: 0.9, memory_type: "fact" },
    { id: "linked", content: "Paint is in the shed" },
    { id: "gone", content: "The ship has sunk", valid_from: "2020-01-01T00:00:00Z" },
  ];
  await memory.save(nodes, [{ src: "seen", dst: "linked" }]);
  await isReady(memory);
  await memory.done("POST", "nodes/gone/invalidate", { reason: "it was raised", valid_to: "2021-01-01T00:00:00Z" });
  const ids = async (more: Json) => (await memory.recall("boat?", { limit: 2, ...more })).memories.map(({ id }) => id);
  expect(await ids({})).toEqual(["seen", "linked"]);
  expect(await ids({ tags: ["x"], importance_min: 0.8, memory_type: "fact" })).toEqual(["seen"]);
  expect(await ids({ tags: ["y"] })).toEqual([]);
  expect(await ids({ as_of: "2020-06-01T00:00:00Z" })).toEqual(["gone"]);
  expect((await ids({ include_invalidated: true })).toSorted()).toEqual(["gone", "seen"]);
});

test("answers by words while the provider is away, and saves; what it missed is embedded after a restart", async () => {
  const first = await start();
  await first.memory.save(MEMORIES);
  await isReady(first.memory);
  provider.fault = () => ({ status: 500 });
  await first.memory.save(["A storm is coming"]);
  expect(await first.memory.texts("storm", { limit: 1 })).toEqual(["A storm is coming"]);
  const [found] = (await first.memory.recall("vessel", { limit: 1 })).memories;
  expect(found?.score_parts).toMatchObject({ vector: 0, fused: 1 });
  for (const close of closers.splice(2)) await close();
  provider.fault = () => undefined;
  const { memory } = await start();
  await isReady(memory);
  expect(await memory.texts("weather?", { limit: 1 })).toEqual(["A storm is coming"]);
});

test("a server without a model says so, and answers by words", async () => {
  const { memory } = await start({ ENGINE_EMBED_PROVIDER: "fastembed" });
  await memory.save(MEMORIES);
  expect(await memory.texts("vessel")).toEqual(["Our vessel is painted red"]);
  expect(await memory.texts("boat?")).toEqual([]);
  expect(await embeddingOf(memory)).toEqual({
    state: "off",
    model: null,
    commits: 0,
    reason: "no model is configured: set ENGINE_EMBED_MODEL_PATH, or another ENGINE_EMBED_PROVIDER",
  });
  expect(provider.asked).toEqual([]);
});
