import { afterAll, beforeAll, describe, it } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { EARLIER_SANDBOXES, expectOwners } from "../sandbox-owners.test-kit.ts";
import { EARLIER_LOGS, expectCounts } from "../sandbox-quotas.test-kit.ts";
import { migrationsBefore } from "../migrations.test-kit.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "./postgres.test-kit.ts";

describe.skipIf(lacks("PostgreSQL"))("a catalog of an earlier version", () => {
  let server: TestDatabases;
  beforeAll(async () => {
    server = await sharedTestServer();
  });
  afterAll(() => server.stop());

  it("opens, and its sandboxes belong to whoever made them", async () => {
    const url = await server.createDatabase();
    const earlier = await openTestCatalog(url, { migrations: migrationsBefore("owners", "postgres") });
    for (const sql of EARLIER_SANDBOXES.split(";\n").filter((one) => one.trim() !== "")) {
      await earlier.records.write({ sql, values: [] });
    }
    await earlier.close();
    const catalog = await openTestCatalog(url);
    await expectOwners((sql) => catalog.records.rows(sql));
    await catalog.close();
  });

  it("opens, and its logs and volumes are counted", async () => {
    const url = await server.createDatabase();
    const earlier = await openTestCatalog(url, { migrations: migrationsBefore("sandbox quotas", "postgres") });
    for (const sql of EARLIER_LOGS.split(";\n").filter((one) => one.trim() !== "")) {
      await earlier.records.write({ sql, values: [] });
    }
    await earlier.close();
    const catalog = await openTestCatalog(url);
    await expectCounts((sql) => catalog.records.rows(sql));
    await catalog.close();
  });
});
