import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeAll, afterAll, describe, expect, it } from "vitest";
import { ManualClock } from "../../core/clock.ts";
import { silentLog } from "../../core/log.ts";
import { aFlush, aLedgerEntry, anExtent, column } from "../contract-fixtures.test-kit.ts";
import { InvariantViolation } from "../invariants.ts";
import { Connection } from "../../db/sqlite/connection.ts";
import { MIGRATIONS } from "../migrations.test-kit.ts";
import { openSqliteCatalog } from "./sqlite.ts";
import { verifyCatalog } from "./verify.ts";

let folder: string;
let sound: Buffer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "engine-catalog-"));
  const path = join(folder, "sound.db");
  const catalog = await openSqliteCatalog({
    path,
    clock: new ManualClock(),
    log: silentLog,
    migrations: MIGRATIONS,
    mode: "server",
  });
  const columns = [column("at", "timestamp"), column("body")];
  const { table } = await catalog.createTable({ database: "d", name: "t", columns });
  const dead = anExtent({ id: "dead" });
  await catalog.commit([aFlush(table, { extents: [anExtent({ id: "alive" }), dead], ledger: [aLedgerEntry("k")] })]);
  await catalog.commit([aFlush(table)]);
  await catalog.endExtents(table.id, ["dead"]);
  await catalog.close();
  sound = readFileSync(path);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** What verifying says about a copy of the sound catalog to which `sql` was done. */
function violationAfter(sql: string): string {
  const path = join(folder, "broken.db");
  writeFileSync(path, sound);
  const db = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  db.exec(sql);
  db.close();
  const connection = new Connection(path, { readOnly: true, busyTimeoutMs: 0 });
  try {
    verifyCatalog(connection);
    return "none";
  } catch (error) {
    if (error instanceof InvariantViolation) return error.invariant;
    throw error;
  } finally {
    connection.close();
  }
}

describe("verify", () => {
  it("finds nothing in a sound catalog", () => {
    expect(violationAfter("SELECT 1")).toBe("none");
  });

  it.each([
    ["snapshotTimesNeverDecrease", "UPDATE snapshots SET committed_at_ms = 1 WHERE id = 2"],
    ["oldestSnapshotExists", "UPDATE meta SET oldest_snapshot = 9"],
    ["oldestSnapshotExists", "UPDATE tables SET oldest_snapshot = 9"],
    ["extentsAreNoNewerThanTheirRows", "UPDATE extents SET newest_ns = max_at_ns + 1"],
    ["pendingDeletionsAreUnknown", "INSERT INTO condemned_extents VALUES ('dead')"],
    ["extentBeginsByHead", "UPDATE extents SET begin_snapshot = 9 WHERE id = 'alive'"],
    ["extentBeginsByHead", "DELETE FROM snapshots WHERE id > 0"],
    ["extentEndsAfterItBegins", "UPDATE extents SET end_snapshot = begin_snapshot WHERE id = 'dead'"],
    ["extentEndsAfterItBegins", "UPDATE extents SET end_snapshot = 9 WHERE id = 'dead'"],
    ["extentEndsAfterItBegins", "UPDATE extents SET deleted_at_ms = NULL WHERE id = 'dead'"],
    ["extentIsWellFormed", "UPDATE extents SET row_count = 0"],
    ["extentIsWellFormed", "UPDATE extents SET checksum = 'x'"],
    ["extentIsWellFormed", "UPDATE extents SET min_at_ns = max_at_ns + 1"],
    ["spanClassMatchesSpan", "UPDATE extents SET span_class = 63"],
    ["extentsHaveStatistics", "DELETE FROM extent_stats"],
    ["statisticsNameKnownColumns", "UPDATE extent_stats SET column_ids = '[7]'"],
    ["nanosecondColumnsAreStored", "UPDATE extents SET ns_column_ids = '[7]'"],
    ["statisticsNameKnownColumns", "UPDATE extent_stats SET column_ids = '[1,1]', stats = '[[0,0],[],[]]'"],
    ["filtersAreOneToAColumn", "INSERT INTO extent_filters SELECT seq, 7, 'values', x'' FROM extents"],
    ["referencesExist", "INSERT INTO extent_filters VALUES (99, 1, 'values', x'')"],
    ["nullCountFitsRows", "UPDATE extent_stats SET stats = '[[11],[],[]]'"],
    ["totalsMatchLiveExtents", "UPDATE table_totals SET row_count = row_count + 1"],
    ["totalsMatchLiveExtents", "UPDATE extents SET end_snapshot = NULL, deleted_at_ms = NULL"],
    ["ledgerPointsToSnapshot", "UPDATE ledger SET snapshot_id = 9"],
    ["ledgerPointsToSnapshot", "DELETE FROM snapshots WHERE id = 1"],
    ["columnIdsAreNeverReused", "UPDATE tables SET next_column_id = 2"],
    ["columnNamesAreUnique", "UPDATE columns SET name = 'AT', folded_name = 'at' || char(0) WHERE id = 2"],
    ["columnsComeByTheSchemaVersion", "UPDATE columns SET since_version = 2 WHERE id = 2"],
    ["namesAreFolded", "UPDATE columns SET folded_name = 'Body' WHERE id = 2"],
    ["namesAreFolded", "UPDATE tables SET folded_name = 'T'"],
    ["referencesExist", "DELETE FROM databases"],
  ])("finds that %s is broken by %s", (invariant, sql) => {
    expect(violationAfter(sql)).toBe(invariant);
  });

  it("finds damage in the file's own structure", () => {
    const damage =
      "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'ledger_by_age'; PRAGMA writable_schema = OFF";
    expect(violationAfter(damage)).toBe("fileIsIntact");
  });
});
