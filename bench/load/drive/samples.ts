import { quantile } from "../../../src/capacity/quantile.ts";

/** In milliseconds; NaN where nothing was measured. */
export type Percentiles = { p50: number; p90: number; p99: number; max: number; mean: number };

const FIRST_LENGTH = 1_024;

/** Every value of a kind, so that those of several processes can be merged exactly. */
export class Samples {
  #values = new Float64Array(FIRST_LENGTH);
  #length = 0;

  add(value: number): void {
    if (this.#length === this.#values.length) {
      const longer = new Float64Array(this.#length * 2);
      longer.set(this.#values);
      this.#values = longer;
    }
    this.#values[this.#length++] = value;
  }

  values(): Float64Array {
    return this.#values.slice(0, this.#length);
  }
}

/** Of all values together. */
export function percentilesOf(parts: readonly Float64Array[]): Percentiles {
  const sorted = new Float64Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    sorted.set(part, at);
    at += part.length;
  }
  sorted.sort();
  const mean = sorted.reduce((sum, value) => sum + value, 0) / sorted.length;
  return {
    p50: quantile(sorted, 0.5),
    p90: quantile(sorted, 0.9),
    p99: quantile(sorted, 0.99),
    max: quantile(sorted, 1),
    mean,
  };
}
