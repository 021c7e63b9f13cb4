import { describe, expect, test } from "vitest";
import { releaseShared, takeShared } from "../../../core/buffer-pool.ts";
import { MAX_KEPT_BYTES, ReplayableBody, ReplayBudget } from "./replayable-body.ts";

const PIECE_BYTES = 100_000;

/** A body whose pieces the test sends, each in a buffer of the pool. */
function sendable(budget = new ReplayBudget(8 * MAX_KEPT_BYTES)) {
  const waiting: ((step: IteratorResult<Uint8Array>) => void)[] = [];
  const source: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => ({ next: () => new Promise((resolve) => waiting.push(resolve)) }),
  };
  const body = new ReplayableBody(source, budget, undefined);
  const send = async (fill: number, sizeBytes = PIECE_BYTES): Promise<Uint8Array> => {
    const piece = new Uint8Array(takeShared(sizeBytes), 0, sizeBytes).fill(fill);
    waiting.shift()?.({ done: false, value: piece });
    await turn();
    return piece;
  };
  const end = () => waiting.shift()?.({ done: true, value: undefined });
  return { body, send, end };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Whether the pool has it back; it is given back in any case, so that the next question is a new one. */
function isBack(piece: Uint8Array): boolean {
  try {
    releaseShared(piece);
    return false;
  } catch {
    return true;
  }
}

/** What arrives next, for a try that has been given all before. */
const asked = (iterator: AsyncIterator<Uint8Array>) => iterator.next().then(({ value }) => value);

describe("a body that can be sent again", () => {
  test("gives a piece back when it is settled and the next one was asked for, not before", async () => {
    const { body, send, end } = sendable();
    const iterator = body.attempt()[Symbol.asyncIterator]();
    const first = asked(iterator);
    const one = await send(1);
    expect(await first).toBe(one);
    const second = asked(iterator);
    const two = await send(2);
    expect(await second).toBe(two);
    const third = asked(iterator);
    body.settle();
    expect(isBack(one)).toBe(true);
    expect(isBack(two)).toBe(true);
    end();
    expect(await third).toBeUndefined();
  });

  test("keeps pieces for another try, which gets the same ones", async () => {
    const { body, send } = sendable();
    const broken = body.attempt();
    const iterator = broken[Symbol.asyncIterator]();
    const first = asked(iterator);
    const one = await send(1);
    await first;
    const second = asked(iterator);
    broken.stop();
    await expect(second).rejects.toThrow("is over");
    expect(body.replayable).toBe(true);
    const again = body.attempt()[Symbol.asyncIterator]();
    expect(await asked(again)).toBe(one);
    // What the first try was waiting for goes to the second.
    const next = asked(again);
    const two = await send(2);
    expect(await next).toBe(two);
    expect([isBack(two), isBack(one)]).toEqual([false, false]);
  });

  test("forgets a piece that a try may have left to its socket, whatever the other tries do", async () => {
    const { body, send, end } = sendable();
    const broken = body.attempt();
    const first = asked(broken[Symbol.asyncIterator]());
    const one = await send(1);
    await first;
    broken.stop();
    const again = body.attempt()[Symbol.asyncIterator]();
    expect(await asked(again)).toBe(one);
    const last = asked(again);
    end();
    expect(await last).toBeUndefined();
    body.settle();
    expect(isBack(one)).toBe(false);
  });

  test("leaves a piece alone that is being sent when the answer begins, until its socket is done", async () => {
    const { body, send } = sendable();
    const attempt = body.attempt();
    const iterator = attempt[Symbol.asyncIterator]();
    const first = asked(iterator);
    const one = await send(7);
    await first;
    attempt.hold();
    body.settle();
    // Had it been given back, whoever takes one of that size next would get it.
    expect(takeShared(PIECE_BYTES)).not.toBe(one.buffer);
    const held = asked(iterator);
    expect(isBack(one)).toBe(true);
    attempt.stop();
    await expect(held).rejects.toThrow("is over");
  });

  test("gives a piece back at once that arrives when nobody may have it", async () => {
    const { body, send } = sendable();
    const attempt = body.attempt();
    const waiting = asked(attempt[Symbol.asyncIterator]());
    attempt.hold();
    body.settle();
    expect(isBack(await send(1))).toBe(true);
    attempt.stop();
    await expect(waiting).rejects.toThrow("is over");
  });

  test("past what may be kept, pieces go back one by one", async () => {
    const { body, send } = sendable();
    const iterator = body.attempt()[Symbol.asyncIterator]();
    const first = asked(iterator);
    const one = await send(1, MAX_KEPT_BYTES + 1);
    expect(await first).toBe(one);
    expect(body.replayable).toBe(false);
    const second = asked(iterator);
    expect(isBack(one)).toBe(true);
    const two = await send(2);
    expect(await second).toBe(two);
    expect(isBack(two)).toBe(false);
  });

  test("a try that would miss the beginning fails instead of sending the rest", async () => {
    const { body, send } = sendable();
    const broken = body.attempt();
    const iterator = broken[Symbol.asyncIterator]();
    const first = asked(iterator);
    await send(1, MAX_KEPT_BYTES - 10);
    await first;
    const second = asked(iterator);
    broken.stop();
    await expect(second).rejects.toThrow("is over");
    expect(body.replayable).toBe(true);
    const again = body.attempt()[Symbol.asyncIterator]();
    await send(2);
    expect(body.replayable).toBe(false);
    await expect(asked(again)).rejects.toThrow("not kept any more");
  });

  test("counts buffers whole, and gives the budget back when it is settled", async () => {
    const budget = new ReplayBudget(192 * 1024);
    const { body, send } = sendable(budget);
    const first = asked(body.attempt()[Symbol.asyncIterator]());
    const one = await send(1);
    await first;
    // 100,000 bytes lie in a buffer of 128 KiB.
    expect(one.buffer.byteLength).toBe(128 * 1024);
    expect(budget.take(64 * 1024 + 1)).toBe(false);
    body.settle();
    expect(budget.take(192 * 1024)).toBe(true);
  });

  test("keeps nothing that the budget has no room for", async () => {
    const { body, send } = sendable(new ReplayBudget(PIECE_BYTES));
    const first = asked(body.attempt()[Symbol.asyncIterator]());
    const one = await send(1);
    expect(await first).toBe(one);
    expect(body.replayable).toBe(false);
  });
});
