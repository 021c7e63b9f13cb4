import { expect, test } from "vitest";
import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { simulate } from "./simulate.ts";

/** A test over seeds, the first of which is drawn: every one passes, and enough happens in them. */
export function testSeeds(count: number): void {
  test(`${count} seeds`, { timeout: 300_000 }, async () => {
    const first = drawnSeed();
    const sum = new Map<string, number>();
    for (let seed = first; seed < first + count; seed++) {
      const { failure, tally } = await simulate({ seed });
      // As one value, so that a failure names what to do: `node scripts/simulate.ts 1 <seed>` shows how it came.
      expect({ seed, failure: failure?.message }).toEqual({ seed, failure: undefined });
      for (const [what, times] of Object.entries(tally)) sum.set(what, (sum.get(what) ?? 0) + times);
    }
    const scarce = LEAST.filter(([what, leastPerSeed]) => (sum.get(what) ?? 0) <= leastPerSeed * count);
    expect(scarce).toEqual([]);
  });
}

/** A simulation in which nothing happens finds nothing. */
const LEAST = [
  ["acknowledged", 3],
  ["replayed", 0.3],
  ["committed", 3],
  ["merged", 1],
  ["expired", 1],
  ["deleted", 3],
  ["pendingDeletion", 0.1],
  ["read", 1],
] as const;
