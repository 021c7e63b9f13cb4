import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { runChaos } from "./chaos.ts";

/** In each mode. */
const EVENTS = 6;
/** Longer than the committer's lease. `scripts/chaos.ts` freezes the others for as long as theirs. */
const MAX_FREEZE_MS = 11_500;

describe.skipIf(lacks("PostgreSQL", "S3 server", "ps"))(
  "a cluster whose parts are killed, frozen and restarted under load",
  () => {
    test.each(["sync", "staged"] as const)(
      "loses nothing that it acknowledged, doubles nothing and never answers with a part (%s)",
      async (mode) => {
        const seed = drawnSeed();
        const report = await runChaos({ events: EVENTS, seed, mode, maxFreezeMs: MAX_FREEZE_MS });
        expect({ ...report, seed }).toMatchObject({ events: EVENTS, problems: [] });
        expect(report.requests).toBeGreaterThan(20);
        expect(report.queries).toBeGreaterThan(0);
      },
      240_000,
    );
  },
);
