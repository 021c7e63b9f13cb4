import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ManualClock, nextTurn, systemClock, type Clock } from "../../../core/clock.ts";
import { systemRandom } from "../../../core/random.ts";
import { Reranker } from "./reranker.ts";
import { putFile, putScriptedModel } from "./scripted-model.test-kit.ts";
import { rerankSetup } from "./setup.ts";

/** Sessions of a model on their threads, with a runtime that is scripted. */

let folder: string;
let closers: (() => Promise<void>)[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-rerank-"));
  closers = [() => rm(folder, { recursive: true })];
});
afterEach(async () => {
  for (const close of closers.toReversed()) await close();
});

const optionsWith = (more: { id?: string | undefined; path?: string | undefined; sessions?: number } = {}) => {
  const { id, path, sessions } = { id: "m", path: folder, sessions: 1, ...more };
  return { rerankModel: id, rerankModelPath: path, rerankPoolSize: sessions };
};

async function started(clock: Clock = systemClock, sessions = 1): Promise<Reranker> {
  await putScriptedModel(folder);
  const setup = rerankSetup(optionsWith({ sessions }));
  if ("off" in setup) throw new Error(setup.off);
  const reranker = new Reranker({ model: setup.model, clock, random: systemRandom });
  closers.push(() => reranker.close());
  reranker.start();
  return reranker;
}

const isLoaded = async (reranker: Reranker) =>
  await expect.poll(() => reranker.state.state, { timeout: 10_000 }).not.toBe("loading");

async function loaded(clock?: Clock, sessions?: number): Promise<Reranker> {
  const reranker = await started(clock, sessions);
  await isLoaded(reranker);
  return reranker;
}

const sigmoid = (logit: number) => 1 / (1 + Math.exp(-logit));

test("rates each text by the question, in the order of the texts, in batches", async () => {
  const reranker = await loaded();
  // Of other lengths than their order.
  const texts = Array.from(
    { length: 32 },
    (_, i) => `${"x ".repeat((i * 7) % 32)}${i % 3 === 0 ? "red ship" : "ship"}`,
  );
  const { outcome, relevances } = await reranker.relevances("the red ship", texts);
  expect(outcome).toBe("reranked");
  const expected = texts.map((_, i) => sigmoid(i % 3 === 0 ? 2 : -2));
  expect(relevances?.map((value) => value.toFixed(6))).toEqual(expected.map((value) => value.toFixed(6)));
  expect(reranker.state).toEqual({ state: "ready", model: "m", reason: undefined });
});

test("a model with a number for each of two classes is rated by both", async () => {
  const { relevances } = await (await loaded()).relevances("two ships", ["no", "ships"]);
  expect(relevances?.map((value) => value.toFixed(6))).toEqual(
    [sigmoid(0), sigmoid(1)].map((value) => value.toFixed(6)),
  );
});

test("the model reads 512 tokens of a pair, the last one among them", async () => {
  const { relevances } = await (await loaded()).relevances("ship", [`${"x ".repeat(600)}ship`, "ship"]);
  expect(relevances?.map((value) => value > sigmoid(-3))).toEqual([false, true]);
});

test.each([
  ["crash", /^crash$/],
  ["odd", /the shape 2x3: it is no cross-encoder$/],
  ["nan", /not finite$/],
  ["half", /float16 in place of float32$/],
  ["exit", /ended with code 3$/],
])("who asks a model that fails (%s) goes on without, and it is asked again after a pause", async (word, reason) => {
  const clock = new ManualClock();
  const reranker = await loaded(clock);
  const ask = async (query: string) => (await reranker.relevances(query, ["ship", "red"])).outcome;
  expect(await ask(`${word} ship`)).toBe("failed");
  expect(reranker.state).toMatchObject({ state: "failing", model: "m", reason: expect.stringMatching(reason) });
  expect(await ask("ship")).toBe("paused");
  // Half of a pause is random; the thread starts again with the first question after it.
  clock.advance(10_000);
  await expect.poll(() => ask("ship"), { timeout: 10_000 }).toBe("reranked");
  expect(reranker.state.state).toBe("ready");
});

test("nobody waits for a model that is too slow, nor for the session that is still at it", async () => {
  const reranker = await loaded();
  const startedMs = performance.now();
  expect((await reranker.relevances("sleep", ["a", "b"])).outcome).toBe("failed");
  expect(performance.now() - startedMs).toBeLessThan(1_400);
  expect(reranker.state.reason).toBe("no answer within 1000 ms");
});

test("a session that is late makes nobody wait, and comes back", async () => {
  const clock = new ManualClock();
  const reranker = await loaded(clock);
  const asked = reranker.relevances("sleep", ["a", "b"]);
  await nextTurn();
  clock.advance(1_000);
  expect((await asked).outcome).toBe("failed");
  clock.advance(10_000);
  const startedMs = performance.now();
  expect((await reranker.relevances("ship", ["a", "b"])).outcome).toBe("busy");
  expect(performance.now() - startedMs).toBeLessThan(300);
  const again = async () => (await reranker.relevances("ship", ["a", "b"])).outcome;
  await expect.poll(again, { timeout: 5_000 }).toBe("reranked");
});

test("as many run as there are sessions; others wait for one, but not for long", async () => {
  const reranker = await loaded();
  const naps = [1, 2, 3].map(async () => (await reranker.relevances("nap", ["a", "b"])).outcome);
  expect(await Promise.all(naps)).toEqual(["reranked", "reranked", "busy"]);
  // That one went without says nothing about the model.
  expect(reranker.state.state).toBe("ready");
});

test("sessions run side by side", async () => {
  const reranker = await loaded(systemClock, 3);
  const ask = async () => (await reranker.relevances("ship", ["a", "b"])).outcome;
  await expect.poll(() => Promise.all([ask(), ask(), ask()]), { timeout: 10_000 }).toEqual(Array(3).fill("reranked"));
  const startedMs = performance.now();
  const naps = [1, 2, 3].map(async () => (await reranker.relevances("nap", ["a", "b"])).outcome);
  expect(await Promise.all(naps)).toEqual(Array(3).fill("reranked"));
  expect(performance.now() - startedMs).toBeLessThan(1_000);
});

test("a model that cannot be loaded is said to fail, and is loaded when it is there", async () => {
  await putFile(folder, "model.onnx.broken", "");
  const clock = new ManualClock();
  const reranker = await loaded(clock);
  expect(reranker.state).toEqual({ state: "failing", model: "m", reason: "the file is broken" });
  const ask = async () => (await reranker.relevances("ship", ["a", "b"])).outcome;
  expect(await ask()).toBe("paused");
  await rm(join(folder, "model.onnx.broken"));
  clock.advance(10_000);
  await expect.poll(ask, { timeout: 10_000 }).toBe("reranked");
});

test("questions are not reranked while the model is loaded, and after the end", async () => {
  const reranker = await started();
  expect(reranker.state.state).toBe("loading");
  expect((await reranker.relevances("ship", ["a", "b"])).outcome).toBe("busy");
  await reranker.close();
  expect((await reranker.relevances("ship", ["a", "b"])).outcome).toBe("paused");
});

test("is off unless a model is named, and says why when it is named and not there", async () => {
  const off = (more: Parameters<typeof optionsWith>[0]) => rerankSetup(optionsWith(more));
  expect(off({ id: undefined, path: undefined })).toEqual({ off: undefined });
  expect(off({ id: undefined })).toEqual({ off: "ENGINE_RERANK_MODEL_PATH has no effect without ENGINE_RERANK_MODEL" });
  expect(off({ path: undefined })).toEqual({ off: "no folder has the model m: set ENGINE_RERANK_MODEL_PATH" });
  expect(off({})).toEqual({ off: `${folder} has no model.onnx with a tokenizer.json: check ENGINE_RERANK_MODEL_PATH` });
  await putScriptedModel(folder);
  await rm(join(folder, "node_modules"), { recursive: true });
  expect(off({})).toEqual({
    off: `onnxruntime-node and @huggingface/tokenizers are not installed: install them in ${folder}`,
  });
});
