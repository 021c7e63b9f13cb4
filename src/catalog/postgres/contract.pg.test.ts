import { afterAll, beforeAll, describe } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { ManualClock } from "../../core/clock.ts";
import { catalogContract } from "../contract.test-kit.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "./postgres.test-kit.ts";

describe.skipIf(lacks("PostgreSQL"))("PostgreSQL", () => {
  let server: TestDatabases;
  /** A catalog as it is made, to be copied: that is faster than to make it each time. */
  let born: string;
  beforeAll(async () => {
    server = await sharedTestServer();
    born = await server.createDatabase();
    const clock = new ManualClock();
    await (await openTestCatalog(born, { nowMs: () => clock.nowMs() })).close();
  });
  // Each test has left a database of its own, which on a busy machine is a lot to delete.
  afterAll(() => server.stop(), 120_000);

  catalogContract("postgres", async () => {
    const clock = new ManualClock();
    const catalog = await openTestCatalog(await server.createDatabase(born), { nowMs: () => clock.nowMs() });
    return { catalog, close: () => catalog.close(), clock };
  });
});
