import { ANONYMOUS } from "../auth/caller.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Catalog, FlushCommit, FlushOutcome } from "../catalog/catalog.ts";
import { openMemoryCatalog } from "../catalog/sqlite/memory.test-kit.ts";
import { systemClock } from "../core/clock.ts";
import { uuidV7Source } from "../core/ids.ts";
import { LIMITS } from "../core/limits.ts";
import { silentLog } from "../core/log.ts";
import { createMetrics } from "../core/metrics.ts";
import { seededRandom, systemRandom } from "../core/random.ts";
import { decodeTlm } from "../format/tlm-decode.ts";
import { FaultyStore } from "../io/objectstore/faulty.test-kit.ts";
import { openFilesystemStore } from "../io/objectstore/filesystem.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { Committer } from "./committer.ts";
import type { IngestRequest, IngestService } from "./ingest.ts";
import type { Sealer } from "./seal.ts";
import { seal } from "./seal-thread.ts";
import { createIngestService } from "./service.ts";

/** The service on a real catalog and a real store, with a hook where something can happen between its steps. */
type World = { catalog: Catalog; store: FaultyStore; inner: ObjectStore };

let folder: string;
let world: World;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-ingest-"));
  const { catalog } = openMemoryCatalog(systemClock);
  const inner = await openFilesystemStore({ root: join(folder, "data"), random: systemRandom, log: silentLog });
  world = { catalog, inner, store: new FaultyStore({ inner, clock: systemClock, random: seededRandom(1) }) };
});

afterEach(async () => {
  await world.catalog.close();
  await rm(folder, { recursive: true });
});

function service(overrides: { catalog?: Catalog; seal?: Sealer; maxInflightBytes?: number } = {}): IngestService {
  const catalog = overrides.catalog ?? world.catalog;
  const metrics = createMetrics();
  const common = { catalog, clock: systemClock, metrics };
  return createIngestService({
    ...common,
    store: world.store,
    committer: new Committer({ ...common, windowMs: 5, maxExtents: 128 }),
    seal: overrides.seal ?? seal,
    sealThreads: 2,
    random: systemRandom,
    newId: uuidV7Source(systemClock, systemRandom),
    log: silentLog,
    format: "tlm",
    keyPrefix: "engine",
    batching: { maxRows: 8_000, maxBytes: 16 * 1024 * 1024, maxAgeMs: 50, disabled: false },
    maxInflightBytes: overrides.maxInflightBytes ?? 256 * 1024 * 1024,
    rate: { perSec: 0, burst: 1 },
  });
}

function send(to: IngestService, body: string, more: Partial<IngestRequest> = {}) {
  const bytes = new TextEncoder().encode(body);
  return to.ingest({
    caller: ANONYMOUS,
    database: "default",
    table: "t",
    autoCreate: true,
    evolve: true,
    expectedBytes: bytes.length,
    readBody: async () => bytes,
    ...more,
  });
}

/** Values of a column over all live extents. */
async function stored(column: string): Promise<string[]> {
  const table = await world.catalog.table("default", "t");
  const extents = await world.catalog.extents(table?.id ?? 0, (await world.catalog.head()).id);
  const values: string[] = [];
  for (const { key } of extents) {
    const { rows, columns } = decodeTlm(await world.inner.get(key));
    const found = columns.find(({ spec }) => spec.name === column);
    values.push(...Array.from({ length: rows }, (_, row) => String(found?.values[row] ?? null)));
  }
  return values.toSorted((a, b) => a.localeCompare(b));
}

async function objects(): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of world.inner.list("")) keys.push(key);
  return keys;
}

describe("a schema that moves while a flush is sealed", () => {
  test("is met by sealing again: the value lands in the column as it then is", async () => {
    await send(service(), '{"body":"first"}');
    let seals = 0;
    const ingest = service({
      seal: async (task) => {
        const sealed = await seal(task);
        const table = await world.catalog.table("default", "t");
        if (++seals === 1) await world.catalog.addColumns(table?.id ?? 0, [{ name: "n", type: { kind: "long" } }]);
        return sealed;
      },
    });
    await send(ingest, '{"n":9007199254740993}');
    expect(seals).toBe(2);
    expect(await stored("n")).toEqual(["9007199254740993", "null"]);
    // The extent of the first attempt is gone: nothing points to it.
    expect(await objects()).toHaveLength(2);
  });

  test("the same column added elsewhere with the same type is no conflict", async () => {
    await send(service(), '{"body":"first"}');
    let seals = 0;
    const ingest = service({
      seal: async (task) => {
        seals++;
        const table = await world.catalog.table("default", "t");
        await world.catalog.addColumns(table?.id ?? 0, [{ name: "N", type: { kind: "string" } }]);
        return seal(task);
      },
    });
    await send(ingest, '{"n":"x"}');
    expect(seals).toBe(1);
    expect((await world.catalog.table("default", "t"))?.columns.map(({ name }) => name)).toContain("N");
  });

  test(
    `a conflict that never ends fails after ${LIMITS.commitAttempts} attempts, and stores nothing`,
    { timeout: 120_000 },
    async () => {
      const outcome: FlushOutcome = { kind: "schema_conflict" };
      const stubborn = new Proxy(world.catalog, {
        get: (target, name) =>
          name === "commit"
            ? async (flushes: readonly FlushCommit[]) => flushes.map(() => outcome)
            : (Reflect.get(target, name) as () => unknown).bind(target),
      });
      await expect(send(service({ catalog: stubborn }), '{"n":1}')).rejects.toMatchObject({ code: "ingest_failed" });
      expect(await objects()).toEqual([]);
    },
  );
});

describe("a key that loses the race at commit", () => {
  test("takes back only its own rows; its neighbours are stored, and it gets the winner's acknowledgement", async () => {
    await send(service(), '{"body":"seed"}');
    const [winner, loser] = [service(), service({ seal: async (task) => (await raced, seal(task)) })];
    // Two nodes on one catalog: neither sees the other's request under way.
    const held = Promise.withResolvers<void>();
    const raced = held.promise;
    const late = [
      send(loser, '{"body":"late"}', { idempotencyKey: "k" }),
      send(loser, '{"body":"neighbour 1"}', { idempotencyKey: "other" }),
      send(loser, '{"body":"neighbour 2"}'),
    ];
    const first = await send(winner, '{"body":"early"}', { idempotencyKey: "k" });
    held.resolve();
    const [second, ...neighbours] = await Promise.all(late);
    expect(second).toEqual({ ...first, replayed: true });
    expect(neighbours.map(({ replayed }) => replayed)).toEqual([false, false]);
    expect(await stored("body")).toEqual(["early", "neighbour 1", "neighbour 2", "seed"]);
    await world.catalog.verify();
  });
});

describe("a store that fails", () => {
  test.each(["fail_before", "fail_after", "tear"] as const)(
    "%s: the request fails, nothing is visible, and a retry is stored once",
    async (kind) => {
      const ingest = service();
      await send(ingest, '{"body":"seed"}');
      world.store.script({ operation: "put", fault: { kind }, times: 1 });
      await expect(send(ingest, '{"body":"x"}', { idempotencyKey: "k" })).rejects.toMatchObject({
        code: "ingest_failed",
        message: expect.stringContaining("nothing was stored"),
      });
      expect(await stored("body")).toEqual(["seed"]);
      const again = await send(ingest, '{"body":"x"}', { idempotencyKey: "k" });
      expect(again.replayed).toBe(false);
      expect(await stored("body")).toEqual(["seed", "x"]);
    },
  );
});

describe("draining", () => {
  test("finishes what was accepted and refuses what comes then", async () => {
    const ingest = service();
    const accepted = Array.from({ length: 5 }, (_, i) => send(ingest, `{"body":"${i}"}`));
    const drained = ingest.drain();
    await expect(send(ingest, '{"body":"late"}')).rejects.toMatchObject({ code: "unavailable" });
    await drained;
    expect((await Promise.all(accepted)).map(({ rows }) => rows)).toEqual([1, 1, 1, 1, 1]);
    expect(await stored("body")).toEqual(["0", "1", "2", "3", "4"]);
  });
});
