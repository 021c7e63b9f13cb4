import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { failureOf, aFlush, aLedgerEntry, anExtent, column } from "../contract-fixtures.test-kit.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "./postgres.test-kit.ts";

const STATS = `'[[11],[null],[null],[null]]'`;

const DAMAGE: readonly (readonly [sql: string, invariant: string])[] = [
  ["UPDATE engine.head SET snapshot_id = 1", "headIsTheNewestSnapshot"],
  ["UPDATE engine.snapshots SET committed_at_ms = 1 WHERE id = 1", "snapshotTimesNeverDecrease"],
  ["UPDATE engine.tables SET next_column_id = 2", "columnIdsAreNeverReused"],
  ["UPDATE engine.tables SET folded_name = 'x'", "namesAreFolded"],
  ["UPDATE engine.columns SET since_version = 9", "columnsComeByTheSchemaVersion"],
  ["UPDATE engine.extents SET begin_snapshot = 9", "extentBeginsByHead"],
  ["UPDATE engine.extents SET end_snapshot = 2", "extentEndsAfterItBegins"],
  ["UPDATE engine.extents SET row_count = 0", "extentIsWellFormed"],
  ["UPDATE engine.extents SET newest_ns = max_at_ns + 1", "extentsAreNoNewerThanTheirRows"],
  ["UPDATE engine.extents SET column_ids = '[9]'", "statisticsNameKnownColumns"],
  ["UPDATE engine.extents SET ns_column_ids = '[9]'", "nanosecondColumnsAreStored"],
  [`UPDATE engine.extent_stats SET stats = ${STATS}`, "nullCountFitsRows"],
  ["DELETE FROM engine.extent_stats", "extentsHaveStatistics"],
  ["INSERT INTO engine.extent_filters SELECT seq, 9, 'values', '' FROM engine.extents", "filtersAreOneToAColumn"],
  ["INSERT INTO engine.extent_stats VALUES (99, '[[],[],[]]')", "referencesExist"],
  ["UPDATE engine.horizon SET oldest_snapshot = 9", "referencesExist"],
  ["UPDATE engine.extents SET table_id = 9", "referencesExist"],
  ["UPDATE engine.head SET last_seq = 0", "referencesExist"],
  ["UPDATE engine.table_totals SET row_count = 9", "totalsMatchLiveExtents"],
  ["UPDATE engine.ledger SET snapshot_id = 9", "ledgerPointsToSnapshot"],
  ["DELETE FROM engine.snapshots WHERE id = 1", "ledgerPointsToSnapshot"],
  ["UPDATE engine.tables SET oldest_snapshot = 9", "referencesExist"],
  ["INSERT INTO engine.condemned_extents SELECT id FROM engine.extents", "pendingDeletionsAreUnknown"],
];

describe.skipIf(lacks("PostgreSQL"))("verification on PostgreSQL", () => {
  let server: TestDatabases;
  let sound: string;
  beforeAll(async () => {
    server = await sharedTestServer();
    sound = await server.createDatabase();
    const catalog = await openTestCatalog(sound);
    const columns = [column("at", "timestamp"), column("body")];
    const { table } = await catalog.createTable({ database: "d", name: "t", columns });
    for (const key of ["a", "b"]) {
      await catalog.commit([aFlush(table, { extents: [anExtent()], ledger: [aLedgerEntry(key)] })]);
    }
    await catalog.verify();
    await catalog.close();
  });
  afterAll(() => server.stop());

  it.each(DAMAGE)("sees what is wrong after %s", async (sql, invariant) => {
    const url = await server.createDatabase(sound);
    await server.query(url, sql);
    const catalog = await openTestCatalog(url);
    expect(await failureOf(catalog.verify())).toContain(`catalog invariant ${invariant} does not hold`);
    await catalog.close();
  });
});
