import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "../../catalog/postgres/postgres.test-kit.ts";
import { systemClock } from "../../core/clock.ts";
import { lacks } from "../../core/gates.test-kit.ts";
import { exampleRelease } from "../release/release.test-kit.ts";
import { checkCatalog } from "./catalog-check.ts";

const RELEASE = { format: 1, product: "engine", ...exampleRelease() } as const;

describe.skipIf(lacks("PostgreSQL"))("a catalog in PostgreSQL", () => {
  let server: TestDatabases;
  beforeAll(async () => {
    server = await sharedTestServer();
  });
  afterAll(() => server.stop());

  test("is asked which programs may run on it", async () => {
    const url = await server.createDatabase();
    const check = (writes: number, readsFrom = 1): Promise<void> => {
      const postgres = { reads_from: readsFrom, writes };
      const release = { ...RELEASE, catalog: { ...RELEASE.catalog, postgres } };
      return checkCatalog({ kind: "postgres", url }, release, systemClock);
    };
    // There is none yet.
    await check(1);
    await (await openTestCatalog(url)).close();
    await server.query(url, "UPDATE engine.meta SET schema_version = 60, oldest_schema = 50");
    await check(50);
    await expect(check(49)).rejects.toThrow(
      /in PostgreSQL: the catalog has schema 60, which needs a program that knows 50, and that version knows 49/,
    );
    await expect(check(70, 61)).rejects.toThrow("reads from 61 on; update to a version in between first");
    await server.query(url, "DROP SCHEMA engine CASCADE");
    await server.query(url, "CREATE SCHEMA engine");
    await expect(check(50)).rejects.toThrow(/cannot tell whether .* has a schema "engine" of another program/);
  });

  test("that cannot be reached is not guessed at, and its password is not shown", async () => {
    const catalog = { kind: "postgres", url: "postgres://ann:secret@127.0.0.1:1/engine" } as const;
    const checked = checkCatalog(catalog, RELEASE, systemClock);
    await expect(checked).rejects.toThrow(
      /cannot tell whether .* may run on the catalog: .*check that the server runs/,
    );
    await expect(checked).rejects.not.toThrow("secret");
  });
});
