import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { sleep, systemClock } from "../../core/clock.ts";
import { LIMITS } from "../../core/limits.ts";
import type { Catalog, TableRecord } from "../catalog.ts";
import { aFlush, aLedgerEntry, anExtent, column, committed, failureOf } from "../contract-fixtures.test-kit.ts";
import { KEYS_FREE_FOR_MS } from "../flush-checks.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "./postgres.test-kit.ts";

describe.skipIf(lacks("PostgreSQL"))("a commit that waits for another one", () => {
  it("comes too late by the time at which its turn comes, not by that at which it was sent", async () => {
    const server = await sharedTestServer();
    const url = await server.createDatabase();
    const catalog = await openTestCatalog(url);
    const { table } = await catalog.createTable({ database: "d", name: "t", columns: [column("at", "timestamp")] });
    const { atMs } = await catalog.lookUpKey(table.id, "k");
    // In time when it is sent, and not any more when the other lets go of the head.
    const flush = () => aFlush(table, { keysFreeAtMs: atMs - KEYS_FREE_FOR_MS + 1_500, ledger: [aLedgerEntry("k")] });
    const holding = server.query(url, "SELECT pg_sleep(3) FROM (SELECT 1 FROM engine.head FOR UPDATE) AS head");
    await sleep(systemClock, 300);
    const [outcome] = await catalog.commit([flush()]);
    expect(outcome).toMatchObject({ kind: "too_late" });
    await holding;
    expect((await catalog.head()).id).toBe(0);
    const again = aFlush(table, { keysFreeAtMs: atMs, ledger: [aLedgerEntry("k")] });
    expect(committed((await catalog.commit([again]))[0]).snapshot.id).toBe(1);
    await catalog.close();
    await server.stop();
  });
});

describe.skipIf(lacks("PostgreSQL"))("a commit that the server rolls back", () => {
  let server: TestDatabases;
  beforeAll(async () => {
    server = await sharedTestServer();
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
