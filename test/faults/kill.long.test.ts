import { expect, test } from "vitest";
import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { killRounds } from "./kill-rounds.ts";

const KILLS = 6;

test(`${KILLS} × kill -9 under load: nothing acknowledged is lost, nothing doubled`, { timeout: 180_000 }, async () => {
  const seed = drawnSeed();
  const report = await killRounds({ kills: KILLS, seed });
  expect(report, `seed ${seed}`).toMatchObject({ kills: KILLS, problems: [] });
  expect(report.requests).toBeGreaterThan(KILLS);
});
