import { expect, test } from "vitest";
import { drawnSeed } from "../../../src/core/drawn-seed.test-kit.ts";
import { compareQueries } from "./evaluator.test-kit.ts";

/** Some of what `evaluator.long.test.ts` draws. */
test("drawn queries give the rows that an evaluator has from the reference alone", async () => {
  const seed = drawnSeed();
  const { differences, compared } = await compareQueries(seed, 200);
  expect(differences.length, `seed ${seed}\n\n${differences.slice(0, 5).join("\n\n")}`).toBe(0);
  expect(compared).toBeGreaterThan(100);
});
