import { expect, test } from "vitest";
import { FetchMemory, type Holder } from "./memory.ts";

const MIB = 1024 * 1024;

/** Holders that want to be fetched for, and the order in which they are let go. */
function holdersOf(memory: FetchMemory, count: number) {
  const letGo: number[] = [];
  const holders = Array.from({ length: count }, (_, i): Holder => {
    const holder = { balance: () => void (memory.mayFetch(holder, true) && letGo.push(i)) };
    memory.hold(holder, { fetchedBytes: 0, openedBytes: 0 });
    return holder;
  });
  return { holders: holders as [Holder, Holder, ...Holder[]], letGo };
}

test("those that wait are let go in order, so many as there is room for, and all when little is held", () => {
  const memory = new FetchMemory({ fetchedBytes: 32 * MIB, openedBytes: MIB });
  const { holders, letGo } = holdersOf(memory, 9);
  const [first, second] = holders;
  memory.hold(first, { fetchedBytes: 16 * MIB, openedBytes: 0 });
  memory.hold(second, { fetchedBytes: 16 * MIB, openedBytes: 0 });
  expect(holders.map((holder) => memory.mayFetch(holder, true))).toEqual(Array(9).fill(false));
  expect(letGo).toEqual([]);
  memory.hold(second, { fetchedBytes: 9 * MIB, openedBytes: 0 });
  expect(letGo).toEqual([0, 1]);
  expect(memory.mayFetch(holders[0], true)).toBe(true);
  memory.leave(second);
  expect(letGo).toEqual([0, 1, 2, 3, 4, 5]);
  memory.hold(first, { fetchedBytes: MIB, openedBytes: 0 });
  expect(letGo).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  expect(memory.held).toEqual({ fetchedBytes: MIB, openedBytes: 0 });
});

test("batches are opened one after the other while there is room, also when one fails", async () => {
  const memory = new FetchMemory({ fetchedBytes: MIB, openedBytes: 100 });
  const { holders } = holdersOf(memory, 3);
  const opened: number[] = [];
  const open = (i: number, bytes: number) =>
    memory.open(
      () => (bytes < 0 ? Promise.reject(new Error("damaged")) : Promise.resolve(bytes)),
      () => {
        opened.push(i);
        memory.hold(holders[i] as Holder, { fetchedBytes: 0, openedBytes: bytes });
      },
    );
  expect(memory.canOpen).toBe(true);
  const all = [open(0, 150), open(1, 60), open(2, 70)];
  await all[0];
  await Promise.resolve();
  expect([opened, memory.canOpen]).toEqual([[0], false]);
  memory.leave(holders[0]);
  await Promise.all(all);
  expect([opened, memory.held.openedBytes]).toEqual([[0, 1, 2], 130]);
  const failed = open(1, -1).catch(String);
  memory.leave(holders[1]);
  expect(await failed).toBe("Error: damaged");
  await open(0, 1);
  expect(memory.canOpen).toBe(true);
});
