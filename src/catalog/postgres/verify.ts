import { foldName } from "../../core/names.ts";
import type { ColumnRecord, ExtentSummary, Snapshot } from "../catalog.ts";
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
import { decodeStats, ListParser } from "../stats-encoding.ts";
import type { Connection, Row } from "./connection.ts";
import { FIELDS, toSummary } from "./extents.ts";
import { toColumn } from "./schema.ts";
import { toSnapshot } from "./snapshots.ts";

/** Checks every invariant on one state of the database. Throws at the first that does not hold. */
export async function verifyCatalog(connection: Connection): Promise<void> {
  await connection.snapshot(async () => {
    const head = await verifySnapshots(connection);
    const columns = await verifyTables(connection);
    await verifyExtents(connection, head, columns);
    await verifyReferences(connection);
  });
}

/** Rows per statement: what is walked through may be large. */
const ROWS_PER_STATEMENT = 5_000;

/** All rows of a query that takes the greatest key so far and a limit, in the order of the key. */
async function* walk(connection: Connection, sql: string, key: string): AsyncGenerator<Row> {
  for (let last = "-1"; ;) {
    const rows = await connection.query(`${sql} LIMIT ${ROWS_PER_STATEMENT}`, [last]);
    yield* rows;
    if (rows.length < ROWS_PER_STATEMENT) return;
    last = String(rows.at(-1)?.[key]);
  }
}

async function verifySnapshots(connection: Connection): Promise<Snapshot> {
  const [row] = await connection.query("SELECT snapshot_id AS id, committed_at_ms FROM engine.head");
  if (row === undefined) throw new InvariantViolation("headExists", "there is no head");
  const head = toSnapshot(row);
  let previous: Snapshot | undefined;
  const sql = "SELECT id, committed_at_ms FROM engine.snapshots WHERE id > $1::bigint ORDER BY id";
  for await (const found of walk(connection, sql, "id")) {
    const snapshot = toSnapshot(found);
    if (previous !== undefined) {
      headStrictlyIncreases(previous, snapshot);
      snapshotTimesNeverDecrease(previous, snapshot);
    }
    previous = snapshot;
  }
  if (previous?.id !== head.id || previous.committedAtMs !== head.committedAtMs) {
    const text = `the head is ${JSON.stringify(head)}, the newest snapshot ${JSON.stringify(previous)}`;
    throw new InvariantViolation("headIsTheNewestSnapshot", text);
  }
  return head;
}

/** Column names by id, by table id. */
type KnownColumns = Map<number, Map<number, string>>;

async function verifyTables(connection: Connection): Promise<KnownColumns> {
  const rows = await connection.query("SELECT * FROM engine.columns ORDER BY table_id, id");
  const columnRows = Map.groupBy(rows, (row) => Number(row["table_id"]));
  const known: KnownColumns = new Map();
  for (const row of await connection.query("SELECT * FROM engine.tables")) {
    const id = Number(row["id"]);
    namesAreFolded(`table ${id}`, row);
    const version = Number(row["schema_version"]);
    const columns = (columnRows.get(id) ?? []).map((column) => verifiedColumn(column, id, version));
    columnIdsAreNeverReused(id, columns, Number(row["next_column_id"]));
    columnNamesAreUnique(id, columns);
    known.set(id, new Map(columns.map((column) => [column.id, column.name])));
  }
  return known;
}

function verifiedColumn(row: Row, tableId: number, schemaVersion: number): ColumnRecord {
  const column = toColumn(row);
  namesAreFolded(`column ${column.id} of table ${tableId}`, row);
  const since = Number(row["since_version"]);
  if (since >= 1 && since <= schemaVersion) return column;
  const text = `column ${column.id} of table ${tableId} is of version ${since}, the table of ${schemaVersion}`;
  throw new InvariantViolation("columnsComeByTheSchemaVersion", text);
}

function namesAreFolded(what: string, row: Row): void {
  const [name, folded] = [String(row["name"]), String(row["folded_name"])];
  if (foldName(name) === folded) return;
  throw new InvariantViolation("namesAreFolded", `${what} is stored as ${name} and ${folded}`);
}

const NO_EXTENTS: TableTotals = { rows: 0, extents: 0, sizeBytes: 0 };

const EXTENTS =
  `SELECT ${FIELDS}, e.newest_ns, e.column_ids, s.stats, ` +
  "(SELECT json_agg(json_build_object('columnId', f.column_id, 'kind', f.kind)) FROM engine.extent_filters f " +
  "WHERE f.seq = e.seq) AS filters FROM engine.extents e LEFT JOIN engine.extent_stats s ON s.seq = e.seq " +
  "WHERE e.seq > $1::bigint ORDER BY e.seq";

async function verifyExtents(connection: Connection, head: Snapshot, columns: KnownColumns): Promise<void> {
  const totals = new Map<number, TableTotals>();
  const verifyStats = statsVerifier(columns);
  for await (const row of walk(connection, EXTENTS, "seq")) {
    const summary = toSummary(row);
    extentIsWellFormed(summary);
    extentBeginsByHead(summary, head);
    extentEndsAfterItBegins(summary, head);
    if (BigInt(String(row["newest_ns"])) > summary.maxAtNs) {
      throw new InvariantViolation("noRowIsNewerThanItsTime", `extent ${summary.id} is newer than its newest row`);
    }
    verifyStats(row, summary);
    if (summary.endSnapshot !== undefined) continue;
    const sum = totals.get(summary.tableId) ?? NO_EXTENTS;
    totals.set(summary.tableId, {
      rows: sum.rows + summary.rows,
      extents: sum.extents + 1,
      sizeBytes: sum.sizeBytes + summary.sizeBytes,
    });
  }
  const kept = new Map<number, TableTotals>();
  for (const row of await connection.query("SELECT * FROM engine.table_totals")) {
    kept.set(Number(row["table_id"]), toTotals(row));
  }
  for (const id of columns.keys()) {
    totalsMatchLiveExtents(id, kept.get(id) ?? NO_EXTENTS, totals.get(id) ?? NO_EXTENTS);
  }
}

export function toTotals(row: Row | undefined): TableTotals {
  return {
    rows: Number(row?.["row_count"] ?? 0),
    extents: Number(row?.["extent_count"] ?? 0),
    sizeBytes: Number(row?.["size_bytes"] ?? 0),
  };
}

function statsVerifier(columns: KnownColumns): (row: Row, extent: ExtentSummary) => void {
  const parser = new ListParser<number>();
  return (row, { id, tableId, rows }) => {
    const own = columns.get(tableId);
    if (own === undefined) throw new InvariantViolation("referencesExist", `extent ${id} is of no table`);
    const stats = row["stats"];
    if (typeof stats !== "string") throw new InvariantViolation("extentsHaveStatistics", `extent ${id} has none`);
    const known = new Set(own.keys());
    const ids = parser.parse(String(row["column_ids"]));
    statisticsNameKnownColumns(id, ids, known);
    const names = ids.map((columnId) => own.get(columnId) ?? "");
    for (const { name, nullCount } of decodeStats(names, stats)) {
      nullCountFitsRows(id, name, nullCount, rows);
    }
    filtersAreOneToAColumn(id, (row["filters"] ?? []) as { columnId: number; kind: string }[], known);
  };
}

/** What would be foreign keys, had commits the time. */
const REFERENCES: readonly (readonly [what: string, sql: string])[] = [
  [
    "statistics",
    "SELECT seq AS id FROM engine.extent_stats s WHERE NOT EXISTS (SELECT FROM engine.extents WHERE seq = s.seq)",
  ],
  [
    "a filter",
    "SELECT seq AS id FROM engine.extent_filters s WHERE NOT EXISTS (SELECT FROM engine.extents WHERE seq = s.seq)",
  ],
  [
    "the horizon",
    "SELECT oldest_snapshot AS id FROM engine.horizon WHERE oldest_snapshot NOT IN (SELECT id FROM engine.snapshots)",
  ],
  ["a table's horizon", "SELECT id FROM engine.tables WHERE oldest_snapshot NOT IN (SELECT id FROM engine.snapshots)"],
  [
    "a staged object",
    "SELECT snapshot_id AS id FROM engine.staged WHERE snapshot_id NOT IN (SELECT id FROM engine.snapshots)",
  ],
  [
    "the head's number of extents",
    "SELECT last_seq AS id FROM engine.head WHERE last_seq < (SELECT max(seq) FROM engine.extents)",
  ],
];

async function verifyReferences(connection: Connection): Promise<void> {
  for (const [what, sql] of REFERENCES) {
    const [dangling] = await connection.query(`${sql} LIMIT 1`);
    if (dangling === undefined) continue;
    const text = `${what} (${String(dangling["id"])}) points to what is not there`;
    throw new InvariantViolation("referencesExist", text);
  }
  const [entry] = await connection.query(
    "SELECT table_id, snapshot_id FROM engine.ledger " +
      "WHERE snapshot_id NOT IN (SELECT id FROM engine.snapshots) LIMIT 1",
  );
  if (entry !== undefined) ledgerPointsToSnapshot(Number(entry["table_id"]), Number(entry["snapshot_id"]), false);
  const [condemned] = await connection.query(
    "SELECT id FROM engine.condemned_extents JOIN engine.extents USING (id) LIMIT 1",
  );
  if (condemned !== undefined) condemnedExtentsAreUnknown(String(condemned["id"]), true);
}
