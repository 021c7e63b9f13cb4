import type { Random } from "../../src/core/random.ts";

/** Gives the next time at which a request falls due, in milliseconds since the start; the times never go back. */
export type Arrivals = () => number;

/**
 * Evenly spaced. Of several generators that share a rate, each has a `phase` (0 to 1, a part of its own interval), so
 * that together they are evenly spaced, too.
 */
export function evenArrivals(perSecond: number, phase = 0): Arrivals {
  let count = 0;
  return () => ((phase + count++) * 1_000) / perSecond;
}

/** As independent clients send: the times between them are exponentially distributed (a Poisson process). */
export function poissonArrivals(perSecond: number, random: Random): Arrivals {
  let atMs = 0;
  return () => {
    atMs += (-Math.log(1 - random.next()) * 1_000) / perSecond;
    return atMs;
  };
}
