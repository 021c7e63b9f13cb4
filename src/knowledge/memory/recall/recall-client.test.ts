import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import { MIGRATIONS } from "../../../catalog/migrations.test-kit.ts";
import { openSqliteCatalog } from "../../../catalog/sqlite/sqlite.ts";
import { ManualClock, systemClock } from "../../../core/clock.ts";
import { createLog, silentLog } from "../../../core/log.ts";
import { memoryOn } from "../contract.test-kit.ts";
import { ALL_REALMS } from "../realms.ts";
import type { RecallAnswer } from "./answer.ts";
import { RecallClient, startRecallThread } from "./recall-client.ts";

/** The thread of recall, on a catalog that another connection writes. */

let folder: string;
let path: string;
let opened: OpenedCatalog;
let databaseId: number;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-recall-"));
  path = join(folder, "catalog.db");
  const options = { path, clock: systemClock, log: silentLog, migrations: MIGRATIONS, mode: "server" } as const;
  const catalog = await openSqliteCatalog(options);
  opened = { catalog, clock: new ManualClock(Date.now()), close: () => catalog.close() };
  const memory = memoryOn(opened);
  const scope = await memory.scope({ subject: "a", kind: "session", role: "write", databases: undefined }, "default");
  ({ databaseId } = scope);
  await memory.saveNode(scope, { content: "The ship is red" });
});
afterAll(async () => {
  await opened.close();
  await rm(folder, { recursive: true });
});

function clientOf(at: string) {
  const threads: Worker[] = [];
  const lines: string[] = [];
  const client = new RecallClient({
    source: { catalog: { kind: "sqlite", path: at }, acquireTimeoutMs: 1_000 },
    options: { ppr: false, classDecay: false },
    clock: systemClock,
    log: createLog("info", { write: (line) => void lines.push(line) }),
    startThread: (data) => {
      const worker = startRecallThread(data);
      threads.push(worker);
      return worker;
    },
  });
  const found = async (query: string): Promise<string[]> => {
    const question = { query, realms: [], tags: [], includeInvalidated: false, limit: 5, expandHops: 1 };
    const unset = { memoryType: undefined, importanceMin: undefined, asOfUs: undefined, knownAtUs: undefined };
    const { json } = await client.recall(databaseId, { question: { ...question, ...unset }, rights: ALL_REALMS });
    return (JSON.parse(json) as RecallAnswer).memories.map(({ content }) => content);
  };
  return { client, threads, lines, found };
}

test("a thread that dies is started again, and who waited for it is told to come back", async () => {
  const { client, threads, lines, found } = clientOf(path);
  expect(await client.stateOf(databaseId)).toMatchObject({ state: "none" });
  expect([threads.length, client.indexBytes]).toEqual([0, undefined]);
  expect(await found("ship")).toEqual(["The ship is red"]);
  expect(await client.stateOf(databaseId)).toMatchObject({ state: "ready" });

  const ending = threads[0]?.terminate();
  const asked = Promise.allSettled(Array.from({ length: 5 }, () => found("ship")));
  expect(client.waiting).toBe(5);
  await ending;
  const lost = { status: "rejected", reason: { code: "unavailable", details: { headers: { "Retry-After": "1" } } } };
  expect(await asked).toMatchObject(Array.from({ length: 5 }, () => lost));
  expect([client.waiting, client.indexBytes]).toEqual([0, undefined]);
  expect(lines.join("")).toContain("the recall thread ended");

  expect(await found("ship")).toEqual(["The ship is red"]);
  expect(threads).toHaveLength(2);
  await client.close();
  await expect(found("ship")).rejects.toMatchObject({ code: "unavailable" });
  expect(threads).toHaveLength(2);
});

test("a thread that cannot start says so, and keeps nobody waiting", async () => {
  const { client, lines, found } = clientOf(join(folder, "nothing.db"));
  await expect(found("ship")).rejects.toMatchObject({ code: "unavailable" });
  expect(lines.join("")).toContain("the recall thread failed");
  await client.close();
});
