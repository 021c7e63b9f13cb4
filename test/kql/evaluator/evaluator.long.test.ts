import { expect, test } from "vitest";
import { drawnSeed } from "../../../src/core/drawn-seed.test-kit.ts";
import { compareQueries } from "./evaluator.test-kit.ts";

/** `ENGINE_TEST_KQL_QUERIES`: how many. */
const QUERIES = Number(process.env["ENGINE_TEST_KQL_QUERIES"] ?? 5_000);

test("many drawn queries give the rows that an evaluator has from the reference alone", async () => {
  const seed = drawnSeed();
  const { differences, compared } = await compareQueries(seed, QUERIES);
  expect(differences.length, `seed ${seed}\n\n${differences.slice(0, 10).join("\n\n")}`).toBe(0);
  expect(compared).toBeGreaterThan(QUERIES / 2);
}, 3_600_000);
