import { seededRandom } from "../../src/core/random.ts";
import { median } from "../../src/capacity/quantile.ts";

/** An interval that the value lies in with the probability of `CONFIDENCE`. */
export type Interval = { low: number; high: number };

export const CONFIDENCE = 0.95;
const RESAMPLES = 2_000;

/**
 * The interval of a median by bootstrap (percentiles of the medians of samples with replacement). Of fewer than three
 * values it is their range: so few say nothing of what else might have come.
 */
export function medianInterval(values: readonly number[], seed: number): Interval {
  if (values.length < 3) return { low: Math.min(...values), high: Math.max(...values) };
  const random = seededRandom(seed);
  const medians = Float64Array.from({ length: RESAMPLES }, () =>
    median(values.map(() => values[Math.floor(random.next() * values.length)] ?? Number.NaN)),
  ).toSorted();
  const tail = (1 - CONFIDENCE) / 2;
  const at = (share: number) => medians[Math.min(RESAMPLES - 1, Math.floor(share * RESAMPLES))] ?? Number.NaN;
  return { low: at(tail), high: at(1 - tail) };
}

/** The quotients of values that were measured next to each other. */
export function ratiosOf(values: readonly number[], others: readonly number[]): number[] {
  return values.slice(0, others.length).map((value, i) => value / (others[i] ?? Number.NaN));
}

/**
 * How far the same side is from itself: the interval of the quotients of each round and the next one. What differs less
 * between two sides cannot be seen on this machine now. Undefined with fewer than four rounds, and where a 0 leaves no
 * quotient.
 */
export function noiseOf(values: readonly number[], seed: number): Interval | undefined {
  if (values.length < 4) return undefined;
  // Each pair both ways: which of two equal sides comes first is chance, and a drift is noise, too.
  const ratios = ratiosOf(values.slice(1), values).filter((ratio) => Number.isFinite(ratio) && ratio > 0);
  if (ratios.length === 0) return undefined;
  return medianInterval([...ratios, ...ratios.map((ratio) => 1 / ratio)], seed);
}
