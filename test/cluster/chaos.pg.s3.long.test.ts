import { describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { runChaos } from "./chaos.ts";

/** In both modes together 20. */
const EVENTS = 10;
/**
 * With these every role but the worker meets something, PostgreSQL and the S3 server are killed, a committer is frozen,
 * and so is PostgreSQL in one mode and an ingest server in the other.
 */
const SEEDS = { sync: 33_364, staged: 16_811 };
/** Longer than the committer's lease. `scripts/chaos.ts` freezes the others for as long as theirs. */
const MAX_FREEZE_MS = 11_500;

describe.skipIf(lacks("PostgreSQL", "S3 server", "ps"))(
  "a cluster whose parts are killed, frozen and restarted under load",
  () => {
    test.each(["sync", "staged"] as const)(
      "loses nothing that it acknowledged, doubles nothing and never answers with a part (%s)",
      async (mode) => {
        const seed = Number(process.env["ENGINE_TEST_SEED"] ?? SEEDS[mode]);
        const report = await runChaos({ events: EVENTS, seed, mode, maxFreezeMs: MAX_FREEZE_MS });
        expect({ ...report, seed }).toMatchObject({ events: EVENTS, problems: [] });
        expect(report.requests).toBeGreaterThan(100);
        expect(report.queries).toBeGreaterThan(0);
      },
      240_000,
    );
  },
);
