import { afterEach, beforeEach, expect, test } from "vitest";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { AuditLog } from "../../../auth/audit.ts";
import { ManualClock, systemClock, type Clock } from "../../../core/clock.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { createLog } from "../../../core/log.ts";
import { createMetrics } from "../../../core/metrics.ts";
import { systemRandom } from "../../../core/random.ts";
import { MEMORY_METRICS } from "../metrics.ts";
import { openMemory } from "../open.ts";
import { ALL_REALMS } from "../realms.ts";
import { Indexes } from "../recall/indexes.ts";
import type { RecordReader } from "../recall/record-source.ts";
import { nodeKey } from "../save.ts";
import type { MemoryScope, MemoryService } from "../service.ts";
import { MemoryStore } from "../store.ts";
import { Embedding, type EmbedSetup } from "./embedding.ts";
import { ollamaProvider } from "./http-providers.ts";
import { ProviderServer } from "./provider-server.test-kit.ts";
import { textToVector } from "./vector-text.ts";

/** How memories get their vectors, behind the writes and whatever the provider does. */

/** Pauses are a hundredth of what they are. */
const HASTY: Clock = { ...systemClock, after: (ms, task, options) => systemClock.after(ms / 100, task, options) };
const newId = uuidV7Source(systemClock, systemRandom);
const ORIGIN = { caller: callerOf(), address: "", requestId: "r" };

function callerOf(): MemoryScope["caller"] {
  return { subject: "ann", kind: "session", role: "write", databases: undefined };
}

let server: ProviderServer;
let catalog: ReturnType<typeof openMemoryCatalog>["catalog"];
let closers: (() => Promise<void>)[];

beforeEach(async () => {
  server = await ProviderServer.start();
  ({ catalog } = openMemoryCatalog(systemClock));
  closers = [() => server.stop(), () => catalog.close()];
});
afterEach(async () => {
  for (const close of closers.toReversed()) await close();
});

type Node = { memory: MemoryService; embedding: Embedding; scope: MemoryScope; lines: string[] };

/** A process on the catalog. */
async function nodeWith(
  setup: EmbedSetup = providerOf("model"),
  clock: Clock = HASTY,
  writesWait = false,
): Promise<Node> {
  const lines: string[] = [];
  const log = createLog("debug", { write: (line: string) => void lines.push(line) });
  const { records } = catalog;
  const metrics = createMetrics();
  const deps = { records, catalog, clock, random: systemRandom, newId, log };
  const embedding = new Embedding({
    ...deps,
    setup,
    writesWait,
    store: new MemoryStore(records),
    metrics: MEMORY_METRICS.of(metrics),
    holder: newId(),
  });
  closers.push(() => embedding.close());
  const memory = openMemory({ ...deps, metrics, audit: new AuditLog(records, newId) }, embedding);
  return { memory, embedding, scope: await memory.scope(callerOf(), "default"), lines };
}

const providerOf = (modelId: string): EmbedSetup => ({
  provider: ollamaProvider({ modelId, baseUrl: server.url, apiKey: undefined }),
});

const stateOf = async ({ embedding, scope }: Node) => (await embedding.stateOf(scope.databaseId)).state;
const isReady = async (node: Node) => await expect.poll(() => stateOf(node), { timeout: 5_000 }).toBe("ready");
const save = async ({ memory, scope }: Node, ...contents: string[]) =>
  await memory.import(scope, { memory_nodes: contents.map((content) => ({ content })), memory_edges: [] });

async function storedVectors(model = "ollama/model") {
  const sql = "SELECT node_id, seq, vector FROM memory_vectors WHERE model = ? ORDER BY seq";
  return await catalog.records.rows(sql, [model]);
}

/** What is found by a question of which no word is in any memory. */
async function foundBy({ embedding, scope }: Node, query: string): Promise<string[]> {
  const rows: RecordReader["rows"] = async (sql, values) => await catalog.records.rows(sql, values);
  const values: RecordReader["values"] = async (sql, given) =>
    (await rows(sql, given)).map((row) => Object.values(row));
  const records = { rows, values };
  const indexes = new Indexes({
    records,
    clock: systemClock,
    options: { ppr: false, classDecay: false },
    model: embedding.model,
  });
  const question = { query, realms: [], tags: [], includeInvalidated: false, limit: 1, expandHops: 0 };
  const none = { memoryType: undefined, importanceMin: undefined, asOfUs: undefined, knownAtUs: undefined };
  const vector = await embedding.questionVector(query);
  const asking = { question: { ...question, ...none }, rights: ALL_REALMS, vector };
  return (await indexes.recall(scope.databaseId, asking)).answer.memories.map(({ content }) => content);
}

test("what was saved is embedded behind the write, once for each text, and found by meaning", async () => {
  const node = await nodeWith(undefined, systemClock);
  await save(node, "The ship is red", "It will rain", "The price is high");
  await isReady(node);
  expect(server.texts).toEqual(expect.arrayContaining(["The ship is red", "It will rain", "The price is high"]));
  expect(await foundBy(node, "vessel?")).toEqual(["The ship is red"]);
  expect(await foundBy(node, "storm?")).toEqual(["It will rain"]);
  const rows = await storedVectors();
  expect(rows.map(({ seq }) => Number(seq))).toEqual([1, 2, 3]);
  expect(textToVector(String(rows[0]?.["vector"]))).toHaveLength(5);
  // A version with the same text has the same vector.
  const asked = server.asked.length;
  const id = String(rows[0]?.["node_id"]);
  await node.memory.invalidate(node.scope, nodeKey(id));
  await node.memory.restore(node.scope, nodeKey(id));
  await isReady(node);
  expect(server.asked).toHaveLength(asked);
  expect(await storedVectors()).toHaveLength(3);
});

test("a changed text has a vector of its own, and the one before is not found by the old one", async () => {
  const node = await nodeWith(undefined, systemClock);
  const said = { topic_key: "plan" };
  await node.memory.saveNode(node.scope, { ...said, content: "We take the ship" });
  await isReady(node);
  await node.memory.saveNode(node.scope, { ...said, content: "We pay the price" });
  await save(node, "The boat");
  await isReady(node);
  expect(await foundBy(node, "vessel?")).toEqual(["The boat"]);
  expect(await foundBy(node, "cost?")).toEqual(["We pay the price"]);
});

test("many are embedded in bounded requests, also those of one import", async () => {
  const node = await nodeWith();
  await save(node, ...Array.from({ length: 1_100 }, (_, i) => `ship ${i}`));
  await save(node, ...Array.from({ length: 20 }, (_, i) => `${i} ${"rain ".repeat(2_000)}`));
  await isReady(node);
  expect(await storedVectors()).toHaveLength(1_120);
  expect(new Set(server.texts).size).toBe(server.texts.length);
  for (const { body } of server.asked) {
    const texts = body["input"] as string[];
    expect(texts.length).toBeLessThanOrEqual(32);
    expect(texts.join("").length).toBeLessThanOrEqual(64_000);
  }
});

test.each<[string, ProviderServer["fault"]]>([
  ["does not answer", () => "hang"],
  ["answers 500", () => ({ status: 500 })],
  ["answers 429", () => ({ status: 429 })],
  ["answers 401", () => ({ status: 401 })],
  ["refuses everything", () => ({ status: 400 })],
  ["answers with other dimensions", (_, texts) => ({ body: { embeddings: texts.map(() => [1, 2]) } })],
])(
  "saves and questions go on while the provider %s, and it is made up for",
  async (_, fault) => {
    const node = await nodeWith();
    await save(node, "The gate is green");
    await isReady(node);
    server.fault = fault;
    await save(node, "The ship is red", "It will rain");
    expect(await foundBy(node, "ship")).toEqual(["The ship is red"]);
    await expect.poll(() => stateOf(node), { timeout: 10_000 }).toBe("failing");
    expect((await node.embedding.stateOf(node.scope.databaseId)).reason).toMatch(
      /127\.0\.0\.1|dimensions|no answer within/,
    );
    await save(node, "The price is high");
    expect(await storedVectors()).toHaveLength(1);
    server.fault = () => undefined;
    await expect.poll(() => stateOf(node), { timeout: 20_000 }).toBe("ready");
    expect(await storedVectors()).toHaveLength(4);
    const warnings = node.lines.filter((line) => line.includes("memories are not embedded for now"));
    expect(warnings).toHaveLength(1);
    expect(node.lines.join("")).toContain("memories are embedded again");
  },
  40_000,
);

test("a write waits for the vectors of what it wrote where that is configured, but not for a provider that fails", async () => {
  const node = await nodeWith(undefined, HASTY, true);
  for (const content of ["The ship is red", "It will rain"]) {
    await node.memory.saveNode(node.scope, { content });
    expect(await stateOf(node)).toBe("ready");
  }
  await save(node, ...Array.from({ length: 100 }, (_, i) => `ship ${i}`));
  expect(await storedVectors()).toHaveLength(102);
  server.fault = () => "hang";
  await save(node, "The price is high");
  expect(await stateOf(node)).toBe("behind");
  server.fault = () => ({ status: 401 });
  await expect.poll(() => stateOf(node), { timeout: 10_000 }).toBe("failing");
  const startedMs = performance.now();
  for (let i = 0; i < 20; i++) await save(node, `boat ${i}`);
  expect(performance.now() - startedMs).toBeLessThan(1_500);
  expect(await storedVectors()).toHaveLength(102);
});

test("a text that the provider refuses keeps none of the others waiting", async () => {
  const node = await nodeWith(undefined, systemClock);
  server.fault = (_, texts) => (texts.some((text) => text.includes("poison")) ? { status: 400 } : undefined);
  await save(node, "The ship is red", "some poison", "It will rain");
  await isReady(node);
  expect(await storedVectors()).toHaveLength(2);
  expect(await foundBy(node, "storm?")).toEqual(["It will rain"]);
  expect(await foundBy(node, "poison")).toEqual(["some poison"]);
});

test("of an erased memory no vector stays, though it was being computed", async () => {
  const node = await nodeWith();
  const { record } = await node.memory.saveNode(node.scope, { content: "The ship is red" });
  await isReady(node);
  expect(await storedVectors()).toHaveLength(1);
  await node.memory.erase(node.scope, nodeKey(record.id), ORIGIN);
  expect(await storedVectors()).toEqual([]);
  await isReady(node);
  const held = Promise.withResolvers<void>();
  server.fault = () => {
    held.resolve();
    return "hang";
  };
  const second = await node.memory.saveNode(node.scope, { content: "The boat is blue" });
  await held.promise;
  server.fault = () => undefined;
  await node.memory.erase(node.scope, nodeKey(second.record.id), ORIGIN);
  await isReady(node);
  expect(await storedVectors()).toEqual([]);
});

test("after a restart it goes on where it was, and asks for nothing again", async () => {
  const first = await nodeWith();
  await save(first, "The ship is red");
  await isReady(first);
  server.fault = () => ({ status: 500 });
  await save(first, "It will rain");
  await first.embedding.close();
  server.fault = () => undefined;
  server.asked.length = 0;
  const second = await nodeWith();
  expect(await stateOf(second)).toBe("behind");
  second.embedding.begin([second.scope.databaseId]);
  await isReady(second);
  expect(server.texts).toEqual(["It will rain"]);
});

test("a process that ends within a commit leaves the rest of it to the next one", async () => {
  const first = await nodeWith();
  server.fault = () => (server.texts.length > 700 ? { status: 500 } : undefined);
  await save(first, ...Array.from({ length: 1_100 }, (_, i) => `ship ${i}`));
  await expect.poll(() => stateOf(first), { timeout: 10_000 }).toBe("failing");
  const before = await storedVectors();
  // More than the worker reads at once.
  expect(before.length).toBeGreaterThan(500);
  await first.embedding.close();
  server.fault = () => undefined;
  server.asked.length = 0;
  const second = await nodeWith();
  second.embedding.begin([second.scope.databaseId]);
  await isReady(second);
  expect(await storedVectors()).toHaveLength(1_100);
  expect(server.texts).toHaveLength(1_100 - before.length);
});

test("two processes embed a text once, and one takes over from another that is gone", async () => {
  const [a, b] = [await nodeWith(), await nodeWith()];
  const texts = Array.from({ length: 200 }, (_, i) => `ship ${i}`);
  await Promise.all(texts.map(async (text, i) => await save(i % 2 === 0 ? a : b, text)));
  await isReady(a);
  expect(server.texts.toSorted()).toEqual(texts.toSorted());
  // As a process leaves it that dies.
  await save(a, "rain");
  await isReady(a);
  const { databaseId } = a.scope;
  const gone = "UPDATE memory_vector_heads SET held_by = 'gone', held_until_ms = ?, through_seq = 0 RETURNING seq";
  await catalog.records.write({ sql: gone, values: [{ nowPlusMs: 400 }] });
  b.embedding.begin([databaseId]);
  expect(await stateOf(b)).toBe("behind");
  await isReady(b);
});

test("another model embeds everything anew, and until then its questions are answered by words", async () => {
  const old = await nodeWith(undefined, systemClock);
  await save(old, "The ship is red", "It will rain");
  await isReady(old);
  server.fault = ({ body }) => (body["model"] === "other" ? { status: 503 } : undefined);
  const other = await nodeWith(providerOf("other"), systemClock);
  server.vectorOf = (text) => (text.toLowerCase().includes("ship") || text.includes("vessel") ? [1, 0.1] : [0, 1]);
  expect(await foundBy(other, "ship")).toEqual(["The ship is red"]);
  expect(await foundBy(old, "no words")).toEqual(expect.any(Array));
  server.fault = () => undefined;
  other.embedding.begin([other.scope.databaseId]);
  await isReady(other);
  expect(await storedVectors("ollama/other")).toHaveLength(2);
  expect(await storedVectors("ollama/model")).toHaveLength(2);
  const fresh = await nodeWith(providerOf("other"), systemClock);
  expect(await foundBy(fresh, "vessel?")).toEqual(["The ship is red"]);
});

test("after a question that got no vector the next ones do not ask for a while; a refused one stands for itself", async () => {
  const clock = new ManualClock();
  const node = await nodeWith(undefined, clock);
  const vectorOf = async () => await node.embedding.questionVector("ship?");
  server.fault = () => ({ status: 400 });
  expect([await vectorOf(), await vectorOf()]).toEqual([undefined, undefined]);
  expect(server.asked).toHaveLength(2);
  for (let outage = 1; outage <= 2; outage++) {
    server.fault = () => ({ status: 503 });
    expect(await vectorOf()).toBeUndefined();
    clock.advance(9_999);
    expect(await vectorOf()).toBeUndefined();
    clock.advance(1);
    expect(await vectorOf()).toBeUndefined();
    expect(server.asked).toHaveLength(2 + outage * 3 - 1);
    clock.advance(10_000);
    server.fault = () => undefined;
    expect(await vectorOf()).toHaveLength(5);
  }
  expect(node.lines.filter((line) => line.includes("questions are not embedded for now"))).toHaveLength(2);
});

test("what goes to a provider has no secret that has a known form", async () => {
  const node = await nodeWith(undefined, systemClock);
  await foundBy(node, "who uses ghp_abcdefghijklmnopqrstuvwxyz0123456789?");
  expect(server.texts).toEqual(["who uses [masked token]?"]);
});

test("without a model it warns once, where there is a memory, and reads and writes nothing", async () => {
  const node = await nodeWith({ off: "no model is configured" });
  node.embedding.begin([]);
  expect(node.lines).toEqual([]);
  node.embedding.begin([1]);
  await save(node, "The ship is red");
  expect(await foundBy(node, "ship")).toEqual(["The ship is red"]);
  expect(node.lines.filter((line) => line.includes("recall goes by words and links"))).toHaveLength(1);
  expect(await node.embedding.stateOf(node.scope.databaseId)).toMatchObject({
    state: "off",
    reason: "no model is configured",
  });
  expect(await catalog.records.rows("SELECT 1 FROM memory_vector_heads")).toEqual([]);
});
