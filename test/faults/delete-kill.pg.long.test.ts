import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { sharedTestServer, type TestDatabases } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { killDeletions } from "./delete-kill.ts";

describe.skipIf(lacks("PostgreSQL"))("PostgreSQL", () => {
  let server: TestDatabases;
  beforeAll(async () => {
    server = await sharedTestServer();
  }, 120_000);
  afterAll(() => server.stop(), 120_000);

  test("kill -9 in a deletion: all matching rows are gone or none", { timeout: 300_000 }, async () => {
    const seed = drawnSeed();
    const env = { ENGINE_CATALOG_URL: await server.createDatabase() };
    const found = await killDeletions({ seed, delaysMs: [1, 700], env });
    expect(found, `seed ${seed}`).toMatchObject({ problems: [] });
  });
});
