import { expect, test } from "vitest";
import { PLANTED_IN_JOBS } from "./planted.ts";
import { simulateJobs } from "./simulate.ts";

test("a seed does the same again, and another one something else", async () => {
  const first = await simulateJobs({ seed: 7, keepTrace: true });
  const other = await simulateJobs({ seed: 8 });
  const again = await simulateJobs({ seed: 7, keepTrace: true });
  expect(first.trace.length).toBeGreaterThan(100);
  expect(again.trace).toEqual(first.trace);
  expect(again.hash).toBe(first.hash);
  expect(other.hash).not.toBe(first.hash);
});

test("a seed that fails fails again, at the same step for the same reason", async () => {
  const planted = PLANTED_IN_JOBS["nobody sweeps"];
  const [first, again] = [await simulateJobs({ seed: 1, planted }), await simulateJobs({ seed: 1, planted })];
  expect(first.failure).toBeDefined();
  expect(again.failure?.message).toBe(first.failure?.message);
  expect([again.steps, again.hash]).toEqual([first.steps, first.hash]);
});
