import { expect, test } from "vitest";
import { PLANTED } from "./planted.ts";
import { simulate } from "./simulate.ts";

test("a seed does the same again, and another one something else", async () => {
  const first = await simulate({ seed: 7, keepTrace: true });
  // What another run leaves behind in this process makes no difference.
  const other = await simulate({ seed: 8 });
  const again = await simulate({ seed: 7, keepTrace: true });
  expect(first.trace.length).toBeGreaterThan(500);
  expect(again.trace).toEqual(first.trace);
  expect(again.hash).toBe(first.hash);
  expect(other.hash).not.toBe(first.hash);
});

test("keeping the trace changes nothing", async () => {
  const [kept, dropped] = [await simulate({ seed: 9, keepTrace: true }), await simulate({ seed: 9 })];
  expect(dropped.hash).toBe(kept.hash);
  expect(dropped.trace).toEqual([]);
});

test("a seed that fails fails again, at the same step for the same reason", async () => {
  const planted = PLANTED["writes are acknowledged early"];
  const [first, again] = [await simulate({ seed: 3, planted }), await simulate({ seed: 3, planted })];
  expect(first.failure).toBeDefined();
  expect(again.failure?.message).toBe(first.failure?.message);
  expect([again.steps, again.hash]).toEqual([first.steps, first.hash]);
});
