import { afterAll, beforeAll, describe } from "vitest";
import { lacks } from "../../../src/core/gates.test-kit.ts";
import {
  openTestCatalog,
  sharedTestServer,
  type TestDatabases,
} from "../../../src/catalog/postgres/postgres.test-kit.ts";
import type { CatalogDatabase } from "../../../src/catalog/catalog-database.ts";
import type { Clock } from "../../../src/core/clock.ts";
import { POSTGRES_MOVES } from "./moves.ts";
import { testJobSeeds } from "./seeds.test-kit.ts";
import type { JobDatabase } from "./world.ts";

/**
 * The same model on PostgreSQL: here statements do meet, in one database with many connections. What they come to depends
 * on the real order of things, so that a seed that fails may pass when it is run again.
 */
describe.skipIf(lacks("PostgreSQL"))("PostgreSQL", () => {
  let server: TestDatabases;
  let catalog: CatalogDatabase;
  let clock: Clock | undefined;
  beforeAll(async () => {
    server = await sharedTestServer();
    const url = await server.createDatabase();
    catalog = await openTestCatalog(url, { nowMs: () => clock?.nowMs() ?? 0 });
    for (const statement of POSTGRES_MOVES) await server.query(url, statement);
  });
  afterAll(async () => {
    await catalog.close();
    await server.stop();
  }, 120_000);

  testJobSeeds(30, async (clockOfSeed): Promise<JobDatabase> => {
    clock = clockOfSeed;
    await catalog.records.write({ sql: "TRUNCATE jobs, job_logs, job_moves RESTART IDENTITY" });
    return { records: catalog.records, isShared: true, close: async () => {} };
  });
});
