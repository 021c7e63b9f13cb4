import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { findPostgresPrograms } from "../../src/db/postgres/server-programs.ts";
import { sharedTestServer, type TestDatabases } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { EARLIER } from "./earlier.ts";
import { checkOpened, unpack } from "./opened.test-kit.ts";

/** Catalogs on PostgreSQL that earlier commits of this repository wrote, restored and opened by today's engine. */

const programs = findPostgresPrograms()?.folder;
const onPostgres = EARLIER.filter(({ schema }) => schema.postgres !== undefined);

describe.skipIf(lacks("PostgreSQL"))("on PostgreSQL", () => {
  let server: TestDatabases;
  beforeAll(async () => {
    server = await sharedTestServer();
  });
  afterAll(() => server.stop());

  test.each(onPostgres)("a catalog of $commit opens with all that it held", async (earlier) => {
    const { home, remove, facts } = await unpack(earlier, "postgres");
    const url = await server.createDatabase();
    const flags = ["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", `--file=${join(home, "catalog.sql")}`];
    execFileSync(join(programs ?? "", "psql"), [...flags, url], { stdio: ["ignore", "ignore", "inherit"] });
    const version = async () => {
      const [row] = await server.query(url, "SELECT schema_version FROM engine.meta");
      return Number(row?.["schema_version"]);
    };
    expect(await version()).toBe(earlier.schema.postgres);
    await checkOpened(earlier, facts, home, { ENGINE_CATALOG_URL: url });
    expect(await version()).toBeGreaterThanOrEqual(11);
    await remove();
  });
});
