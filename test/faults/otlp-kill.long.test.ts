import { expect, test } from "vitest";
import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { installed } from "../api/otlp.test-kit.ts";
import { killUnderOtlp } from "./otlp-kill.ts";

const KILLS = 5;

test(`${KILLS} × kill -9 under logs by OTLP: what is acknowledged is there, and keyed ones once`, async () => {
  const seed = drawnSeed();
  const report = await killUnderOtlp({ seed, kills: KILLS });
  expect(report, `seed ${seed}`).toMatchObject({ problems: [] });
  expect(report.requests).toBeGreaterThan(KILLS);
  expect(report.retries).toBeGreaterThan(0);
  expect(report.exported > 0).toBe(installed.status === 0);
}, 300_000);
