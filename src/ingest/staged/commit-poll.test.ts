import { afterEach, beforeEach, expect, test } from "vitest";
import { createLeaseLoop } from "../../feature/lease-loop.ts";
import { silentLog } from "../../core/log.ts";
import { createMetrics } from "../../core/metrics.ts";
import { seededRandom } from "../../core/random.ts";
import { send, StagedWorld } from "./staged-world.test-kit.ts";
import type { ObjectStore } from "../../io/objectstore/objectstore.ts";
import { COMMIT_POLL_MS, idleCommitPollMs } from "./commit-poll.ts";

const STAGED = "engine/_staged/";

let world: StagedWorld;
/** Times at which what is staged was listed. */
let listedAtMs: number[];
/** Rounds that are over. */
let rounds: number;
let stop: () => Promise<void>;

beforeEach(async () => {
  world = await StagedWorld.open();
  listedAtMs = [];
  rounds = 0;
  const counted: ObjectStore = new Proxy<ObjectStore>(world.store, {
    get: (store, name) => {
      if (name === "list") {
        return (prefix: string, options?: { startAfter?: string }) => {
          if (prefix === STAGED) listedAtMs.push(world.clock.monotonicMs());
          return store.list(prefix, options);
        };
      }
      const value: unknown = Reflect.get(store, name);
      return typeof value === "function" ? (value.bind(store) as unknown) : value;
    },
  });
  const committer = world.committer({ store: counted });
  const loop = createLeaseLoop({
    name: "committer",
    holder: "this test",
    pollMs: COMMIT_POLL_MS,
    idlePollMs: idleCommitPollMs,
    ttlMs: 86_400_000,
    duty: ({ lease, signal }) => committer.commitRound(lease, signal).finally(() => rounds++),
    catalog: world.catalog,
    clock: world.clock,
    random: seededRandom(1),
    log: silentLog,
    metrics: createMetrics(),
  });
  await loop.run();
  await expect.poll(() => listedAtMs.length, { interval: 1 }).toBe(1);
  stop = () => loop.stop();
});
afterEach(async () => {
  await stop();
  await world.close();
});

/** Passes the time until the next listing; how long that was. */
async function nextListingMs(): Promise<number> {
  const fromMs = listedAtMs.at(-1) ?? 0;
  const listings = listedAtMs.length;
  await expect.poll(() => rounds, { interval: 1 }).toBe(listings);
  for (let passedMs = 0; listedAtMs.length === listings; passedMs += 50) {
    if (passedMs > 10_000) throw new Error("it lists no more");
    // The loop sets its timer, or begins its round.
    await new Promise<void>((resolve) => setImmediate(resolve));
    world.clock.advance(50);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return (listedAtMs.at(-1) ?? 0) - fromMs;
}

const atMsAfterStart = () => (listedAtMs.at(-1) ?? 0) - (listedAtMs[0] ?? 0);

test("lists four times a second at first, then less and less often, and what comes is found in time", async () => {
  const slowest = new Map<number, number>();
  while (atMsAfterStart() < 30_000) {
    const second = Math.floor(atMsAfterStart() / 10_000);
    slowest.set(second, Math.max(slowest.get(second) ?? 0, await nextListingMs()));
  }
  // Steps of 50 ms: a listing is late by as much.
  expect(slowest.get(0)).toBeLessThanOrEqual(300);
  expect(slowest.get(1)).toBeLessThanOrEqual(550);
  expect(slowest.get(2)).toBeLessThanOrEqual(1_050);
  await send(world.staged(), '{"body":"first"}');
  expect(await nextListingMs()).toBeLessThanOrEqual(1_050);
  await expect.poll(() => world.values("body")).toEqual(["first"]);
  await send(world.staged(), '{"body":"second"}');
  expect(await nextListingMs()).toBeLessThanOrEqual(300);
  await expect.poll(() => world.values("body")).toEqual(["first", "second"]);
});

test("a month of quiet is 1.3 million listings, and the longest wait two seconds", () => {
  const monthMs = 30 * 86_400_000;
  let listings = 0;
  for (let atMs = 0; atMs < monthMs; atMs += idleCommitPollMs(atMs)) listings++;
  expect(listings).toBeLessThan(1_300_000);
  expect(idleCommitPollMs(Infinity)).toBe(2_000);
  expect(idleCommitPollMs(0)).toBe(COMMIT_POLL_MS);
});
