import type { Snapshot } from "../catalog.ts";
import { pendingDeletionsAreUnknown, InvariantViolation, ledgerPointsToSnapshot } from "../invariants.ts";
import { toBigint } from "../rows.ts";
import { ExtentVerifier, SnapshotVerifier, verifyTable, type ExtentParts, type KnownColumns } from "../verification.ts";
import type { Connection, Row } from "../../db/sqlite/connection.ts";
import { everyExtent, spanClassOf } from "./extents.ts";
import { readHead } from "./snapshots.ts";
import { readTotals } from "./totals.ts";

/** Checks the file and then every invariant, in one read transaction. Throws at the first that does not hold. */
export function verifyCatalog(connection: Connection): void {
  verifyFile(connection);
  verifySnapshots(connection);
  const columns = verifyTables(connection);
  verifyExtents(connection, readHead(connection), columns);
  verifyLedger(connection);
  verifyPendingDeletions(connection);
}

function verifyFile(connection: Connection): void {
  const damage = Object.values(connection.get("PRAGMA integrity_check(1)") ?? {})[0];
  if (damage !== "ok") throw new InvariantViolation("fileIsIntact", String(damage));
  const [dangling] = connection.all("PRAGMA foreign_key_check");
  if (dangling === undefined) return;
  const text = `a row of ${String(dangling["table"])} points to a row of ${String(dangling["parent"])} that is not there`;
  throw new InvariantViolation("referencesExist", text);
}

function verifySnapshots(connection: Connection): void {
  const verifier = new SnapshotVerifier();
  const rows = connection.statement("SELECT id, committed_at_ms FROM snapshots ORDER BY id").iterate();
  for (const row of rows) verifier.add(row);
  oldestSnapshotExists(connection);
}

/** Of all tables, and of those whose own is later: an earlier one says nothing, and may have been forgotten. */
const FLOORS =
  "SELECT oldest_snapshot AS id FROM meta UNION " +
  "SELECT max(t.oldest_snapshot, m.oldest_snapshot) FROM tables t, meta m UNION " +
  "SELECT max(t.readable_from, m.oldest_snapshot) FROM tables t, meta m";

function oldestSnapshotExists(connection: Connection): void {
  const [missing] = connection.all(`${FLOORS} EXCEPT SELECT id FROM snapshots`);
  if (missing === undefined) return;
  const text = `the oldest readable snapshot ${String(missing["id"])} does not exist`;
  throw new InvariantViolation("oldestSnapshotExists", text);
}

function verifyTables(connection: Connection): KnownColumns {
  const sql = "SELECT * FROM columns WHERE table_id = ? ORDER BY id";
  const tables = connection.all("SELECT * FROM tables");
  return new Map(
    tables.map((table) => {
      const id = Number(table["id"]);
      return [id, verifyTable(table, connection.all(sql, id))];
    }),
  );
}

function verifyExtents(connection: Connection, head: Snapshot, columns: KnownColumns): void {
  const verifier = new ExtentVerifier(head, columns);
  for (const row of everyExtent(connection)) {
    verifier.add(row, partsOf(connection, Number(row["seq"])));
    verifySpanClass(row);
  }
  verifier.verifyTotals((tableId) => readTotals(connection, tableId));
}

function verifySpanClass(row: Row): void {
  const spanClass = Number(row["span_class"]);
  if (spanClass === spanClassOf(toBigint(row["min_at_ns"]), toBigint(row["max_at_ns"]))) return;
  throw new InvariantViolation("spanClassMatchesSpan", `extent ${String(row["id"])} has the class ${spanClass}`);
}

function partsOf(connection: Connection, seq: number): ExtentParts {
  const stats = connection.get("SELECT column_ids, stats FROM extent_stats WHERE seq = ?", seq);
  const filters = connection.all("SELECT column_id, kind FROM extent_filters WHERE seq = ?", seq);
  return {
    columnIds: stats?.["column_ids"],
    stats: stats?.["stats"],
    filters: filters.map((filter) => ({ columnId: Number(filter["column_id"]), kind: String(filter["kind"]) })),
  };
}

// Snapshots before the oldest readable one may have been forgotten.
const DANGLING_ENTRY =
  "SELECT table_id, snapshot_id FROM ledger WHERE snapshot_id >= (SELECT oldest_snapshot FROM meta) " +
  "AND snapshot_id NOT IN (SELECT id FROM snapshots) LIMIT 1";

function verifyLedger(connection: Connection): void {
  const row = connection.get(DANGLING_ENTRY);
  if (row !== undefined) ledgerPointsToSnapshot(Number(row["table_id"]), Number(row["snapshot_id"]), false);
}

function verifyPendingDeletions(connection: Connection): void {
  const [row] = connection.all("SELECT id FROM condemned_extents JOIN extents USING (id) LIMIT 1");
  if (row !== undefined) pendingDeletionsAreUnknown(String(row["id"]), true);
}
