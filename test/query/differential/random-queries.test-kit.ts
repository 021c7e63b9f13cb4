import { expect } from "vitest";
import { drawnSeed } from "../../../src/core/drawn-seed.test-kit.ts";
import { runDifferential } from "./differential.test-kit.ts";

/** So many random queries answer over fresh, sealed and mixed extents as plain DuckDB does. */
export async function checkRandomQueries(queries: number): Promise<void> {
  const seed = drawnSeed();
  const report = await runDifferential({ seed, queries });
  expect(report.differences, `seed ${seed}\n\n${report.differences.join("\n\n")}`).toEqual([]);
  expect(report.queries).toBe(queries);
  // Answers without rows and refusals show little: the generator has to be worth its time.
  expect(report.answered, `seed ${seed}`).toBeGreaterThan(queries * 0.4);
  // Of few, chance may have more refused.
  const most = Math.max(queries * 0.05, 15);
  expect(report.refused.length, `seed ${seed}\n\n${report.refused.join("\n\n")}`).toBeLessThan(most);
}
