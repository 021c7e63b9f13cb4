import { expect, test } from "vitest";
import { drawnSeed } from "../../../src/core/drawn-seed.test-kit.ts";
import { fuzz, shown } from "./fuzz.test-kit.ts";

/** Some hundred of what `fuzz.long.test.ts` does at length. */
test("a mutated text is refused with its place, or becomes SQL that binds", async () => {
  const seed = drawnSeed();
  const report = await fuzz({ seed, texts: 500, first: 1_000_000 });
  expect(report.findings.length, `seed ${seed}\n\n${shown(report.findings)}`).toBe(0);
  expect(report.texts).toBe(500);
  expect(report.translated).toBeGreaterThan(25);
});
