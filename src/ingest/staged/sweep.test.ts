import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { createMetrics } from "../../core/metrics.ts";
import { systemRandom } from "../../core/random.ts";
import { send, StagedWorld, withCalls, type NodeOptions } from "./staged-world.test-kit.ts";
import { sweepKeys, type SweepPorts } from "./sweep.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const KEY = { idempotencyKey: "k" };

let world: StagedWorld;

beforeEach(async () => {
  world = await StagedWorld.open();
});
afterEach(async () => {
  await world.catalog.verify();
  await world.close();
});

/** A node of the catalog's time, or one whose clock is ahead of it. */
function timed(aheadMs = 0): Pick<NodeOptions, "clock" | "newId"> {
  const clock = { ...systemClock, nowMs: () => world.clock.nowMs() + aheadMs };
  return { clock, newId: uuidV7Source(clock, systemRandom) };
}

/** A staged node that cannot ask the catalog for keys: it must accept what comes. */
function cutOff(node: string, aheadMs = 0) {
  const away = () => Promise.reject(new EngineError("unavailable", "the catalog is away"));
  return world.staged({ node, ...timed(aheadMs), catalog: withCalls(world.catalog, { lookUpKey: away }) });
}

async function sweep(ports: Partial<SweepPorts> = {}): Promise<void> {
  await sweepKeys({
    catalog: world.catalog,
    store: world.store,
    keyPrefix: "engine",
    metrics: createMetrics(),
    ...ports,
  });
}

/** Lets time go by, with a sweep every hour. */
async function pass(ms: number): Promise<void> {
  for (let leftMs = ms; leftMs > 0; leftMs -= HOUR_MS) {
    world.clock.advance(Math.min(leftMs, HOUR_MS));
    await sweep();
  }
}

async function isRemembered(key = "k"): Promise<boolean> {
  const table = await world.catalog.table("default", "t");
  // As of an acceptance at the start of time every entry counts that is there.
  const flush = { tableId: table?.id ?? 0, schemaVersion: 1, newColumns: [], extents: [], acceptedAtMs: 0 };
  const [outcome] = await world.catalog.commit([
    { ...flush, ledger: [{ key, extentCount: 0, rows: 0, sizeBytes: 0 }] },
  ]);
  return outcome?.kind === "key_conflict";
}

describe("a retry that waits for the committer for longer than a key lives", () => {
  test.each(["sync", "staged"] as const)("is left out after a first write of %s mode", async (mode) => {
    const first = world[mode](timed());
    await send(first, '{"body":"first"}', KEY);
    if (mode === "staged") await world.commit(timed());
    await pass(HOUR_MS);
    const retry = await send(cutOff("other"), '{"body":"retry"}\n{"body":"retry"}', KEY);
    expect(retry).toMatchObject({ staged: true, replayed: false, rows: 2 });
    await send(cutOff("other"), '{"body":"beside it"}');
    await pass(29 * HOUR_MS);
    await world.commit(timed());
    expect(await world.values("body")).toEqual(["beside it", "first"]);
    expect(await world.keys("engine/_staged/")).toEqual([]);
    // With nothing staged the entry goes.
    await sweep();
    expect(await isRemembered()).toBe(false);
  });

  test("is left out when both waited, and one of them twice as long", async () => {
    await send(world.staged({ node: "one", ...timed() }), '{"body":"first"}', KEY);
    world.clock.advance(HOUR_MS);
    await send(cutOff("two"), '{"body":"retry"}', KEY);
    await pass(29 * HOUR_MS);
    world.store.script({ operation: "get", keyHolds: "_staged/two/", fault: { kind: "fail_before" } });
    await world.commit(timed());
    expect(await world.values("body")).toEqual(["first"]);
    // From now on the first one's entry lives for a day, and then for as long as the other waits.
    await pass(40 * HOUR_MS);
    expect(await world.keys("engine/_staged/")).toHaveLength(1);
    await world.commit(timed());
    expect(await world.values("body")).toEqual(["first"]);
    expect(await world.keys("engine/_staged/")).toEqual([]);
  });

  test("is left out when its node's clock was minutes ahead", async () => {
    await send(world.sync(), '{"body":"first"}', KEY);
    await pass(DAY_MS - MINUTE_MS);
    await send(cutOff("hasty", 4 * MINUTE_MS), '{"body":"retry"}', KEY);
    await pass(30 * HOUR_MS);
    await world.commit(timed());
    expect(await world.values("body")).toEqual(["first"]);
  });

  test("makes way for one of sync mode that came after it and was committed before it", async () => {
    await send(cutOff("slow"), '{"body":"staged"}', KEY);
    await pass(23 * HOUR_MS);
    await send(world.sync(), '{"body":"sync"}', KEY);
    await pass(30 * HOUR_MS);
    await world.commit(timed());
    expect(await world.values("body")).toEqual(["sync"]);
  });
});

test("a key that has ended when a write is accepted is free, however late that is committed", async () => {
  await send(world.sync(), '{"body":"first"}', KEY);
  await pass(DAY_MS + 6 * MINUTE_MS);
  await send(world.staged(timed()), '{"body":"second"}', KEY);
  await pass(HOUR_MS);
  await world.commit(timed());
  expect(await world.values("body")).toEqual(["first", "second"]);
});

test("the key of a write that waited lives for a day from the commit on", async () => {
  await send(world.staged(timed()), '{"body":"first"}', KEY);
  await pass(30 * HOUR_MS);
  await world.commit(timed());
  await pass(DAY_MS - 1);
  expect(await send(world.sync(), '{"body":"retry"}', KEY)).toMatchObject({ replayed: true, rows: 1 });
  world.clock.advance(1);
  expect(await send(world.sync(), '{"body":"second"}', KEY)).toMatchObject({ replayed: false });
});

test("an entry outlives its time by what an acceptance may be late in the store", async () => {
  await send(world.sync(), "{}", KEY);
  await pass(DAY_MS + HOUR_MS - 1);
  const retry = cutOff("late");
  expect(await isRemembered()).toBe(true);
  world.clock.advance(1);
  await send(retry, "{}");
  await sweep();
  expect(await isRemembered()).toBe(false);
});

describe("ids of committed objects", () => {
  const idsOf = async () => (await world.keys("engine/_staged/")).map((key) => key.split("/").at(-1) ?? "");

  test("are remembered for eight days of the catalog's time, wrong clocks of nodes or not", async () => {
    await send(world.staged(), '{"body":"first"}');
    const [key = ""] = await world.keys("engine/_staged/");
    const ids = await idsOf();
    const bytes = await world.inner.get(key);
    await world.commit(timed(300 * DAY_MS));
    world.clock.advance(8 * DAY_MS);
    await sweep();
    expect(await world.catalog.committedStaged(ids)).toEqual(ids);
    // A late write brings it back.
    await world.inner.put(key, bytes);
    await world.commit(timed(300 * DAY_MS));
    expect(await world.values("body")).toEqual(["first"]);
    world.clock.advance(2 * HOUR_MS);
    await sweep();
    expect(await world.catalog.committedStaged(ids)).toEqual([]);
  });

  test("are remembered for as long as the object is there", async () => {
    await send(world.staged(), '{"body":"first"}');
    const ids = await idsOf();
    world.store.script({ operation: "delete", keyHolds: "_staged", fault: { kind: "fail_before" } });
    await world.commit();
    world.clock.advance(100 * DAY_MS);
    await sweep();
    expect(await world.catalog.committedStaged(ids)).toEqual(ids);
    await world.commit();
    expect(await world.values("body")).toEqual(["first"]);
    expect(await idsOf()).toEqual([]);
  });
});

test("it says what it has swept, and when it failed", async () => {
  const metrics = createMetrics();
  await send(world.sync(), "{}", KEY);
  world.clock.advance(2 * DAY_MS);
  world.store.script({ operation: "list", fault: { kind: "fail_before" } });
  await expect(sweep({ metrics })).rejects.toThrow("injected");
  expect(await isRemembered()).toBe(true);
  await sweep({ metrics });
  const text = await metrics.registry.metrics();
  expect(text).toMatch(/^engine_ledger_swept_total 1$/m);
  expect(text).toMatch(/^engine_ledger_sweep_failures_total 1$/m);
  expect(text).toContain(`engine_ledger_last_sweep_timestamp_seconds ${world.clock.nowMs() / 1000}`);
});
