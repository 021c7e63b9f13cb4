import { expect, test } from "vitest";
import { fuzz, shown } from "./fuzz.test-kit.ts";

/** `ENGINE_TEST_KQL_TEXTS`: how many; `node scripts/kql-fuzz.ts` goes on for longer. */
const TEXTS = Number(process.env["ENGINE_TEST_KQL_TEXTS"] ?? 1_000);

/** Of the run that every change passes; `npm run soak -- kql` draws others. */
const SEED = 20_261_126;

test("the texts of all cases and their mutations are refused with their place, or become SQL that binds", async () => {
  const seed = Number(process.env["ENGINE_TEST_SEED"] ?? SEED);
  const report = await fuzz({ seed, texts: TEXTS });
  expect(report.findings.length, `seed ${seed}\n\n${shown(report.findings)}`).toBe(0);
  expect(report.texts).toBe(TEXTS);
  expect(report.translated).toBeGreaterThan(TEXTS / 20);
}, 3_600_000);
