import { beforeEach, describe, expect, test } from "vitest";
import { ManualClock } from "../core/clock.ts";
import { silentLog } from "../core/log.ts";
import { snapshotExpired } from "./refusals.ts";
import { SnapshotHolds, type SnapshotPin } from "./snapshot-holds.ts";

const TTL_MS = 60_000;

let clock: ManualClock;
/** What the catalog was told, and how it is. */
let told: string[];
let oldestReadable: number;
let isReachable: boolean;
let holds: SnapshotHolds;
let failures: string[];

const reach = async (): Promise<void> => {
  await Promise.resolve();
  if (!isReachable) throw new Error("no route to the catalog");
};

const catalog = {
  async holdSnapshots(node: string, oldest: number, ttlMs: number): Promise<void> {
    told.push(`${node} holds ${oldest}`);
    await reach();
    expect(ttlMs).toBe(TTL_MS);
    if (oldest < oldestReadable) throw snapshotExpired(oldest, await catalog.oldestSnapshot());
  },
  async releaseSnapshots(node: string): Promise<void> {
    told.push(`${node} reads nothing`);
    await reach();
  },
  oldestSnapshot: async () => ({ id: oldestReadable, committedAtMs: 0 }),
};

beforeEach(() => {
  clock = new ManualClock();
  told = [];
  failures = [];
  oldestReadable = 0;
  isReachable = true;
  holds = new SnapshotHolds({ catalog, clock, log: silentLog, node: "n", ttlMs: TTL_MS });
});

function open(name: string, head?: number): SnapshotPin {
  const reading = holds.open((reason) => failures.push(`${name}: ${reason.code}`));
  if (head !== undefined) reading.reads(head);
  return reading;
}

/** Moves the time second by second, and lets what was said be answered. */
async function pass(seconds: number): Promise<void> {
  for (let leftMs = seconds * 1_000; leftMs > 0; leftMs -= 1_000) {
    clock.advance(Math.min(leftMs, 1_000));
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  }
}

/** What was told since the last call. */
const news = (): string[] => told.splice(0);

describe("queries at the head", () => {
  test("that end within a second are not spoken of", async () => {
    for (let i = 0; i < 100; i++) {
      const reading = open("q", i);
      clock.advance(100);
      reading.check();
      reading.close();
    }
    await pass(5);
    expect(news()).toEqual([]);
    await holds.close();
    expect(news()).toEqual([]);
  });

  test("that take longer are held together, by one renewal per third of the time to live, and then given back", async () => {
    const [first, second] = [open("a", 7), open("b", 9)];
    await pass(1);
    expect(news()).toEqual(["n holds 7"]);
    await pass(19);
    expect(news()).toEqual([]);
    await pass(2);
    expect(news()).toEqual(["n holds 7"]);
    const third = open("c", 8);
    first.close();
    await pass(20);
    expect(news()).toEqual(["n holds 8"]);
    second.close();
    third.close();
    await pass(2);
    expect(news()).toEqual(["n reads nothing"]);
    await pass(100);
    expect(news()).toEqual([]);
    expect(failures).toEqual([]);
  });

  test("that are short do not keep what a long one held", async () => {
    const long = open("long", 3);
    await pass(1);
    long.close();
    news();
    for (let i = 0; i < 10; i++) {
      const short = open("short", 5);
      await pass(0.7);
      short.close();
    }
    expect(news()).toEqual(["n reads nothing"]);
  });

  test("that start over are held at what they read now", async () => {
    const reading = open("q", 3);
    reading.reads(8);
    await pass(1);
    expect(news()).toEqual(["n holds 8"]);
    reading.close();
  });

  test("whose snapshot went within their first second go on without", async () => {
    const [early, late] = [open("early", 3), open("late", 8)];
    oldestReadable = 5;
    await pass(1);
    expect(news()).toEqual(["n holds 3", "n holds 8"]);
    early.check();
    await pass(100);
    late.check();
    expect(failures).toEqual([]);
  });
});

describe("queries that travel in time", () => {
  test("are held before they plan, all of them at once where one hold covers them", async () => {
    const readings = [open("a", 9), open("b", 9), open("c", 9)];
    await Promise.all(readings.map((reading, i) => reading.hold(4 + i)));
    // The first asks for what all read by then.
    expect(news()).toEqual(["n holds 4"]);
    const older = open("d", 9);
    await older.hold(2);
    expect(news()).toEqual(["n holds 2"]);
    for (const reading of [...readings, older]) reading.close();
    await pass(2);
    expect(news()).toEqual(["n reads nothing"]);
  });

  test("are refused what is gone, which does not hurt those that read what is there", async () => {
    oldestReadable = 5;
    const [gone, there] = [open("gone", 9), open("there", 9)];
    const [refused, held] = await Promise.allSettled([gone.hold(4), there.hold(6)]);
    expect(refused).toMatchObject({ status: "rejected", reason: { code: "snapshot_expired" } });
    expect(held).toMatchObject({ status: "fulfilled" });
    expect(news().at(-1)).toBe("n holds 6");
    gone.close();
    await pass(100);
    expect(failures).toEqual([]);
  });

  test("fail when the catalog is out of reach", async () => {
    isReachable = false;
    await expect(open("q", 9).hold(4)).rejects.toThrow("no route");
  });
});

describe("a hold that could not be renewed", () => {
  test("is asked for again, and nobody fails when that helps in time", async () => {
    const reading = open("q", 4);
    await pass(1);
    isReachable = false;
    await pass(50);
    expect(news().length).toBeGreaterThan(10);
    isReachable = true;
    await pass(60);
    reading.check();
    expect(failures).toEqual([]);
  });

  test("fails the queries under it before the catalog lets go, and no others", async () => {
    const [head, travel] = [open("head", 9), open("travel", 9)];
    await travel.hold(4);
    isReachable = false;
    await pass(TTL_MS / 1_000 - 2);
    expect(failures).toEqual([]);
    await pass(1);
    expect(failures.toSorted()).toEqual(["head: snapshot_expired", "travel: snapshot_expired"]);
    expect(() => travel.check()).toThrow(/could not be held/);
    isReachable = true;
    const next = open("next", 9);
    await pass(10);
    next.check();
    for (const reading of [head, travel, next]) reading.close();
    expect(failures).toHaveLength(2);
  });

  test("is found out at the end of a query, when the machine has slept", async () => {
    const reading = open("q", 9);
    await reading.hold(4);
    // Timers did not run.
    const asleep = new SnapshotHolds({ catalog, clock: withoutTimers(), log: silentLog, node: "m", ttlMs: TTL_MS });
    const sleeper = asleep.open((reason) => failures.push(`sleeper: ${reason.code}`));
    await sleeper.hold(4);
    clock.advance(TTL_MS);
    expect(() => sleeper.check()).toThrow(/could not be held/);
    expect(failures).toContain("sleeper: snapshot_expired");
  });
});

function withoutTimers() {
  const never = () => ({ cancel: () => {} });
  return { nowMs: () => clock.nowMs(), monotonicMs: () => clock.monotonicMs(), after: never, every: never };
}

test("closing gives back what is held, once all that was said before has been heard", async () => {
  const reading = open("q", 9);
  const held = reading.hold(4);
  await holds.close();
  await held;
  expect(news()).toEqual(["n holds 4", "n reads nothing"]);
  await pass(100);
  expect(news()).toEqual([]);
});
