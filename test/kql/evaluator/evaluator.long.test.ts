import { expect, test } from "vitest";
import { compareQueries } from "./evaluator.test-kit.ts";

/** `ENGINE_TEST_KQL_QUERIES`: how many. */
const QUERIES = Number(process.env["ENGINE_TEST_KQL_QUERIES"] ?? 300);

/** Of the run that every change passes; `npm run soak -- kql` draws others. */
const SEED = 20_261_126;

test("many drawn queries give the rows that an evaluator has from the reference alone", async () => {
  const seed = Number(process.env["ENGINE_TEST_SEED"] ?? SEED);
  const { differences, compared } = await compareQueries(seed, QUERIES);
  expect(differences.length, `seed ${seed}\n\n${differences.slice(0, 10).join("\n\n")}`).toBe(0);
  expect(compared).toBeGreaterThan(QUERIES / 2);
}, 3_600_000);
