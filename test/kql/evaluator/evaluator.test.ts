import { expect, test } from "vitest";
import { compareQueries } from "./evaluator.test-kit.ts";

/** Some of what `evaluator.long.test.ts` draws. */
/** Of the run that every change passes; `npm run soak -- kql` draws others. */
const SEED = 20_261_126;

test("drawn queries give the rows that an evaluator has from the reference alone", async () => {
  const seed = Number(process.env["ENGINE_TEST_SEED"] ?? SEED);
  const { differences, compared } = await compareQueries(seed, 100);
  expect(differences.length, `seed ${seed}\n\n${differences.slice(0, 5).join("\n\n")}`).toBe(0);
  expect(compared).toBeGreaterThan(50);
});
