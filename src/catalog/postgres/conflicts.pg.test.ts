import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS } from "../../core/limits.ts";
import type { Catalog, TableRecord } from "../catalog.ts";
import { aFlush, anExtent, column, committed, failureOf } from "../contract-fixtures.ts";
import { postgresPrograms } from "./postgres-folder.test-kit.ts";
import { NO_FSYNC, openTestCatalog, startTestServer, type TestServer } from "./postgres.test-kit.ts";

const programs = postgresPrograms();
if (programs === undefined) process.stderr.write("conflicts are not tested: PostgreSQL is not installed\n");

describe.skipIf(programs === undefined)("a commit that the server rolls back", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer(programs ?? "", NO_FSYNC);
  });
  afterAll(() => server.stop());

  /** Runs a test on a table whose first so many commits fail with the SQLSTATE, and counts the attempts. */
  const withFailures = async (
    times: number,
    sqlState: string,
    test: (catalog: Catalog, table: TableRecord, attempts: () => Promise<number>) => Promise<void>,
  ) => {
    const url = await server.createDatabase();
    const catalog = await openTestCatalog(url);
    const { table } = await catalog.createTable({ database: "d", name: "t", columns: [column("at", "timestamp")] });
    // A sequence is not rolled back.
    for (const statement of [
      "CREATE SEQUENCE public.attempts",
      `CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         IF nextval('public.attempts') <= ${times} THEN RAISE EXCEPTION 'on purpose' USING ERRCODE = '${sqlState}'; END IF;
         RETURN NEW;
       END $$`,
      "CREATE TRIGGER fail BEFORE INSERT ON engine.snapshots FOR EACH ROW EXECUTE FUNCTION public.fail()",
    ]) {
      await server.query(url, statement);
    }
    const attempts = async () =>
      Number((await server.query(url, "SELECT last_value FROM public.attempts"))[0]?.["last_value"]);
    await test(catalog, table, attempts);
    await catalog.verify();
    await catalog.close();
  };

  it.each(["40001", "40P01"])("is repeated after %s, and stored once", async (sqlState) => {
    await withFailures(5, sqlState, async (catalog, table, attempts) => {
      const [outcome] = await catalog.commit([aFlush(table)]);
      expect(committed(outcome).snapshot.id).toBe(1);
      expect(await attempts()).toBe(6);
      expect(await catalog.tableStats(table.id)).toMatchObject({ extents: 1 });
    });
  });

  it("is given up after 20 attempts, and nothing is stored", async () => {
    await withFailures(1_000, "40001", async (catalog, table, attempts) => {
      expect(await failureOf(catalog.commit([aFlush(table)]))).toBe("ingest_failed");
      expect(await attempts()).toBe(LIMITS.commitAttempts);
      expect((await catalog.head()).id).toBe(0);
    });
  });

  it.each([
    ["53100", "insufficient_storage"],
    ["25006", "insufficient_storage"],
    ["53200", "unavailable"],
  ])("is not repeated after %s, which is %s", async (sqlState, code) => {
    await withFailures(1, sqlState, async (catalog, table, attempts) => {
      const extent = anExtent();
      expect(await failureOf(catalog.commit([aFlush(table, { extents: [extent] })]))).toBe(code);
      expect(await attempts()).toBe(1);
      expect(committed((await catalog.commit([aFlush(table, { extents: [extent] })]))[0]).snapshot.id).toBe(1);
    });
  });
});
