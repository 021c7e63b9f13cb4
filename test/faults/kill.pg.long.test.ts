import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPostgresPrograms } from "../../src/db/postgres/server-programs.ts";
import { sharedTestServer, type TestDatabases } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { killRounds } from "./kill-rounds.ts";

const KILLS = 4;
const programs = findPostgresPrograms()?.folder;

describe.skipIf(programs === undefined)("PostgreSQL", () => {
  let server: TestDatabases;
  beforeAll(async () => {
    server = await sharedTestServer();
  }, 120_000);
  afterAll(() => server.stop(), 120_000);

  test(
    `${KILLS} × kill -9 under load: nothing acknowledged is lost, nothing doubled`,
    { timeout: 300_000 },
    async () => {
      const seed = drawnSeed();
      const report = await killRounds({ kills: KILLS, seed, catalogUrl: await server.createDatabase() });
      expect(report, `seed ${seed}`).toMatchObject({ kills: KILLS, problems: [] });
      expect(report.requests).toBeGreaterThan(KILLS);
    },
  );
});
