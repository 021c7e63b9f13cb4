import { afterAll, beforeAll, describe } from "vitest";
import { lacks } from "../core/gates.test-kit.ts";
import { postgresPrograms } from "../catalog/postgres/postgres-folder.test-kit.ts";
import { NO_FSYNC, openTestCatalog, startTestServer, type TestServer } from "../catalog/postgres/postgres.test-kit.ts";
import { refusedLeavesNothing } from "./refused.test-kit.ts";

const programs = postgresPrograms();

describe.skipIf(lacks("PostgreSQL"))("with PostgreSQL", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer(programs ?? "", NO_FSYNC);
  });
  afterAll(() => server.stop(), 120_000);

  refusedLeavesNothing("PostgreSQL", async () => openTestCatalog(await server.createDatabase()));
});
