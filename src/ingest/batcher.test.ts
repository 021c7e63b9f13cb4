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

  test("disabled: one flush per item", () => {
    const { add, rowsOf } = batcherWith({ disabled: true });
    add(1);
    add(1);
    expect(rowsOf()).toEqual([[1], [1]]);
  });
});
