import { describe, expect, test } from "vitest";
import { ManualClock } from "../core/clock.ts";
import { Batcher, type BatchItem, type BatchLimits } from "./batcher.ts";

const LIMITS: BatchLimits = { maxRows: 10, maxBytes: 1000, maxAgeMs: 50, disabled: false };

function batcherWith(limits: Partial<BatchLimits> = {}) {
  const clock = new ManualClock();
  const flushes: { items: BatchItem[]; sealed: () => void; finish: () => void }[] = [];
  const batcher = new Batcher<BatchItem>({
    clock,
    limits: { ...LIMITS, ...limits },
    flush: (items, sealed) => new Promise((resolve) => flushes.push({ items, sealed, finish: resolve })),
  });
  const add = (rows: number, sizeBytes = 1) => batcher.add({ rows, sizeBytes });
  const rowsOf = () => flushes.map(({ items }) => items.map(({ rows }) => rows));
  return { clock, flushes, add, rowsOf };
}

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("Batcher", () => {
  test("a lone item is flushed without waiting for the clock", async () => {
    const { add, rowsOf } = batcherWith();
    add(1);
    await settle();
    expect(rowsOf()).toEqual([[1]]);
  });

  test("items of one turn share a flush", async () => {
    const { add, rowsOf } = batcherWith();
    add(1);
    add(2);
    await settle();
    expect(rowsOf()).toEqual([[1, 2]]);
  });

  test("items that arrive during a flush share the next, which starts when it ends", async () => {
    const { add, flushes, rowsOf } = batcherWith();
    add(1);
    await settle();
    add(2);
    add(3);
    await settle();
    expect(rowsOf()).toEqual([[1]]);
    flushes[0]?.finish();
    await settle();
    expect(rowsOf()).toEqual([[1], [2, 3]]);
  });

  test("the next starts when the running one is sealed, and a third only when one of them ends", async () => {
    const { add, flushes, rowsOf } = batcherWith();
    add(1);
    await settle();
    add(2);
    flushes[0]?.sealed();
    expect(rowsOf()).toEqual([[1], [2]]);
    add(3);
    flushes[1]?.sealed();
    await settle();
    expect(rowsOf()).toEqual([[1], [2]]);
    flushes[0]?.finish();
    await settle();
    expect(rowsOf()).toEqual([[1], [2], [3]]);
  });

  test("age is an upper bound on the wait behind a running flush", async () => {
    const { add, clock, rowsOf } = batcherWith();
    add(1);
    await settle();
    add(2);
    clock.advance(49);
    expect(rowsOf()).toEqual([[1]]);
    clock.advance(1);
    expect(rowsOf()).toEqual([[1], [2]]);
  });

  test("rows and bytes start a flush beside the running one", async () => {
    const { add, rowsOf } = batcherWith();
    add(1);
    await settle();
    add(4);
    add(6);
    expect(rowsOf()).toEqual([[1], [4, 6]]);
    add(1, 1000);
    expect(rowsOf()).toEqual([[1], [4, 6], [1]]);
  });

  test("an item that would overflow the gathered ones goes into the next flush, and is never split", async () => {
    const { add, flushes, rowsOf } = batcherWith();
    add(1);
    await settle();
    add(6);
    add(6);
    expect(rowsOf()).toEqual([[1], [6]]);
    flushes[0]?.finish();
    flushes[1]?.finish();
    await settle();
    expect(rowsOf()).toEqual([[1], [6], [6]]);
    add(500);
    expect(rowsOf()[3]).toEqual([500]);
  });

  /** Three clients' items in one flush, which took 8 ms. */
  async function afterThree() {
    const batcher = batcherWith();
    for (const rows of [1, 2, 3]) batcher.add(rows);
    await settle();
    batcher.clock.advance(8);
    batcher.flushes[0]?.finish();
    await settle();
    return batcher;
  }

  test("the next flush waits for as many as the last one had", async () => {
    const { add, rowsOf } = await afterThree();
    add(1);
    await settle();
    add(2);
    await settle();
    expect(rowsOf()).toEqual([[1, 2, 3]]);
    add(3);
    await settle();
    expect(rowsOf()).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
  });

  test("it waits no longer than for a quarter of the time that the last one took", async () => {
    const { add, clock, rowsOf } = await afterThree();
    add(1);
    await settle();
    clock.advance(1);
    expect(rowsOf()).toEqual([[1, 2, 3]]);
    clock.advance(1);
    expect(rowsOf()).toEqual([[1, 2, 3], [1]]);
  });

  test("it waits behind one that runs, too, once that is sealed", async () => {
    const { add, clock, flushes, rowsOf } = await afterThree();
    for (const rows of [1, 2, 3]) add(rows);
    await settle();
    add(4);
    flushes[1]?.sealed();
    expect(rowsOf()).toHaveLength(2);
    clock.advance(2);
    expect(rowsOf().at(-1)).toEqual([4]);
  });

  test("nobody is waited for who has not come again for as long as the last flush took", async () => {
    const { add, clock, rowsOf } = await afterThree();
    clock.advance(9);
    add(1);
    await settle();
    expect(rowsOf().at(-1)).toEqual([1]);
  });

  test("disabled: one flush per item", () => {
    const { add, rowsOf } = batcherWith({ disabled: true });
    add(1);
    add(1);
    expect(rowsOf()).toEqual([[1], [1]]);
  });
});
