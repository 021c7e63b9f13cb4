import { afterAll, beforeAll, describe } from "vitest";
import { lacks } from "../core/gates.test-kit.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "../catalog/postgres/postgres.test-kit.ts";
import { refusedLeavesNothing } from "./refused.test-kit.ts";

describe.skipIf(lacks("PostgreSQL"))("with PostgreSQL", () => {
  let server: TestDatabases;
  beforeAll(async () => {
    server = await sharedTestServer();
  });
  afterAll(() => server.stop(), 120_000);

  refusedLeavesNothing("PostgreSQL", async () => openTestCatalog(await server.createDatabase()));
});
