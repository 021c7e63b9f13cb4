import type { Snapshot } from "../catalog.ts";
import {
  pendingDeletionsAreUnknown,
  InvariantViolation,
  ledgerPointsToSnapshot,
  type TableTotals,
} from "../invariants.ts";
import { toSnapshot, toTotals } from "../rows.ts";
import { ExtentVerifier, SnapshotVerifier, verifyTable, type KnownColumns } from "../verification.ts";
import type { Connection, Row } from "../../db/postgres/connection.ts";
import { FIELDS } from "./extents.ts";

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
  const verifier = new SnapshotVerifier();
  const sql = "SELECT id, committed_at_ms FROM engine.snapshots WHERE id > $1::bigint ORDER BY id";
  for await (const found of walk(connection, sql, "id")) verifier.add(found);
  const { newest } = verifier;
  if (newest?.id !== head.id || newest.committedAtMs !== head.committedAtMs) {
    const text = `the head is ${JSON.stringify(head)}, the newest snapshot ${JSON.stringify(newest)}`;
    throw new InvariantViolation("headIsTheNewestSnapshot", text);
  }
  return head;
}

async function verifyTables(connection: Connection): Promise<KnownColumns> {
  const rows = await connection.query("SELECT * FROM engine.columns ORDER BY table_id, id");
  const columns = Map.groupBy(rows, (row) => Number(row["table_id"]));
  const tables = await connection.query("SELECT * FROM engine.tables");
  return new Map(
    tables.map((table) => {
      const id = Number(table["id"]);
      return [id, verifyTable(table, columns.get(id) ?? [])];
    }),
  );
}

const EXTENTS =
  `SELECT ${FIELDS}, e.newest_ns, e.column_ids, s.stats, ` +
  "(SELECT json_agg(json_build_object('columnId', f.column_id, 'kind', f.kind)) FROM engine.extent_filters f " +
  "WHERE f.seq = e.seq) AS filters FROM engine.extents e LEFT JOIN engine.extent_stats s ON s.seq = e.seq " +
  "WHERE e.seq > $1::bigint ORDER BY e.seq";

async function verifyExtents(connection: Connection, head: Snapshot, columns: KnownColumns): Promise<void> {
  const verifier = new ExtentVerifier(head, columns);
  for await (const row of walk(connection, EXTENTS, "seq")) {
    const filters = (row["filters"] ?? []) as { columnId: number; kind: string }[];
    verifier.add(row, { columnIds: row["column_ids"], stats: row["stats"], filters });
  }
  const kept = new Map<number, TableTotals>();
  for (const row of await connection.query("SELECT * FROM engine.table_totals")) {
    kept.set(Number(row["table_id"]), toTotals(row));
  }
  verifier.verifyTotals((tableId) => kept.get(tableId) ?? toTotals(undefined));
}

/** Of a column that names a snapshot: whether it is not there. Those that can no longer be read may be forgotten. */
function isMissing(column: string): string {
  const canBeRead = `${column} >= (SELECT oldest_snapshot FROM engine.horizon)`;
  return `${canBeRead} AND ${column} NOT IN (SELECT id FROM engine.snapshots)`;
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
  ["the horizon", `SELECT oldest_snapshot AS id FROM engine.horizon h WHERE ${isMissing("h.oldest_snapshot")}`],
  ["a table's horizon", `SELECT t.id FROM engine.tables t WHERE ${isMissing("t.oldest_snapshot")}`],
  ["a deletion of rows", `SELECT t.id FROM engine.tables t WHERE ${isMissing("t.readable_from")}`],
  ["a staged object", `SELECT snapshot_id AS id FROM engine.staged WHERE ${isMissing("snapshot_id")}`],
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
    `SELECT table_id, snapshot_id FROM engine.ledger WHERE ${isMissing("snapshot_id")} LIMIT 1`,
  );
  if (entry !== undefined) ledgerPointsToSnapshot(Number(entry["table_id"]), Number(entry["snapshot_id"]), false);
  const [marked] = await connection.query(
    "SELECT id FROM engine.condemned_extents JOIN engine.extents USING (id) LIMIT 1",
  );
  if (marked !== undefined) pendingDeletionsAreUnknown(String(marked["id"]), true);
}
