import type { Random } from "./random.ts";

/** How waits grow: the first (the base) doubles with every failure (the factor is 2) up to the longest (the cap). */
export type Growth = { readonly firstMs: number; readonly mostMs: number };

/** Beyond this `2 ** failures` is infinite, and a base of 0 would give no number. */
const MAX_DOUBLINGS = 1_000;

/** The wait after that many earlier failures, without jitter. */
export function fullBackoffMs({ firstMs, mostMs }: Growth, failures: number): number {
  return Math.min(mostMs, firstMs * 2 ** Math.min(failures, MAX_DOUBLINGS));
}

/**
 * The same with jitter, so that those who failed together do not come back together.
 *
 * @param share of the wait that is random: 1 is full jitter (Brooker, "Exponential Backoff And Jitter")
 */
export function backoffMs(growth: Growth, failures: number, random: Random, share = 0.5): number {
  return fullBackoffMs(growth, failures) * (1 - share + share * random.next());
}

/** Counts failures in a row, and says how long to wait after each. Half of a wait is random. */
export class Backoff {
  readonly #random: Random;
  readonly #growth: Growth;
  #failures = 0;

  constructor({ random, ...growth }: Growth & { random: Random }) {
    this.#random = random;
    this.#growth = growth;
  }

  /** How long to wait before the next attempt. */
  next(): number {
    return backoffMs(this.#growth, this.#failures++, this.#random);
  }

  reset(): void {
    this.#failures = 0;
  }
}
