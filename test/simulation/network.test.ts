import { beforeEach, describe, expect, it } from "vitest";
import { seededRandom } from "../../src/core/random.ts";
import { Machine } from "./machine.ts";
import { Network, NO_FAULTS } from "./network.ts";
import { Scheduler } from "./scheduler.ts";
import { RemoteStore, StoredObjects } from "./store.ts";

const BYTES = new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8]);

let scheduler: Scheduler;
let network: Network;
let objects: StoredObjects;
let machine: Machine;
let store: RemoteStore;

beforeEach(() => {
  scheduler = new Scheduler({ random: seededRandom(1), startMs: 0, keepTrace: true });
  network = new Network(scheduler);
  objects = new StoredObjects(scheduler);
  machine = new Machine(scheduler, "node", 0);
  store = new RemoteStore({ objects, network, scheduler, list: { pageKeys: 2, isShuffled: false } }, machine);
});

/** Steps until the call has an answer, and tells that. */
async function answerOf<T>(call: Promise<T>): Promise<T | Error> {
  const answers: (T | Error)[] = [];
  void call.then(
    (value) => answers.push(value),
    (error: Error) => answers.push(error),
  );
  while (answers.length === 0 && (await scheduler.step()));
  return answers.length === 0 ? new Error("no answer") : (answers[0] as T);
}

async function runAll(): Promise<void> {
  while (await scheduler.step());
}

describe("a call", () => {
  it("takes time, and has its effect before its answer", async () => {
    const put = store.put("a", BYTES);
    expect(objects.get("a")).toBeUndefined();
    await scheduler.step();
    expect(objects.get("a")).toEqual(BYTES);
    expect(await answerOf(put)).toBeUndefined();
    expect(scheduler.nowMs).toBeGreaterThan(0);
    expect(await answerOf(store.get("a", { offset: 2, length: 3 }))).toEqual(BYTES.slice(2, 5));
  });

  it.each([
    ["refused", false],
    ["unheard", true],
  ] as const)("that is %s fails", async (fault, isDone) => {
    network.rates = { ...NO_FAULTS, [fault]: 1 };
    expect(await answerOf(store.put("a", BYTES))).toBeInstanceOf(Error);
    await runAll();
    expect(objects.get("a") !== undefined).toBe(isDone);
  });

  it("that writes is sent again by its driver, on waking when its process stood still", async () => {
    const writtenAtMs: number[] = [];
    objects.watcher = { put: () => void writtenAtMs.push(scheduler.nowMs), deleted: () => {} };
    network.rates = { ...NO_FAULTS, refused: 1 };
    const puts = Array.from({ length: 8 }, (_, i) => store.put(`${i}`, BYTES).catch(() => {}));
    network.rates = NO_FAULTS;
    machine.lane.frozenUntilMs = 1_000_000;
    await runAll();
    await Promise.all(puts);
    expect(writtenAtMs.length).toBeGreaterThan(0);
    expect(writtenAtMs.length).toBeLessThan(8);
    expect(Math.min(...writtenAtMs)).toBeGreaterThan(1_000_000);
  });

  it("may be done long after its failure, also after the object was deleted", async () => {
    let late = 0;
    for (let i = 0; i < 20; i++) {
      const key = `a${i}`;
      network.rates = { ...NO_FAULTS, late: 1 };
      expect(await answerOf(store.put(key, BYTES))).toBeInstanceOf(Error);
      network.rates = NO_FAULTS;
      await answerOf(store.delete([key]));
      const wasThere = objects.get(key) !== undefined;
      await runAll();
      if (!wasThere && objects.get(key) !== undefined) late++;
    }
    expect(late).toBeGreaterThan(5);
  });

  it("that is torn leaves a part of the object, or deletes some of them", async () => {
    network.rates = { ...NO_FAULTS, torn: 1 };
    expect(await answerOf(store.put("a", BYTES))).toBeInstanceOf(Error);
    await runAll();
    expect(objects.get("a")?.length).toBeLessThan(BYTES.length);
  });

  it("of a process that dies gets no answer, and may be done or not", async () => {
    let done = 0;
    for (let i = 0; i < 40; i++) {
      const from = new Machine(scheduler, `node${i}`, 0);
      const own = new RemoteStore({ objects, network, scheduler, list: { pageKeys: 2, isShuffled: false } }, from);
      const put = own.put(`a${i}`, BYTES);
      from.die();
      network.lose(from);
      expect(await answerOf(put)).toEqual(new Error("no answer"));
      if (objects.get(`a${i}`) !== undefined) done++;
    }
    expect(done).toBeGreaterThan(5);
    expect(done).toBeLessThan(40);
  });
});

it("a listing comes in answers of different moments, of any order where the store is like that", async () => {
  for (const key of ["p/c", "p/a", "q/x", "p/b", "p/d"]) objects.put(key, BYTES);
  const keysOf = async (from: RemoteStore) => (await Array.fromAsync(from.list("p/"))).map(({ key }) => key);
  expect(await answerOf(keysOf(store))).toEqual(["p/a", "p/b", "p/c", "p/d"]);
  const shuffled = new RemoteStore({ objects, network, scheduler, list: { pageKeys: 4, isShuffled: true } }, machine);
  const orders = new Set<string>();
  for (let i = 0; i < 20; i++) {
    const keys = (await answerOf(keysOf(shuffled))) as string[];
    expect(keys.toSorted()).toEqual(["p/a", "p/b", "p/c", "p/d"]);
    orders.add(keys.join(" "));
  }
  expect(orders.size).toBeGreaterThan(5);
});

describe("the scheduler", () => {
  it("lets a frozen process do nothing until then, and the others go on", async () => {
    const other = new Machine(scheduler, "other", 0);
    const heard: string[] = [];
    machine.lane.frozenUntilMs = 1_000;
    machine.clock.after(10, () => heard.push(`frozen at ${scheduler.nowMs}`));
    other.clock.after(20, () => heard.push(`other at ${scheduler.nowMs}`));
    await runAll();
    expect(heard).toEqual(["other at 20", "frozen at 1000"]);
  });

  it("keeps the timers of a process in their order when time has passed at once", async () => {
    const heard: number[] = [];
    for (const delayMs of [30, 10, 20]) machine.clock.after(delayMs, () => heard.push(delayMs));
    scheduler.pass(1_000);
    await runAll();
    expect(heard).toEqual([10, 20, 30]);
  });

  it("keeps the first failure", async () => {
    scheduler.at({ dueMs: 0, lane: undefined, label: "one", run: () => scheduler.fail(new Error("first")) });
    await runAll();
    scheduler.fail(new Error("second"));
    expect(scheduler.failure?.message).toBe("first");
  });
});
