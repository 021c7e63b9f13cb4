import { afterAll, beforeAll, describe } from "vitest";
import type { OpenedCatalog } from "../../catalog/contract.ts";
import { ManualClock } from "../../core/clock.ts";
import { postgresPrograms } from "../../catalog/postgres/postgres-folder.test-kit.ts";
import {
  NO_FSYNC,
  openTestCatalog,
  startTestServer,
  type TestServer,
} from "../../catalog/postgres/postgres.test-kit.ts";
import { sandboxesContract } from "./contract.ts";
import { sandboxReportsContract } from "./contract-reports.ts";

const programs = postgresPrograms();
if (programs === undefined) process.stderr.write("sandboxes on PostgreSQL are skipped: it is not installed\n");

describe.skipIf(programs === undefined)("PostgreSQL", () => {
  let server: TestServer;
  let born: string;
  beforeAll(async () => {
    server = await startTestServer(programs ?? "", NO_FSYNC);
    born = await server.createDatabase();
    await (await openTestCatalog(born)).close();
  });
  afterAll(() => server.stop(), 120_000);

  const open = async (): Promise<OpenedCatalog> => {
    const clock = new ManualClock();
    const catalog = await openTestCatalog(await server.createDatabase(born), { nowMs: () => clock.nowMs() });
    return { catalog, clock, close: () => catalog.close() };
  };
  sandboxesContract("postgres", open);
  sandboxReportsContract("postgres", open);
});
