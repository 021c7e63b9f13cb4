import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { putFile, putScriptedModel } from "../../src/knowledge/memory/rerank/scripted-model.test-kit.ts";
import { startServices } from "../edge/run.test-kit.ts";
import { temporaryHome } from "../support/engine.ts";
import { Remembering } from "./recall.test-kit.ts";

/** Recall with a model that reranks, through a whole server; the model's runtime is scripted. */

let home: string;
let folder: string;
let closers: (() => Promise<unknown>)[];

beforeEach(async () => {
  const temporary = await temporaryHome();
  ({ home } = temporary);
  folder = await mkdtemp(join(tmpdir(), "engine-rerank-"));
  closers = [temporary.remove, () => rm(folder, { recursive: true })];
  await putScriptedModel(folder);
});
afterEach(async () => {
  for (const close of closers.toReversed()) await close();
});

const configured = () => ({ ENGINE_RERANK_MODEL: "tiny/cross-encoder", ENGINE_RERANK_MODEL_PATH: folder });

async function start(env: Record<string, string>): Promise<{ memory: Remembering; metrics: () => Promise<string> }> {
  const running = await startServices({ ENGINE_HOME: home, ENGINE_ROLES: "query", ...env });
  closers.push(() => running.stop());
  const metrics = async () => await (await fetch(`${running.url}/metrics`)).text();
  return { memory: Remembering.open(running.url), metrics };
}

const rerankingOf = async (memory: Remembering) => (await memory.done("GET", "overview"))["reranking"];
const isReady = async (memory: Remembering) =>
  await expect.poll(() => rerankingOf(memory), { timeout: 10_000 }).toMatchObject({ state: "ready" });

/** The first one is more important, the second one has more words of the question. */
const MEMORIES = [
  { id: "important", content: "A ship is in the harbour", importance: 0.9 },
  { id: "near", content: "A red ship is in the harbour", importance: 0.3 },
];
const QUESTION = "red ship";

test("the model's ratings reorder what was found, and are among the parts of a score", async () => {
  const plain = await start({});
  await plain.memory.save(MEMORIES);
  const before = (await plain.memory.recall(QUESTION)).memories;
  expect(before.map(({ id }) => id)).toEqual(["important", "near"]);
  expect(before.map(({ score_parts }) => score_parts["rerank"])).toEqual([0, 0]);
  expect(await rerankingOf(plain.memory)).toEqual({ state: "off", model: null, reason: null });
  for (const close of closers.splice(2)) await close();

  const { memory, metrics } = await start(configured());
  await memory.recall(QUESTION);
  await isReady(memory);
  const after = (await memory.recall(QUESTION)).memories;
  expect(after.map(({ id }) => id)).toEqual(["near", "important"]);
  for (const { score, score_parts: parts } of after) {
    const { fused = 0, graph = 0, rerank = 0, importance = 0, age = 0 } = parts;
    expect(rerank).toBeGreaterThan(0);
    expect(score).toBeCloseTo((fused + graph + rerank) * importance * age, 4);
  }
  expect(await rerankingOf(memory)).toEqual({ state: "ready", model: "tiny/cross-encoder", reason: null });
  expect(await metrics()).toMatch(/^engine_memory_reranks_total\{outcome="reranked"\} [1-9]/m);
});

test("only the best are rated, and the others keep their places below", async () => {
  const { memory } = await start(configured());
  await memory.save(Array.from({ length: 60 }, (_, i) => ({ content: `ship number ${i}`, importance: i / 100 })));
  await memory.recall("ship");
  await isReady(memory);
  const { memories } = await memory.recall("ship", { limit: 60 });
  const rated = memories.map(({ score_parts }) => (score_parts["rerank"] ?? 0) > 0);
  expect(rated).toEqual(Array.from({ length: 60 }, (_, i) => i < 32));
  const scores = memories.map(({ score }) => score);
  expect(scores).toEqual(scores.toSorted((a, b) => b - a));
});

test.each([
  ["fails", "crash", "crash"],
  ["is too slow", "sleep", "no answer within 1000 ms"],
])("a model that %s changes nothing but what the overview says", async (_, word, reason) => {
  const { memory, metrics } = await start(configured());
  await memory.save(MEMORIES);
  const asked = `${word} ship`;
  await memory.recall("ship");
  await isReady(memory);
  const startedMs = performance.now();
  const failed = (await memory.recall(asked)).memories;
  expect(performance.now() - startedMs).toBeLessThan(2_000);
  expect(failed).toHaveLength(2);
  expect(failed.map(({ score_parts }) => score_parts["rerank"])).toEqual([0, 0]);
  expect(await rerankingOf(memory)).toEqual({ state: "failing", model: "tiny/cross-encoder", reason });
  expect((await memory.recall("ship")).memories).toHaveLength(2);
  const counted = await metrics();
  expect(counted).toMatch(/^engine_memory_reranks_total\{outcome="failed"\} 1$/m);
  expect(counted).toMatch(/^engine_memory_reranks_total\{outcome="paused"\} 1$/m);
});

test("a model that is not there leaves recall as it is", async () => {
  const { memory } = await start({ ENGINE_RERANK_MODEL: "m", ENGINE_RERANK_MODEL_PATH: join(folder, "nothing") });
  await memory.save(MEMORIES);
  expect(await memory.texts("ship")).toHaveLength(2);
  expect(await rerankingOf(memory)).toEqual({
    state: "off",
    model: null,
    reason: `${join(folder, "nothing")} has no model.onnx with a tokenizer.json: check ENGINE_RERANK_MODEL_PATH`,
  });
});

test("a model that cannot be loaded leaves recall as it is", async () => {
  await putFile(folder, "model.onnx.broken", "");
  const { memory } = await start(configured());
  await memory.save(MEMORIES);
  expect(await memory.texts("ship")).toHaveLength(2);
  const failing = { state: "failing", model: "tiny/cross-encoder", reason: "the file is broken" };
  await expect.poll(() => rerankingOf(memory), { timeout: 10_000 }).toEqual(failing);
});
