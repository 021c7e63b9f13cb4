import { expect, test } from "vitest";
import { drawnSeed } from "../../../src/core/drawn-seed.test-kit.ts";
import { simulateJobs } from "./simulate.ts";
import type { JobWorldOptions } from "./world.ts";

/**
 * A test over seeds, the first of which is drawn: every one passes, and enough happens in them. `open` says where the
 * jobs are, if not in memory.
 */
export function testJobSeeds(count: number, open?: JobWorldOptions["open"]): void {
  test(`${count} seeds`, { timeout: 300_000 }, async () => {
    const first = drawnSeed();
    const sum = new Map<string, number>();
    for (let seed = first; seed < first + count; seed++) {
      const { failure, tally } = await simulateJobs({ seed, ...(open === undefined ? {} : { open }) });
      // As one value, so that a failure names what to do: `node scripts/simulate-jobs.ts 1 <seed>` shows how it came.
      expect({ seed, failure: failure?.message }).toEqual({ seed, failure: undefined });
      for (const [what, times] of Object.entries(tally)) sum.set(what, (sum.get(what) ?? 0) + times);
    }
    const scarce = LEAST.filter(([what, leastPerSeed]) => (sum.get(what) ?? 0) <= leastPerSeed * count);
    expect(scarce).toEqual([]);
  });
}

/** A simulation in which nothing happens finds nothing. */
const LEAST = [
  ["enqueued", 5],
  ["deduped", 0.5],
  ["claimed", 6],
  ["completed", 3],
  ["failed", 0.5],
  ["released", 0.05],
  ["swept", 2],
  ["cancelled", 0.5],
  ["retried", 0.03],
  ["stale", 2],
] as const;
