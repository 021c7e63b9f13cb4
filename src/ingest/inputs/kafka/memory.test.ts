import { expect, test } from "vitest";
import { FetchMemory, type Holder } from "./memory.ts";

const MIB = 1024 * 1024;

/** Holders that want to be fetched for, and the order in which they are let go. */
function holdersOf(memory: FetchMemory, count: number) {
  const letGo: number[] = [];
  const holders = Array.from({ length: count }, (_, i): Holder => {
    const holder = { balance: () => void (memory.mayFetch(holder, true) && letGo.push(i)) };
    memory.join(holder);
    return holder;
  });
  return { holders: holders as [Holder, Holder, ...Holder[]], letGo };
}

test("those that wait are let go in order, so many as there is room for, and all when little is held", () => {
  const memory = new FetchMemory({ fetchedBytes: 32 * MIB, openedBytes: MIB });
  const { holders, letGo } = holdersOf(memory, 9);
  const [first, second, small] = [new ArrayBuffer(16 * MIB), new ArrayBuffer(7 * MIB), new ArrayBuffer(9 * MIB)];
  for (const buffer of [first, first, second, small]) memory.keep(buffer);
  expect(holders.map((holder) => memory.mayFetch(holder, true))).toEqual(Array(9).fill(false));
  expect([letGo, memory.held.fetchedBytes]).toEqual([[], 32 * MIB]);
  memory.drop([second], 0);
  expect(letGo).toEqual([0, 1]);
  expect(memory.mayFetch(holders[0], true)).toBe(true);
  memory.leave(holders[2] as Holder);
  // What came with one that is still there stays.
  memory.drop([first], 0);
  expect([letGo, memory.held.fetchedBytes]).toEqual([[0, 1, 3, 4], 25 * MIB]);
  memory.drop([first], 0);
  expect(letGo).toEqual([0, 1, 3, 4, 5, 6, 7, 8]);
  expect(memory.held).toEqual({ fetchedBytes: 9 * MIB, openedBytes: 0 });
});

test("batches are opened one after the other while there is room, also when one fails", async () => {
  const memory = new FetchMemory({ fetchedBytes: MIB, openedBytes: 100 });
  const opened: number[] = [];
  const open = (bytes: number) =>
    memory.open(
      () => (bytes < 0 ? Promise.reject(new Error("damaged")) : Promise.resolve(bytes)),
      () => {
        opened.push(bytes);
        memory.keepOpened(bytes);
      },
    );
  expect(memory.canOpen).toBe(true);
  const all = [open(150), open(60), open(70)];
  await all[0];
  await Promise.resolve();
  expect([opened, memory.canOpen]).toEqual([[150], false]);
  memory.drop([], 150);
  await Promise.all(all);
  expect([opened, memory.held.openedBytes]).toEqual([[150, 60, 70], 130]);
  const failed = open(-1).catch(String);
  memory.drop([], 60);
  expect(await failed).toBe("Error: damaged");
  await open(1);
  expect(memory.canOpen).toBe(true);
});
