import { expect, test } from "vitest";
import { seededRandom, type Random } from "../../src/core/random.ts";
import { medianInterval, noiseOf, ratiosOf } from "./statistics.ts";

/** Values around 100 that differ by some percent. */
function around(count: number, spread: number, random: Random): number[] {
  return Array.from(
    { length: count },
    () => 100 * (1 + spread * (random.next() + random.next() + random.next() - 1.5)),
  );
}

test("the interval of a median holds the middle of what was drawn from, about 95 times in 100", () => {
  const random = seededRandom(11);
  let held = 0;
  for (let i = 0; i < 200; i++) {
    const { low, high } = medianInterval(around(15, 0.1, random), i);
    if (low <= 100 && 100 <= high) held++;
  }
  expect(held).toBeGreaterThan(176);
  expect(held).toBeLessThan(200);
});

test("the same values and seed give the same interval; few values their range", () => {
  const values = around(9, 0.2, seededRandom(3));
  expect(medianInterval(values, 4)).toEqual(medianInterval(values, 4));
  expect(medianInterval([5, 2], 1)).toEqual({ low: 2, high: 5 });
});

test("noise is what a side differs from itself by, whichever way it drifts", () => {
  expect(noiseOf([1, 2, 3], 1)).toBeUndefined();
  expect(noiseOf([7, 7, 7, 7, 7], 1)).toEqual({ low: 1, high: 1 });
  const drift = noiseOf([1, 2, 4, 8, 16, 32, 64], 1);
  expect(drift).toEqual({ low: 0.5, high: 2 });
  expect(noiseOf([0, 0, 0, 0], 1)).toBeUndefined();
  expect(noiseOf([0, 7, 0, 7, 0], 1)).toBeUndefined();
  expect(noiseOf([0, 7, 7, 7, 0], 1)).toEqual({ low: 1, high: 1 });
});

test("ratios are of rounds next to each other", () => {
  expect(ratiosOf([2, 9], [1, 3])).toEqual([2, 3]);
});
