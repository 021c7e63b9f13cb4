import { expect, test } from "vitest";
import { killRounds } from "./kill-rounds.ts";

const KILLS = 6;

test(`${KILLS} × kill -9 under load: nothing acknowledged is lost, nothing doubled`, { timeout: 180_000 }, async () => {
  const seed = Number(process.env.ENGINE_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const report = await killRounds({ kills: KILLS, seed });
  expect(report, `seed ${seed}`).toMatchObject({ kills: KILLS, problems: [] });
  expect(report.requests).toBeGreaterThan(KILLS);
});
