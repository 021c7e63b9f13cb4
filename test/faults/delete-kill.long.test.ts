import { expect, test } from "vitest";
import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { killDeletions } from "./delete-kill.ts";

test(
  "kill -9 in a deletion: all matching rows are gone or none, and it comes to its end",
  { timeout: 300_000 },
  async () => {
    const seed = drawnSeed();
    // Some come before the commit and some after it, on any machine; where exactly is chance.
    const found = await killDeletions({ seed, delaysMs: [1, 250, 700, 2_500] });
    expect(found, `seed ${seed}`).toMatchObject({ problems: [] });
    expect(found.before).toBeGreaterThan(0);
  },
);
