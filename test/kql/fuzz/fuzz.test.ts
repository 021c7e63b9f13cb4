import { expect, test } from "vitest";
import { fuzz, shown } from "./fuzz.test-kit.ts";

/** Some hundred of what `fuzz.long.test.ts` does at length. */
/** Of the run that every change passes; `npm run soak -- kql` draws others. */
const SEED = 20_261_126;

test("a mutated text is refused with its place, or becomes SQL that binds", async () => {
  const seed = Number(process.env["ENGINE_TEST_SEED"] ?? SEED);
  const report = await fuzz({ seed, texts: 500, first: 1_000_000 });
  expect(report.findings.length, `seed ${seed}\n\n${shown(report.findings)}`).toBe(0);
  expect(report.texts).toBe(500);
  expect(report.translated).toBeGreaterThan(25);
});
