import type { ExtentSummary } from "../catalog.ts";
import { clampToInt64 } from "../int64.ts";
import { snapshotExpired } from "../refusals.ts";
import { EXTENT_FIELDS, toSummary } from "../rows.ts";
import type { Connection, Row } from "../../db/postgres/connection.ts";
import type { Database } from "../../db/postgres/database.ts";
import { KEPT_OF_TABLE, OLDEST_OF_TABLE, readOldestKept, readOldestSnapshot } from "./snapshots.ts";

export const FIELDS = ["seq", ...EXTENT_FIELDS].map((field) => `e.${field}`).join(", ");

/** Extents per statement, so that an answer of very many does not stand in memory twice. */
const EXTENTS_PER_STATEMENT = 10_000;

/** What of extents is read: columns of `e`, and of `s` with their statistics. */
export type Selection = { select: string; withStats: boolean };

/**
 * Rows of extents of a table by number, ascending. Rejects with `snapshot_expired` when the table cannot be read at the
 * snapshot any more; each statement looks at the horizon and at the extents in one state of the database, and what can
 * be read is not forgotten, so none is missing.
 */
export async function* readableExtents(
  connection: Connection,
  of: Selection & { tableId: number; atSnapshot: number; seqs: readonly number[] },
): AsyncGenerator<Row> {
  const { tableId, atSnapshot, seqs, select } = of;
  const sql =
    `SELECT h.oldest, ${select} FROM (SELECT ${OLDEST_OF_TABLE} AS oldest) h ` +
    `LEFT JOIN ${sourceOf(of)} ON e.seq = ANY ($1::text::bigint[]) ORDER BY e.seq`;
  for (let i = 0; i === 0 || i < seqs.length; i += EXTENTS_PER_STATEMENT) {
    const wanted = seqs.slice(i, i + EXTENTS_PER_STATEMENT);
    const rows = await connection.query(sql, [listOf(wanted), tableId]);
    if (Number(rows[0]?.["oldest"]) > atSnapshot) {
      throw snapshotExpired(atSnapshot, await readOldestSnapshot(connection, tableId));
    }
    if (wanted.length === 0) return;
    if (rows.length < wanted.length) throw new Error("an extent that can still be read is not in the catalog");
    yield* rows;
  }
}

/**
 * Rows of extents of a table by number, ascending, whichever snapshot they are of. Rejects with `snapshot_expired` when the
 * extents of the snapshot `after` are not kept any more, and for one that ended before the oldest readable snapshot. What
 * began after a snapshot that is kept is not forgotten, so none is missing.
 */
export async function* keptExtents(
  connection: Connection,
  of: Selection & { tableId: number; after: number; seqs: readonly number[] },
): AsyncGenerator<Row> {
  const { tableId, after, seqs, select } = of;
  const sql =
    `SELECT h.kept, h.oldest, ${select} FROM (SELECT ${KEPT_OF_TABLE} AS kept, ${OLDEST_OF_TABLE} AS oldest) h ` +
    `LEFT JOIN ${sourceOf(of)} ON e.seq = ANY ($1::text::bigint[]) ORDER BY e.seq`;
  for (let i = 0; i === 0 || i < seqs.length; i += EXTENTS_PER_STATEMENT) {
    const wanted = seqs.slice(i, i + EXTENTS_PER_STATEMENT);
    const rows = await connection.query(sql, [listOf(wanted), tableId]);
    if (Number(rows[0]?.["kept"]) > after) throw snapshotExpired(after, await readOldestKept(connection, tableId));
    if (wanted.length === 0) return;
    if (rows.length < wanted.length) throw new Error("an extent that is kept is not in the catalog");
    for (const { end_snapshot: end, oldest } of rows) {
      if (end === null || Number(end) > Number(oldest)) continue;
      throw snapshotExpired(Number(end) - 1, await readOldestSnapshot(connection, tableId));
    }
    yield* rows;
  }
}

/** Rows of extents by number, ascending; fewer when some have been forgotten. */
export async function* extentsBySeq(
  connection: Connection,
  of: Selection & { seqs: readonly number[] },
): AsyncGenerator<Row> {
  const sql = `SELECT ${of.select} FROM ${sourceOf(of)} WHERE e.seq = ANY ($1::text::bigint[]) ORDER BY e.seq`;
  for (let i = 0; i < of.seqs.length; i += EXTENTS_PER_STATEMENT) {
    yield* await connection.query(sql, [listOf(of.seqs.slice(i, i + EXTENTS_PER_STATEMENT))]);
  }
}

// An extent whose statistics are missing is not left out: reading them fails.
function sourceOf({ withStats }: Selection): string {
  return withStats ? "(engine.extents e LEFT JOIN engine.extent_stats s ON s.seq = e.seq)" : "engine.extents e";
}

function listOf(seqs: readonly number[]): string {
  return `{${seqs.join(",")}}`;
}

// Times never decrease from one snapshot to the next, so this is the order of the end snapshots.
const DEAD =
  `SELECT ${FIELDS} FROM engine.extents e WHERE e.table_id = $1 AND e.deleted_at_ms < $2::bigint ` +
  "ORDER BY e.deleted_at_ms, e.end_snapshot, e.seq LIMIT $3::bigint";

export async function findDeadExtents(
  database: Database,
  tableId: number,
  beforeMs: number,
  limit: number | undefined,
): Promise<ExtentSummary[]> {
  return (await database.rows(DEAD, [tableId, boundOf(beforeMs), limit ?? null])).map(toSummary);
}

const EXPIRED =
  `SELECT ${FIELDS} FROM engine.extents e WHERE e.table_id = $1 AND e.newest_ns < $2::bigint ` +
  "AND e.end_snapshot IS NULL ORDER BY e.newest_ns, e.seq LIMIT $3::bigint";

/** Live extents without a row as new as the time, the oldest first. */
export async function findExpiredExtents(
  database: Database,
  tableId: number,
  beforeMs: number,
  limit: number,
): Promise<ExtentSummary[]> {
  const beforeNs = clampToInt64(BigInt(Math.floor(beforeMs)) * NS_PER_MS);
  return (await database.rows(EXPIRED, [tableId, beforeNs, limit])).map(toSummary);
}

/** The whole number to compare whole numbers with. */
function boundOf(before: number): number {
  return Math.min(Math.ceil(before), Number.MAX_SAFE_INTEGER);
}

const NS_PER_MS = 1_000_000n;
