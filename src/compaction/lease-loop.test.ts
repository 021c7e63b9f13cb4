import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { aFlush, anExtent } from "../catalog/contract-fixtures.test-kit.ts";
import { LeaseLost } from "../catalog/refusals.ts";
import { ManualClock } from "../core/clock.ts";
import { silentLog } from "../core/log.ts";
import { createMetrics, type Metrics } from "../core/metrics.ts";
import type { Service } from "../core/lifecycle.ts";
import { seededRandom } from "../core/random.ts";
import { DEFAULT_SHAPE } from "../format/types.ts";
import { openDutyWorld, type DutyWorld } from "./duty.test-kit.ts";
import { createLeaseLoop, type DutyTurn, type LeaseLoopOptions } from "../feature/lease-loop.ts";

const TTL_MS = 30_000;
const POLL_MS = 10_000;

let world: DutyWorld;
let running: Service[];

beforeEach(async () => {
  world = await openDutyWorld();
  running = [];
});
afterEach(async () => {
  await Promise.all(running.map((service) => service.stop()));
  await world.close();
});

/** One node: its own clock that moves with the catalog's, its own way to the catalog, and what its duty was given. */
type Node = { service: Service; turns: DutyTurn[]; metrics: Metrics; cut: (isCut: boolean) => void };

async function startNode(holder: string, overrides: Partial<LeaseLoopOptions> = {}): Promise<Node> {
  const turns: DutyTurn[] = [];
  const metrics = createMetrics();
  let isCut = false;
  const service = createLeaseLoop({
    name: "duty",
    holder,
    pollMs: POLL_MS,
    ttlMs: TTL_MS,
    clock: world.clock,
    random: seededRandom(holder.length),
    log: silentLog,
    metrics,
    catalog: {
      acquireLease: (...args) =>
        isCut ? Promise.reject(new Error("no route to the catalog")) : world.catalog.acquireLease(...args),
      releaseLease: (lease) =>
        isCut ? Promise.reject(new Error("no route to the catalog")) : world.catalog.releaseLease(lease),
    },
    duty: async (turn) => void turns.push(turn),
    ...overrides,
  });
  running.push(service);
  await service.run();
  return { service, turns, metrics, cut: (value) => void (isCut = value) };
}

/** Moves the time in small steps, between which the catalog's thread can answer. */
async function pass(ms: number, stepMs = 1_000): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    world.clock.advance(stepMs);
    // Answered after all that was asked before it.
    await world.catalog.databases();
    await world.catalog.releaseLease({ name: "none", holder: "none", fence: 0 });
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

const until = (check: () => void) => vi.waitFor(check, { timeout: 60_000, interval: 2 });

async function runsOf({ metrics }: Node): Promise<Record<string, number>> {
  const { values } = await metrics.dutyRuns.get();
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels["outcome"]), value]));
}

test("of two nodes one does the duty, again and again, under one fence", async () => {
  const first = await startNode("first");
  await until(() => expect(first.turns).toHaveLength(1));
  const second = await startNode("second");
  await pass(10 * POLL_MS);
  expect(first.turns.length).toBeGreaterThanOrEqual(9);
  expect(first.turns.length).toBeLessThanOrEqual(11);
  expect(new Set(first.turns.map(({ lease }) => lease.fence))).toEqual(new Set([1]));
  expect(second.turns).toEqual([]);
  expect((await first.metrics.dutyHeld.get()).values).toMatchObject([{ value: 1 }]);
  expect((await second.metrics.dutyHeld.get()).values).toMatchObject([{ value: 0 }]);
  expect((await first.metrics.dutyFence.get()).values).toMatchObject([{ value: first.turns[0]?.lease.fence }]);
  expect((await first.metrics.dutySucceededAt.get()).values).toMatchObject([{ value: expect.any(Number) }]);
});

test("a node that stops in order gives the lease back, and the other takes over", async () => {
  const first = await startNode("first");
  await until(() => expect(first.turns).toHaveLength(1));
  const second = await startNode("second");
  await first.service.drain();
  await first.service.stop();
  expect(first.turns[0]?.signal.aborted).toBe(true);
  await pass(TTL_MS / 2);
  expect(second.turns[0]?.lease).toMatchObject({ holder: "second", fence: 2 });
  expect((await first.metrics.dutyHeld.get()).values).toMatchObject([{ value: 0 }]);
});

test("a duty that fails is counted and tried again", async () => {
  let runs = 0;
  const node = await startNode("first", {
    duty: async () => {
      if (++runs <= 2) throw new Error("not today");
    },
  });
  await until(() => expect(runs).toBe(1));
  await pass(3 * POLL_MS);
  expect(runs).toBeGreaterThanOrEqual(3);
  expect(await runsOf(node)).toMatchObject({ error: 2, ok: runs - 2 });
});

test("a long duty keeps its lease, until it is cut off; its late writes are refused", async () => {
  const { table } = await world.catalog.createTable({ database: "d", name: "t", columns: DEFAULT_SHAPE });
  const extent = anExtent({ stats: [] });
  await world.catalog.commit([aFlush(table, { extents: [extent] })]);
  const ended = Promise.withResolvers<void>();
  const turns: DutyTurn[] = [];
  const first = await startNode("first", {
    duty: async (turn) => {
      turns.push(turn);
      // It does not obey.
      await ended.promise;
    },
  });
  await until(() => expect(turns).toHaveLength(1));
  const second = await startNode("second");
  await pass(3 * TTL_MS);
  const [turn] = turns;
  if (turn === undefined) throw new Error("the duty has not run");
  expect(turn.signal.aborted).toBe(false);
  expect(second.turns).toEqual([]);

  first.cut(true);
  await pass(TTL_MS);
  expect(turn.signal.reason).toBeInstanceOf(LeaseLost);
  await pass(TTL_MS);
  expect(second.turns[0]?.lease.fence).toBeGreaterThan(turn.lease.fence);
  await expect(world.catalog.endExtents(table.id, [extent.id], turn.lease)).rejects.toBeInstanceOf(LeaseLost);
  expect(await world.catalog.endExtents(table.id, [extent.id], second.turns[0]?.lease)).toHaveLength(1);
  // Not started a second time while the first run goes on, and again once it has ended and the lease is free.
  first.cut(false);
  await second.service.stop();
  await pass(TTL_MS);
  expect(turns).toHaveLength(1);
  ended.resolve();
  await pass(TTL_MS);
  expect(turns.length).toBeGreaterThan(1);
  expect(turns[1]?.lease.fence).toBeGreaterThan(turn.lease.fence + 1);
  expect(await runsOf(first)).toMatchObject({ stopped: 1, ok: turns.length - 1 });
});

test("a node whose clock stood still learns from its renewal that it was replaced", async () => {
  const clock = new ManualClock();
  const first = await startNode("first", { clock, duty: (turn) => aborted(first.turns, turn) });
  await until(() => expect(first.turns).toHaveLength(1));
  const second = await startNode("second");
  await pass(2 * TTL_MS);
  expect(second.turns.length).toBeGreaterThan(0);
  const [turn] = first.turns;
  expect(turn?.signal.aborted).toBe(false);
  clock.advance(TTL_MS / 3);
  await until(() => expect(turn?.signal.reason).toBeInstanceOf(LeaseLost));
});

async function aborted(turns: DutyTurn[], turn: DutyTurn): Promise<void> {
  turns.push(turn);
  await new Promise<void>((resolve) => turn.signal.addEventListener("abort", () => resolve(), { once: true }));
}

test("a duty that hears from the catalog that its lease is lost gives it up", async () => {
  const turns: DutyTurn[] = [];
  const first = await startNode("first", {
    duty: async (turn) => {
      turns.push(turn);
      if (turns.length === 1) throw new LeaseLost(turn.lease.name);
    },
  });
  await until(() => expect(turns).toHaveLength(1));
  expect(turns[0]?.signal.aborted).toBe(true);
  await pass(TTL_MS);
  expect(turns.length).toBeGreaterThan(1);
  expect(await runsOf(first)).toMatchObject({ stopped: 1 });
});

test("draining waits for the duty, which may write until it has ended", async () => {
  const { table } = await world.catalog.createTable({ database: "d", name: "t", columns: DEFAULT_SHAPE });
  const extent = anExtent({ stats: [] });
  await world.catalog.commit([aFlush(table, { extents: [extent] })]);
  let ended = 0;
  const node = await startNode("first", {
    duty: async (turn) => {
      await aborted(node.turns, turn);
      ended = (await world.catalog.endExtents(table.id, [extent.id], turn.lease)).length;
    },
  });
  await until(() => expect(node.turns).toHaveLength(1));
  await node.service.drain();
  expect(ended).toBe(1);
  expect(node.turns[0]?.signal.reason).toMatchObject({ code: "unavailable" });
  expect(await world.catalog.acquireLease("duty", "somebody", 1)).toMatchObject({ fence: 2 });
});

test("a catalog that does not answer keeps nobody from stopping", async () => {
  const hangs = { acquireLease: () => new Promise<never>(() => {}), releaseLease: () => Promise.resolve() };
  const node = await startNode("first", { catalog: hangs });
  await node.service.stop();
  expect(node.turns).toEqual([]);
});

test("a catalog out of reach is asked again", async () => {
  let asked = 0;
  const node = await startNode("first", {
    catalog: {
      acquireLease: (...args) =>
        ++asked < 3 ? Promise.reject(new Error("no route")) : world.catalog.acquireLease(...args),
      releaseLease: (lease) => world.catalog.releaseLease(lease),
    },
  });
  await pass(2 * TTL_MS);
  expect(node.turns.length).toBeGreaterThan(0);
});

test("a duty that is idle rests for longer, until there is something to do or a run fails", async () => {
  let isIdle = false;
  let fails = false;
  const idleForMs: number[] = [];
  const runsAtMs: number[] = [];
  await startNode("first", {
    pollMs: 1_000,
    idlePollMs: (idleMs) => {
      idleForMs.push(idleMs);
      return idleMs < 4_000 ? 2_000 : 8_000;
    },
    duty: async () => {
      runsAtMs.push(world.clock.monotonicMs());
      if (fails) throw new Error("not today");
      return { isIdle };
    },
  });
  await until(() => expect(runsAtMs).toHaveLength(1));
  const [startMs = 0] = runsAtMs;
  const runsIn = async (ms: number) => {
    runsAtMs.length = 0;
    await pass(ms);
    return runsAtMs.map((atMs) => atMs - startMs);
  };
  expect(await runsIn(3_000)).toEqual([1_000, 2_000, 3_000]);
  expect(idleForMs).toEqual([]);
  isIdle = true;
  expect(await runsIn(25_000)).toEqual([4_000, 6_000, 8_000, 16_000, 24_000]);
  expect(idleForMs).toEqual([0, 2_000, 4_000, 12_000, 20_000]);
  isIdle = false;
  expect(await runsIn(6_000)).toEqual([32_000, 33_000, 34_000]);
  isIdle = true;
  expect(await runsIn(3_000)).toEqual([35_000, 37_000]);
  // What is not known to be idle is not idle.
  fails = true;
  expect(await runsIn(4_000)).toEqual([39_000, 40_000, 41_000]);
  fails = false;
  idleForMs.length = 0;
  expect(await runsIn(1_000)).toEqual([42_000]);
  expect(idleForMs).toEqual([0]);
});

test("a duty that is woken runs at once, also when it was at work by then, and otherwise waits as ever", async () => {
  const listeners = new Set<() => void>();
  const wakes = (wake: () => void) => {
    listeners.add(wake);
    return () => void listeners.delete(wake);
  };
  const wakeAll = () => listeners.forEach((wake) => wake());
  let isWorking: Promise<void> | undefined;
  const turns: DutyTurn[] = [];
  const duty = async (turn: DutyTurn) => {
    turns.push(turn);
    await isWorking;
  };
  const { service } = await startNode("a", { wakes, duty });
  await until(() => expect(turns).toHaveLength(1));
  await pass(POLL_MS / 2);
  expect(turns).toHaveLength(1);
  let finish = () => {};
  isWorking = new Promise((resolve) => (finish = resolve));
  wakeAll();
  await until(() => expect(turns).toHaveLength(2));
  wakeAll();
  isWorking = undefined;
  finish();
  await until(() => expect(turns).toHaveLength(3));
  await pass(POLL_MS / 2);
  expect(turns).toHaveLength(3);
  await service.stop();
  expect(listeners.size).toBe(0);
});
