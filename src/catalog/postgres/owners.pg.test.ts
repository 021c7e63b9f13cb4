import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { EARLIER_RECORDS, OWNED_AFTER } from "../earlier-owners.test-kit.ts";
import { migrationsBefore } from "../migrations.test-kit.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "./postgres.test-kit.ts";

describe.skipIf(lacks("PostgreSQL"))("owners in PostgreSQL", () => {
  let server: TestDatabases;
  beforeAll(async () => {
    server = await sharedTestServer();
  });
  afterAll(() => server.stop());

  it("records of an earlier version belong to whoever made them, and else to the admins", async () => {
    const url = await server.createDatabase();
    const before = await openTestCatalog(url, { migrations: migrationsBefore("owners", "postgres") });
    await before.records.transact(EARLIER_RECORDS.map((sql) => ({ sql })));
    await before.close();
    const after = await openTestCatalog(url);
    for (const { sql, rows } of OWNED_AFTER) expect(await after.records.rows(sql)).toEqual(rows);
    await after.close();
  });
});
