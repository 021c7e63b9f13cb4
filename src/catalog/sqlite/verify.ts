import type { ColumnRecord, Snapshot } from "../catalog.ts";
import { foldName } from "../../core/names.ts";
import {
  columnIdsAreNeverReused,
  columnNamesAreUnique,
  condemnedExtentsAreUnknown,
  extentBeginsByHead,
  extentEndsAfterItBegins,
  extentIsWellFormed,
  filtersAreOneToAColumn,
  headStrictlyIncreases,
  InvariantViolation,
  ledgerPointsToSnapshot,
  nullCountFitsRows,
  snapshotTimesNeverDecrease,
  statisticsNameKnownColumns,
  totalsMatchLiveExtents,
  type TableTotals,
} from "../invariants.ts";
import type { Connection } from "./connection.ts";
import { everyExtent, spanClassOf } from "./extents.ts";
import { toColumn } from "./schema.ts";
import { readHead, toSnapshot } from "./snapshots.ts";
import { decodeStats, ListParser } from "../stats-encoding.ts";
import { readTotals } from "./totals.ts";

/** Checks the file and then every invariant, in one read transaction. Throws at the first that does not hold. */
export function verifyCatalog(connection: Connection): void {
  verifyFile(connection);
  verifySnapshots(connection);
  const columns = verifyTables(connection);
  verifyExtents(connection, readHead(connection), columns);
  verifyLedger(connection);
  verifyCondemned(connection);
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
  let previous: Snapshot | undefined;
  for (const row of connection.statement("SELECT id, committed_at_ms FROM snapshots ORDER BY id").iterate()) {
    const snapshot = toSnapshot(row);
    if (previous !== undefined) {
      headStrictlyIncreases(previous, snapshot);
      snapshotTimesNeverDecrease(previous, snapshot);
    }
    previous = snapshot;
  }
  oldestSnapshotExists(connection);
}

function oldestSnapshotExists(connection: Connection): void {
  const floors = "SELECT oldest_snapshot AS id FROM meta UNION SELECT oldest_snapshot FROM tables";
  const [missing] = connection.all(`${floors} EXCEPT SELECT id FROM snapshots`);
  if (missing === undefined) return;
  const text = `the oldest readable snapshot ${String(missing["id"])} does not exist`;
  throw new InvariantViolation("oldestSnapshotExists", text);
}

/** Column names by id, by table id. */
type KnownColumns = Map<number, Map<number, string>>;

function verifyTables(connection: Connection): KnownColumns {
  const known: KnownColumns = new Map();
  for (const row of connection.all("SELECT id, name, folded_name, next_column_id, schema_version FROM tables")) {
    const id = Number(row["id"]);
    namesAreFolded(`table ${id}`, row["name"], row["folded_name"]);
    const columns = verifyColumns(connection, id, Number(row["schema_version"]));
    columnIdsAreNeverReused(id, columns, Number(row["next_column_id"]));
    columnNamesAreUnique(id, columns);
    known.set(id, new Map(columns.map((column) => [column.id, column.name])));
  }
  return known;
}

function verifyColumns(connection: Connection, tableId: number, schemaVersion: number): ColumnRecord[] {
  const sql = "SELECT * FROM columns WHERE table_id = ? ORDER BY id";
  return connection.all(sql, tableId).map((row) => {
    const column = toColumn(row);
    namesAreFolded(`column ${column.id} of table ${tableId}`, row["name"], row["folded_name"]);
    const since = Number(row["since_version"]);
    if (since >= 1 && since <= schemaVersion) return column;
    const text = `column ${column.id} of table ${tableId} is of version ${since}, the table of ${schemaVersion}`;
    throw new InvariantViolation("columnsComeByTheSchemaVersion", text);
  });
}

function namesAreFolded(what: string, name: unknown, folded: unknown): void {
  if (foldName(String(name)) === folded) return;
  throw new InvariantViolation("namesAreFolded", `${what} is stored as ${String(name)} and ${String(folded)}`);
}

function verifyExtents(connection: Connection, head: Snapshot, columns: KnownColumns): void {
  const totals = new Map<number, TableTotals>([...columns.keys()].map((id) => [id, NO_EXTENTS]));
  const verifyStats = statsVerifier(connection, columns);
  for (const { seq, spanClass, newestNs, summary } of everyExtent(connection)) {
    extentIsWellFormed(summary);
    extentBeginsByHead(summary, head);
    extentEndsAfterItBegins(summary, head);
    if (spanClass !== spanClassOf(summary.minAtNs, summary.maxAtNs)) {
      throw new InvariantViolation("spanClassMatchesSpan", `extent ${summary.id} has the class ${spanClass}`);
    }
    if (newestNs > summary.maxAtNs) {
      throw new InvariantViolation("extentsAreNoNewerThanTheirRows", `extent ${summary.id} is as new as ${newestNs}`);
    }
    verifyStats(seq, summary);
    if (summary.endSnapshot !== undefined) continue;
    const sum = totals.get(summary.tableId) ?? NO_EXTENTS;
    totals.set(summary.tableId, {
      rows: sum.rows + summary.rows,
      extents: sum.extents + 1,
      sizeBytes: sum.sizeBytes + summary.sizeBytes,
    });
  }
  for (const [tableId, counted] of totals) totalsMatchLiveExtents(tableId, readTotals(connection, tableId), counted);
}

const NO_EXTENTS: TableTotals = { rows: 0, extents: 0, sizeBytes: 0 };

type StatsVerifier = (seq: number, extent: { id: string; tableId: number; rows: number }) => void;

function statsVerifier(connection: Connection, columns: KnownColumns): StatsVerifier {
  const parser = new ListParser<number>();
  const idsOf = new Map([...columns].map(([tableId, names]) => [tableId, new Set(names.keys())]));
  return (seq, { id, tableId, rows }) => {
    const row = connection.get("SELECT column_ids, stats FROM extent_stats WHERE seq = ?", seq);
    if (row === undefined) throw new InvariantViolation("extentsHaveStatistics", `extent ${id} has none`);
    const ids = parser.parse(String(row["column_ids"]));
    statisticsNameKnownColumns(id, ids, idsOf.get(tableId) ?? new Set());
    const names = ids.map((columnId) => columns.get(tableId)?.get(columnId) ?? "");
    for (const { name, nullCount } of decodeStats(names, String(row["stats"]))) {
      nullCountFitsRows(id, name, nullCount, rows);
    }
    const filters = connection.all("SELECT column_id, kind FROM extent_filters WHERE seq = ?", seq);
    const keys = filters.map((filter) => ({ columnId: Number(filter["column_id"]), kind: String(filter["kind"]) }));
    filtersAreOneToAColumn(id, keys, idsOf.get(tableId) ?? new Set());
  };
}

function verifyLedger(connection: Connection): void {
  const sql =
    "SELECT l.table_id, l.snapshot_id FROM ledger l LEFT JOIN snapshots s ON s.id = l.snapshot_id WHERE s.id IS NULL";
  const [row] = connection.all(`${sql} LIMIT 1`);
  if (row !== undefined) ledgerPointsToSnapshot(Number(row["table_id"]), Number(row["snapshot_id"]), false);
}

function verifyCondemned(connection: Connection): void {
  const [row] = connection.all("SELECT id FROM condemned_extents JOIN extents USING (id) LIMIT 1");
  if (row !== undefined) condemnedExtentsAreUnknown(String(row["id"]), true);
}
