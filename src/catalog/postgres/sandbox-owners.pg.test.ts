import { afterAll, beforeAll, describe, it } from "vitest";
import { EARLIER_SANDBOXES, expectOwners } from "../sandbox-owners.test-kit.ts";
import { EARLIER_LOGS, expectCounts } from "../sandbox-quotas.test-kit.ts";
import { MIGRATIONS } from "./migrations.ts";
import { postgresPrograms } from "./postgres-folder.test-kit.ts";
import { openTestCatalog, NO_FSYNC, startTestServer, type TestServer } from "./postgres.test-kit.ts";

const programs = postgresPrograms();

describe.skipIf(programs === undefined)("a catalog of an earlier version", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer(programs ?? "", NO_FSYNC);
  });
  afterAll(() => server.stop());

  it("opens, and its sandboxes belong to whoever made them", async () => {
    const url = await server.createDatabase();
    const before = MIGRATIONS.findIndex((migration) => migration.includes("ADD COLUMN volume_key"));
    const earlier = await openTestCatalog(url, { migrations: MIGRATIONS.slice(0, before) });
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
    const before = MIGRATIONS.findIndex((migration) => migration.includes("ADD COLUMN events_bytes"));
    const earlier = await openTestCatalog(url, { migrations: MIGRATIONS.slice(0, before) });
    for (const sql of EARLIER_LOGS.split(";\n").filter((one) => one.trim() !== "")) {
      await earlier.records.write({ sql, values: [] });
    }
    await earlier.close();
    const catalog = await openTestCatalog(url);
    await expectCounts((sql) => catalog.records.rows(sql));
    await catalog.close();
  });
});
