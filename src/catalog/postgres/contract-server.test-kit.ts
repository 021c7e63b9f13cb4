import { afterAll, beforeAll, describe } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { ManualClock } from "../../core/clock.ts";
import type { OpenedCatalog } from "../contract.test-kit.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "./postgres.test-kit.ts";

/**
 * Runs contracts on catalogs of PostgreSQL: one server for all of them, and a fresh database for each `open`. Skipped, with
 * a line that names `what`, where PostgreSQL is not installed.
 */
export function onPostgres(what: string, contracts: (open: () => Promise<OpenedCatalog>) => void): void {
  describe.skipIf(lacks("PostgreSQL"))("PostgreSQL", () => {
    let server: TestDatabases;
    let born: string;
    beforeAll(async () => {
      server = await sharedTestServer();
      born = await server.createDatabase();
      await (await openTestCatalog(born)).close();
    });
    afterAll(() => server.stop(), 120_000);

    contracts(async () => {
      const clock = new ManualClock();
      const catalog = await openTestCatalog(await server.createDatabase(born), { nowMs: () => clock.nowMs() });
      return { catalog, clock, close: () => catalog.close() };
    });
  });
}
