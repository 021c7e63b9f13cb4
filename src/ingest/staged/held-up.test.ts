import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sleep, systemClock, type Clock } from "../../core/clock.ts";
import { createMetrics } from "../../core/metrics.ts";
import { systemRandom } from "../../core/random.ts";
import { uuidV7Source } from "../../core/ids.ts";
import type { ObjectStore } from "../../io/objectstore/objectstore.ts";
import { seal } from "../seal-thread.ts";
import { send, StagedWorld, withCalls, type NodeOptions } from "./staged-world.test-kit.ts";
import { sweepKeys } from "./sweep.ts";

/**
 * Nodes that stand still with keyed requests in hand for longer than a key lives, while their clients send again
 * elsewhere: what they do on waking is stored by none.
 */
const HOUR_MS = 3_600_000;
const KEY = { idempotencyKey: "k" };
const HELD_UP = { code: "unavailable", message: expect.stringContaining("nothing was stored") };

let world: StagedWorld;

beforeEach(async () => {
  world = await StagedWorld.open();
});

afterEach(async () => {
  await world.catalog.verify();
  await world.close();
});

/** A node of the catalog's time, or one whose clock is that far from it. */
function timed(aheadMs = 0): Pick<NodeOptions, "clock" | "newId"> {
  const clock: Clock = {
    ...systemClock,
    nowMs: () => world.clock.nowMs() + aheadMs,
    monotonicMs: () => world.clock.monotonicMs(),
  };
  return { clock, newId: uuidV7Source(clock, systemRandom) };
}

async function passTwoDays(): Promise<void> {
  world.clock.advance(48 * HOUR_MS);
  const { catalog, store } = world;
  await sweepKeys({ catalog, store, keyPrefix: "engine", metrics: createMetrics() });
}

/** A step that does not go on until it is told to; `reached` resolves when it has begun. */
function gate(): { pass: () => Promise<void>; reached: Promise<void>; open: () => void } {
  const [reached, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const pass = (): Promise<void> => {
    reached.resolve();
    return opened.promise;
  };
  return { pass, reached: reached.promise, open: () => opened.resolve() };
}

/** The store as one node has it. */
function storeWith(calls: Partial<ObjectStore>): ObjectStore {
  return new Proxy<ObjectStore>(world.store, {
    get: (target, name) => Reflect.get(calls, name) ?? (Reflect.get(target, name) as () => unknown).bind(target),
  });
}

describe.each(["sync", "staged"] as const)("in %s mode", (mode) => {
  test("a flush that was held up while it was sealed is refused, and the retry is stored once", async () => {
    await send(world.sync(), '{"body":"seed"}');
    const { pass, reached, open } = gate();
    const slow = world[mode]({ ...timed(), seal: async (task) => (await pass(), seal(task)) });
    const held = send(slow, '{"body":"held"}', KEY);
    await reached;
    await send(world.sync(), '{"body":"retry"}', KEY);
    await passTwoDays();
    open();
    await expect(held).rejects.toMatchObject(HELD_UP);
    await world.commit();
    expect(await world.values("body")).toEqual(["retry", "seed"]);
    expect(await world.keys("engine/_")).toEqual([]);
    // The node takes requests again, also of that key, which is a new one by now.
    expect(await send(slow, '{"body":"later"}', KEY)).toMatchObject({ replayed: false });
    await world.commit();
    expect(await world.values("body")).toEqual(["later", "retry", "seed"]);
  });

  test("a request that was held up before its key was looked up is refused", async () => {
    await send(world.sync(), '{"body":"retry"}', KEY);
    const { pass, reached, open } = gate();
    const catalog = withCalls(world.catalog, {
      lookUpKey: async (tableId, key) => (await pass(), world.catalog.lookUpKey(tableId, key)),
    });
    const held = send(world[mode]({ ...timed(), catalog }), '{"body":"held"}', KEY);
    await reached;
    await passTwoDays();
    open();
    await expect(held).rejects.toMatchObject(HELD_UP);
    expect(await world.values("body")).toEqual(["retry"]);
  });
});

test("of a flush that was held up in sync mode, neighbours without a key and with a young one are stored", async () => {
  await send(world.sync(), '{"body":"seed"}');
  const { pass, reached, open } = gate();
  // While one is sealed the others gather, and share a flush.
  const node = world.sync({ ...timed(), seal: async (task) => (await pass(), seal(task)) });
  const occupying = send(node, '{"body":"first"}');
  await reached;
  const held = send(node, '{"body":"held"}', KEY);
  const unkeyed = send(node, '{"body":"unkeyed"}');
  await sleep(systemClock, 10);
  world.clock.advance(48 * HOUR_MS);
  const young = send(node, '{"body":"young"}', { idempotencyKey: "young" });
  await sleep(systemClock, 10);
  open();
  await expect(held).rejects.toMatchObject(HELD_UP);
  expect((await Promise.all([unkeyed, young])).map(({ rows, replayed }) => [rows, replayed])).toEqual([
    [1, false],
    [1, false],
  ]);
  await occupying;
  expect(await world.values("body")).toEqual(["first", "seed", "unkeyed", "young"]);
  expect(await send(world.sync(), "", { idempotencyKey: "young" })).toMatchObject({ replayed: true });
});

describe("a staged object that reaches the store late", () => {
  // Objects have the time of the machine: by the clock of this node they come two days after their requests.
  const late = (options: NodeOptions = {}) => world.staged({ ...timed(-48 * HOUR_MS), ...options });

  test("is not acknowledged when it has a key, and does not stay", async () => {
    await send(late(), '{"body":"seed"}');
    await expect(send(late(), '{"body":"x"}', KEY)).rejects.toMatchObject({
      code: "ingest_failed",
      message: expect.stringContaining("whether it took effect is not known"),
    });
    await world.commit();
    expect(await world.values("body")).toEqual(["seed"]);
    expect(await world.keys("engine/_")).toEqual([]);
  });

  test("is set aside by a committer that is faster than its node, and not acknowledged then either", async () => {
    await send(world.sync(), '{"body":"seed"}');
    const store = storeWith({
      put: async (key, bytes) => {
        await world.store.put(key, bytes);
        await world.commit();
      },
    });
    const metrics = createMetrics();
    await expect(send(late({ store, metrics }), '{"body":"x"}', KEY)).rejects.toMatchObject({ code: "ingest_failed" });
    expect(await world.values("body")).toEqual(["seed"]);
    const [object, note = ""] = await world.keys("engine/_damaged/");
    expect(note).toBe(`${object}.reason`);
    const text = Buffer.from(await world.inner.get(note)).toString();
    expect(text).toContain("it reached the store 48 hours after its requests came: none was acknowledged");
  });

  test("is acknowledged when it was committed before its node could look, for then it was not late", async () => {
    await send(world.sync(), '{"body":"seed"}');
    const store = storeWith({
      put: async (key, bytes) => {
        await world.store.put(key, bytes);
        await world.commit();
      },
    });
    expect(await send(world.staged({ store }), '{"body":"x"}', KEY)).toMatchObject({ staged: true });
    expect(await world.values("body")).toEqual(["seed", "x"]);
  });

  test("is as good as any other when none of its requests has a key", async () => {
    expect(await send(late(), '{"body":"x"}')).toMatchObject({ staged: true });
    await world.commit();
    expect(await world.values("body")).toEqual(["x"]);
  });
});

test("a node whose clock is hours off stages keyed requests all the same", async () => {
  for (const [i, aheadMs] of [-11 * HOUR_MS, 4 * 60_000].entries()) {
    await send(world.staged(timed(aheadMs)), `{"body":"${i}"}`, { idempotencyKey: `k${i}` });
  }
  await world.commit(timed());
  expect(await world.values("body")).toEqual(["0", "1"]);
});

test("a staged write whose node cannot see what became of it is not acknowledged", async () => {
  await send(world.sync(), '{"body":"seed"}');
  world.store.script({ operation: "head", fault: { kind: "fail_before" } });
  await expect(send(world.staged(), '{"body":"x"}', KEY)).rejects.toMatchObject({ code: "ingest_failed" });
  await world.commit();
  expect(await world.values("body")).toEqual(["seed"]);
  // Nobody asks for a write that has no key.
  expect(await send(world.staged(), '{"body":"y"}')).toMatchObject({ staged: true });
});
