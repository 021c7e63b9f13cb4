import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Lease } from "../../catalog/catalog.ts";
import { LeaseLost } from "../../catalog/refusals.ts";
import { ManualClock, systemClock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { createMetrics } from "../../core/metrics.ts";
import { decodeContainer, encodeContainer } from "./container.ts";
import { seal } from "../seal-thread.ts";
import { send, StagedWorld, withCalls } from "./staged-world.test-kit.ts";

let world: StagedWorld;
const never = new AbortController().signal;

beforeEach(async () => {
  world = await StagedWorld.open();
});

afterEach(async () => {
  // Whatever a test does, the catalog is sound, and every live extent has its object.
  await world.catalog.verify();
  await world.rows();
  await world.close();
});

const stagedKeys = () => world.keys("engine/_staged/");
const extentKeys = () => world.keys("engine/default/");

describe("a round", () => {
  test("commits objects of many nodes and tables in one snapshot, and new columns in the order of the writes", async () => {
    const nodes = [1, 2, 3].map((i) => world.staged({ node: `node-${i}` }));
    for (const [i, node] of nodes.entries()) {
      await send(node, `{"body":"${i}","X${i}":1}\n{"x":${i}}`);
      await send(node, `{"body":"u${i}"}`, { table: "u" });
    }
    const before = await world.catalog.head();
    await world.commit();
    expect((await world.catalog.head()).id).toBe(before.id + 1);
    expect(await world.values("body")).toEqual(["0", "1", "2", "NULL", "NULL", "NULL"]);
    expect(await world.values("body", "u")).toEqual(["u0", "u1", "u2"]);
    const table = await world.catalog.table("default", "t");
    expect(table?.columns.slice(4).map(({ name }) => name)).toEqual(["X0", "x", "X1", "X2"]);
    expect(await stagedKeys()).toEqual([]);
  });

  test("keeps snapshots and memory bounded", async () => {
    const node = world.staged();
    for (let i = 0; i < 10; i++) await send(node, `{"body":"${i}"}`);
    const before = await world.catalog.head();
    await world.commit({ maxExtents: 4 });
    expect((await world.catalog.head()).id).toBe(before.id + 3);
    for (let i = 0; i < 3; i++) await send(node, `{"body":"${i}"}`);
    await world.commit({ maxBytes: 1 });
    expect((await world.catalog.head()).id).toBe(before.id + 6);
    expect(await world.rows()).toHaveLength(13);
  });

  test("commits nothing when its signal is aborted, and the next one commits all", async () => {
    await send(world.staged(), '{"body":"x"}');
    await world.committer().commitRound(undefined, AbortSignal.abort());
    expect(await world.rows()).toEqual([]);
    await world.commit();
    expect(await world.values("body")).toEqual(["x"]);
  });

  test("an id that appears late, older than all that is committed, is not passed over", async () => {
    await send(world.staged(), '{"body":"early"}');
    const [key = ""] = await stagedKeys();
    const bytes = await world.inner.get(key);
    await world.inner.delete([key]);
    await send(world.staged(), '{"body":"late"}');
    await world.commit();
    await world.inner.put(key, bytes);
    await world.commit();
    expect(await world.values("body")).toEqual(["early", "late"]);
  });

  test("leaves an object of a newer version where it is, for a committer of that version", async () => {
    await send(world.staged(), '{"body":"x"}');
    const [key = ""] = await stagedKeys();
    const bytes = await world.store.get(key);
    const { manifest, parts } = decodeContainer(bytes);
    await world.store.put(key, encodeContainer({ manifest: { ...(manifest as object), more: 1 }, parts }));
    await world.commit();
    expect([await stagedKeys(), await world.keys("engine/_damaged/")]).toEqual([[key], []]);
    await world.store.put(key, bytes);
    await world.commit();
    expect(await world.values("body")).toEqual(["x"]);
  });

  test("writes parquet where that is asked for", async () => {
    await send(world.staged({ format: "parquet" }), '{"body":"x"}');
    await world.commit({ format: "parquet" });
    const table = await world.catalog.table("default", "t");
    const extents = await world.catalog.extents(table?.id ?? 0, (await world.catalog.head()).id);
    expect(extents.map(({ format, rows }) => [format, rows])).toEqual([["parquet", 1]]);
    // What comes after the test reads tlm.
    await world.catalog.endExtents(table?.id ?? 0, extents.map(({ id }) => id)); // oxfmt-ignore
  });

  test("a table that the catalog has lost is made again, with all that its rows have", async () => {
    await send(world.staged(), '{"body":"x","props":{"a":1}}');
    const other = await StagedWorld.open();
    try {
      for (const key of await stagedKeys()) await other.inner.put(key, await world.inner.get(key));
      await other.commit();
      expect(await other.rows()).toMatchObject([{ body: "x", props: '{"a":1}' }]);
    } finally {
      await other.close();
    }
  });
});

describe("exactly once", () => {
  test("an object that comes back after its deletion changes nothing, as long as any write can be retried", async () => {
    await send(world.staged(), '{"body":"x"}');
    const [key = ""] = await stagedKeys();
    const bytes = await world.inner.get(key);
    await world.commit();
    const { id } = await world.catalog.head();
    for (const _ of [1, 2]) {
      await world.inner.put(key, bytes);
      await world.commit();
      expect(await stagedKeys()).toEqual([]);
    }
    world.clock.advance(7 * 24 * 3_600_000);
    await world.inner.put(key, bytes);
    await world.commit({ clock: world.clock });
    expect(await world.values("body")).toEqual(["x"]);
    expect((await world.catalog.head()).id).toBe(id);
    expect(await extentKeys()).toHaveLength(1);
  });

  test("one that is committed while this committer prepares it is not committed twice", async () => {
    await send(world.staged(), '{"body":"x","new":1}');
    let other = Promise.resolve();
    await world.commit({
      seal: async (task) => {
        const sealed = await seal(task);
        other = world.commit();
        await other;
        return sealed;
      },
    });
    expect(await world.values("body")).toEqual(["x"]);
    expect(await extentKeys()).toHaveLength(1);
  });

  test("who has lost the lease commits nothing, deletes nothing of the other's, and says so", async () => {
    const lease = (holder: string) => world.catalog.acquireLease("committer", holder, 1_000) as Promise<Lease>;
    const [first, reached] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const slow = withCalls(world.catalog, {
      commit: async (flushes, own) => {
        reached.resolve();
        await first.promise;
        return world.catalog.commit(flushes, own);
      },
    });
    await send(world.staged(), '{"body":"x"}');
    const late = world.committer({ catalog: slow }).commitRound(await lease("a"), never);
    await reached.promise;
    world.clock.advance(2_000);
    await world.committer().commitRound(await lease("b"), never);
    await send(world.staged(), '{"body":"y"}');
    first.resolve();
    await expect(late).rejects.toThrow(LeaseLost);
    expect(await world.values("body")).toEqual(["x"]);
    expect(await extentKeys()).toHaveLength(1);
    await world.committer().commitRound(await lease("b"), never);
    expect(await world.values("body")).toEqual(["x", "y"]);
  });
});

describe("idempotency keys", () => {
  const body = (name: string) => `{"body":"${name}"}\n{"body":"${name}"}`;

  test.each([
    ["sealed rows", ""],
    ["a body as it came", ',"new":1'],
  ])("of a request that somebody else committed: %s are left out, and only those", async (_, more) => {
    // Without a wait for the ledger they share a flush.
    const node = world.staged({
      catalog: withCalls(world.catalog, { lookUpKey: async () => ({ entry: undefined, atMs: 0 }) }),
    });
    await send(node, "{}");
    await world.commit();
    await Promise.all([
      send(node, body("neighbour 1").replaceAll("}", `${more}}`), { idempotencyKey: "one more" }),
      send(node, body("loser").replaceAll("}", `${more}}`), { idempotencyKey: "k" }),
      send(node, body("neighbour 2").replaceAll("}", `${more}}`), { idempotencyKey: "other" }),
    ]);
    expect(await stagedKeys()).toHaveLength(1);
    const winner = await send(world.sync(), body("winner"), { idempotencyKey: "k" });
    await world.commit();
    const twice = (name: string) => [name, name];
    expect(await world.values("body")).toEqual([
      ...["neighbour 1", "neighbour 2"].flatMap(twice),
      "NULL",
      ...twice("winner"),
    ]);
    const table = await world.catalog.table("default", "t");
    expect((await world.catalog.lookUpKey(table?.id ?? 0, "k")).entry).toMatchObject({ snapshotId: winner.snapshotId });
    expect((await world.catalog.lookUpKey(table?.id ?? 0, "other")).entry).toMatchObject({ rows: 2, extentCount: 1 });
    expect(await stagedKeys()).toEqual([]);
    expect(await extentKeys()).toHaveLength(3);
  });

  test("of two nodes: the first in order wins, and an object of which nothing is left is recorded all the same", async () => {
    await send(world.staged({ node: "node-1" }), body("first"), { idempotencyKey: "k" });
    await send(world.staged({ node: "node-2" }), body("second"), { idempotencyKey: "k" });
    const kept = await Promise.all((await stagedKeys()).map(async (key) => [key, await world.inner.get(key)] as const));
    await world.commit();
    expect(await world.values("body")).toEqual(["first", "first"]);
    for (const [key, bytes] of kept) await world.inner.put(key, bytes);
    const ids = kept.map(([key]) => key.split("/").at(-1) ?? "");
    expect((await world.catalog.committedStaged(ids)).toSorted()).toEqual(ids.toSorted());
    await world.commit();
    expect(await world.values("body")).toEqual(["first", "first"]);
  });

  test("a staged request wins over a later one of sync mode", async () => {
    await send(world.staged(), body("staged"), { idempotencyKey: "k" });
    await world.commit();
    expect(await send(world.sync(), body("sync"), { idempotencyKey: "k" })).toMatchObject({ replayed: true, rows: 2 });
    expect(await world.values("body")).toEqual(["staged", "staged"]);
  });
});

describe("a schema that moves between the acknowledgement and the commit", () => {
  const typed = (name: string, kind: "long" | "bool") => [{ name, type: { kind } }];

  test("refuses nothing: values land in the columns as they are then, and in props where they do not fit", async () => {
    const node = world.staged();
    // Staged and not committed yet: to the catalog the table is empty, so that a vector may come.
    await send(node, '{"body":"first"}');
    const table = await world.catalog.table("default", "t");
    await send(node, '{"n":9007199254740993,"v":[1,2]}\n{"n":"no number","v":[1]}\n{"body":"none"}');
    await world.catalog.addColumns(table?.id ?? 0, [
      ...typed("n", "long"),
      { name: "v", type: { kind: "vector", dimensions: 2 } },
    ]);
    await world.commit();
    const rows = (await world.rows()).map(({ at: _at, ...row }) => row);
    expect(rows).toHaveLength(4);
    expect(rows).toEqual(
      expect.arrayContaining([
        { body: "first" },
        { n: "9007199254740993", v: "1,2" },
        { props: '{"n":"no number","v":[1]}' },
        { body: "none" },
      ]),
    );
  });

  test("is met by sealing again when it moves during the commit", async () => {
    const node = world.staged();
    await send(node, '{"body":"first"}');
    await world.commit();
    await send(node, '{"n":1}');
    let seals = 0;
    await world.commit({
      seal: async (task) => {
        const sealed = await seal(task);
        const table = await world.catalog.table("default", "t");
        if (++seals === 1) await world.catalog.addColumns(table?.id ?? 0, typed("n", "bool"));
        return sealed;
      },
    });
    expect(seals).toBe(2);
    expect(await world.values("props")).toEqual(['{"n":1}', "NULL"]);
    expect(await extentKeys()).toHaveLength(2);
  });

  test("a table that has lost its props gets one when a value needs it", async () => {
    await send(world.staged(), '{"n":"no number"}');
    const other = await StagedWorld.open();
    try {
      const columns = [{ name: "at", type: { kind: "timestamp" as const } }, ...typed("n", "long")];
      await other.catalog.createTable({ database: "default", name: "t", columns });
      for (const key of await stagedKeys()) await other.inner.put(key, await world.inner.get(key));
      await other.commit();
      expect(await other.values("props")).toEqual(['{"n":"no number"}']);
    } finally {
      await other.close();
    }
  });
});

test("metrics tell what waits, for how long, and how fresh the rows are", async () => {
  const metrics = createMetrics();
  const clock = new ManualClock(systemClock.nowMs());
  const stop = new AbortController();
  const value = async (name: string) =>
    Number(new RegExp(`^${name} (.*)$`, "m").exec(await metrics.registry.metrics())?.[1]);
  const node = world.staged();
  await Promise.all([send(node, "{}"), send(node, "{}"), send(node, "{}")]);
  clock.advance(30_000);
  const committer = world.committer({ metrics, clock, catalog: withCalls(world.catalog, { commit: () => Promise.reject(new EngineError("unavailable", "away")) }) }); // oxfmt-ignore
  await expect(committer.commitRound(undefined, stop.signal)).rejects.toThrow("away");
  const waiting = (await stagedKeys()).length;
  expect(await value("engine_staged_objects")).toBe(waiting);
  expect(await value("engine_staged_bytes")).toBeGreaterThan(100);
  expect(await value("engine_staged_oldest_age_seconds")).toBeGreaterThan(25);
  // Who leads no more says nothing of what waits.
  stop.abort();
  expect(await value("engine_staged_objects")).toBe(0);
  expect(await value("engine_staged_oldest_age_seconds")).toBe(0);
  const leader = createMetrics();
  await world.commit({ metrics: leader, clock });
  const text = await leader.registry.metrics();
  expect(text).toMatch(/engine_staged_freshness_seconds_count 3\n/);
  expect(text).toMatch(/engine_staged_freshness_seconds_bucket\{le="10"\} 0\n/);
  expect(text).toMatch(/engine_staged_objects 0\n/);
});
