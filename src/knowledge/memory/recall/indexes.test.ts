import { beforeEach, expect, test } from "vitest";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock, nextTurn } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import type { RecordValue } from "../../../db/records.ts";
import { memoryOn } from "../contract.test-kit.ts";
import { ALL_REALMS } from "../realms.ts";
import type { MemoryScope, MemoryService } from "../service.ts";
import { sweepDropped } from "../sweep/dropped.ts";
import { Indexes } from "./indexes.ts";
import type { Asking, Question } from "./question.ts";
import type { RecordReader } from "./record-source.ts";

/** How indexes follow the records: when they are built, how long a question waits, and what faults cost. */

type Read = { sql: string; values: readonly RecordValue[] };

let clock: ManualClock;
let opened: OpenedCatalog;
let memory: MemoryService;
let scope: MemoryScope;
/** Called before each read. */
let onRead: (read: Read) => void | Promise<void>;
let records: RecordReader;

beforeEach(async () => {
  clock = new ManualClock();
  const { catalog } = openMemoryCatalog(clock);
  opened = { catalog, clock, close: () => catalog.close() };
  memory = memoryOn(opened);
  scope = await memory.scope({ subject: "ann", kind: "session", role: "write", databases: undefined }, "default");
  onRead = () => {};
  const rows: RecordReader["rows"] = async (sql, values = []) => {
    await onRead({ sql, values });
    return await catalog.records.rows(sql, values);
  };
  records = { rows, values: async (sql, values) => (await rows(sql, values)).map((row) => Object.values(row)) };
});

const indexesOf = (mostBytes?: number) =>
  new Indexes({
    records,
    clock,
    options: { ppr: false, classDecay: false },
    ...(mostBytes !== undefined && { mostBytes }),
  });

const save = async (content: string, { databaseId }: { databaseId: number } = scope) =>
  await memory.saveNode({ ...scope, databaseId }, { content });

async function found(indexes: Indexes, query: string, databaseId = scope.databaseId): Promise<string[]> {
  return (await indexes.recall(databaseId, asking(query))).answer.memories.map(({ content }) => content);
}

function asking(query: string, includeInvalidated = false): Asking {
  const question: Question = {
    query,
    realms: [],
    memoryType: undefined,
    tags: [],
    importanceMin: undefined,
    asOfUs: undefined,
    knownAtUs: undefined,
    includeInvalidated,
    limit: undefined,
    expandHops: undefined,
  };
  return { question, rights: ALL_REALMS };
}

/** Pages of changes: after which commit each was read. */
function readsOfPages(): number[] {
  const after: number[] = [];
  onRead = ({ sql, values }) => {
    if (sql.includes("seq > ?")) after.push(Number(values[1]));
  };
  return after;
}

test("a question waits ten seconds for an index that is being built, and is told when to come back", async () => {
  await save("The tower is tall");
  const held = Promise.withResolvers<void>();
  onRead = ({ sql }) => (sql.includes("seq > ?") ? held.promise : undefined);
  const indexes = indexesOf();
  expect(indexes.stateOf(scope.databaseId)).toEqual({ state: "none", commits: 0, sizeBytes: 0 });
  let outcome: unknown;
  const asked = found(indexes, "tower").catch((error: unknown) => (outcome = error));
  clock.advance(9_999);
  for (let i = 0; i < 5; i++) await nextTurn();
  expect(outcome).toBeUndefined();
  expect(indexes.stateOf(scope.databaseId).state).toBe("building");
  clock.advance(1);
  await asked;
  expect(outcome).toMatchObject({ code: "unavailable", details: { headers: { "Retry-After": "5" } } });
  // It is built all the same, for those who come back.
  held.resolve();
  expect(await found(indexes, "tower")).toEqual(["The tower is tall"]);
  expect(indexes.stateOf(scope.databaseId)).toMatchObject({ state: "ready", commits: 1 });
});

test("what was saved is found though commits come faster than the clock counts", async () => {
  const indexes = indexesOf();
  for (const n of ["one", "two", "three"]) {
    await save(`ship ${n}`);
    expect(await found(indexes, n)).toEqual([`ship ${n}`]);
  }
});

test("what holds changes with time, without a commit", async () => {
  const hour = 3_600_000;
  const inHours = (count: number) => new Date(clock.nowMs() + count * hour).toISOString();
  const later = { valid_from: inHours(1), valid_to: inHours(2) };
  await memory.saveNode(scope, { content: "ship at sea", ...later });
  const indexes = indexesOf();
  expect(await found(indexes, "ship")).toEqual([]);
  clock.advance(hour);
  expect(await found(indexes, "ship")).toEqual(["ship at sea"]);
  clock.advance(hour);
  expect(await found(indexes, "ship")).toEqual([]);
});

test("with what does not hold any more, what begins later is not found, whatever else begins later", async () => {
  const inOneHour = new Date(clock.nowMs() + 3_600_000).toISOString();
  const { record } = await memory.saveNode(scope, { content: "ship at sea", valid_from: inOneHour });
  await memory.invalidate(scope, { kind: "node", id: record.id });
  const over = await save("ship in port");
  await memory.invalidate(scope, { kind: "node", id: over.record.id });
  const indexes = indexesOf();
  const all = async () => {
    const { memories } = (await indexes.recall(scope.databaseId, asking("ship", true))).answer;
    return memories.map(({ content }) => content);
  };
  expect(await all()).toEqual(["ship in port"]);
  await memory.saveNode(scope, { content: "tower", valid_from: inOneHour });
  expect(await all()).toEqual(["ship in port"]);
});

test("only what is new is read, also after a read that failed", async () => {
  await save("ship one");
  const indexes = indexesOf();
  await found(indexes, "ship");
  await save("ship two");
  onRead = () => {
    throw new Error("the catalog is away");
  };
  await expect(found(indexes, "ship")).rejects.toThrow("the catalog is away");
  const after = readsOfPages();
  expect(await found(indexes, "ship")).toHaveLength(2);
  expect(await found(indexes, "ship")).toHaveLength(2);
  expect(after).toEqual([1]);
});

test("who asks while the catalog is not available is told when to come back", async () => {
  await save("ship");
  onRead = () => {
    throw new EngineError("unavailable", "another node holds the catalog's lock; try again");
  };
  await expect(found(indexesOf(), "ship")).rejects.toMatchObject({
    code: "unavailable",
    message: "another node holds the catalog's lock; try again",
    details: { headers: { "Retry-After": "5" } },
  });
});

test("questions that come together share the way to the head", async () => {
  await save("ship one");
  const after = readsOfPages();
  const indexes = indexesOf();
  const all = await Promise.all(Array.from({ length: 20 }, () => found(indexes, "ship")));
  expect(all).toEqual(all.map(() => ["ship one"]));
  expect(after).toEqual([0]);
});

test("a memory that was set back to an earlier state is read again", async () => {
  const indexes = indexesOf();
  await save("ship one");
  await save("ship two");
  expect(await found(indexes, "ship")).toHaveLength(2);
  await opened.catalog.records.write({ sql: "DELETE FROM memory_records WHERE seq = 2 RETURNING id" });
  await opened.catalog.records.write({ sql: "UPDATE memory_heads SET seq = 1 RETURNING seq" });
  expect(await found(indexes, "ship")).toEqual(["ship one"]);
});

test("the index of a database that was dropped goes with its records, and no other", async () => {
  const { database } = await opened.catalog.createDatabase("other");
  await save("ship one");
  await save("ship two", { databaseId: database.id });
  const indexes = indexesOf();
  await indexes.prepare([scope.databaseId, database.id]);
  const states = () => [scope.databaseId, database.id].map((id) => indexes.stateOf(id).state);
  await indexes.dropGone();
  expect(states()).toEqual(["ready", "ready"]);
  await opened.catalog.dropDatabase(database.id);
  await sweepDropped({ catalog: opened.catalog, records: opened.catalog.records }, new AbortController().signal);
  await indexes.dropGone();
  expect(states()).toEqual(["ready", "none"]);
  expect(await found(indexes, "ship")).toEqual(["ship one"]);
});

test("there are as many indexes as there is room for: the last that were asked about, and the first at the start", async () => {
  const others = await Promise.all(["b", "c"].map(async (name) => await opened.catalog.createDatabase(name)));
  const [a, b, c] = [scope.databaseId, ...others.map(({ database }) => database.id)] as [number, number, number];
  for (const databaseId of [a, b, c]) await save(`ship of ${databaseId}`, { databaseId });
  const stateOf = (indexes: Indexes) => [a, b, c].map((id) => indexes.stateOf(id).state);
  const roomy = indexesOf();
  await roomy.prepare([a, b, c]);
  expect(stateOf(roomy)).toEqual(["ready", "ready", "ready"]);
  const one = roomy.sizeBytes / 3;
  const narrow = indexesOf(one * 1.5);
  await narrow.prepare([a, b, c]);
  expect(stateOf(narrow)).toEqual(["ready", "none", "none"]);
  expect(await found(narrow, "ship", c)).toEqual([`ship of ${c}`]);
  expect(stateOf(narrow)).toEqual(["none", "none", "ready"]);
  // What was dropped comes back, and one is kept however large it is.
  expect(await found(indexesOf(1), "ship", a)).toEqual([`ship of ${a}`]);
  expect(await found(narrow, "ship", a)).toEqual([`ship of ${a}`]);
});
