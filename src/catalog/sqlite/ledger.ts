import type { LedgerEntry, NewLedgerEntry, Snapshot } from "../catalog.ts";
import { LIMITS } from "../../core/limits.ts";
import { toLedgerEntry } from "../rows.ts";
import type { Connection } from "../../db/sqlite/connection.ts";

const FIND =
  "SELECT snapshot_id, extent_count, row_count, size_bytes FROM ledger " +
  "WHERE table_id = ? AND key = ? AND created_at_ms > ?";

/** The entry of a key, unless it was past its time to live then. */
export function findLedgerEntry(
  connection: Connection,
  tableId: number,
  key: string,
  asOfMs: number,
): LedgerEntry | undefined {
  const row = connection.get(FIND, tableId, key, asOfMs - LIMITS.idempotencyTtlMs);
  return row === undefined ? undefined : toLedgerEntry(key, row);
}

// An entry of the same key that is still there is past its time to live, or the commit would have found it.
const INSERT =
  "INSERT OR REPLACE INTO ledger (table_id, key, snapshot_id, extent_count, row_count, size_bytes, created_at_ms) " +
  "VALUES (?, ?, ?, ?, ?, ?, ?)";

export function insertLedgerEntry(
  connection: Connection,
  tableId: number,
  entry: NewLedgerEntry,
  snapshot: Snapshot,
): void {
  const { key, extentCount, rows, sizeBytes } = entry;
  connection.run(INSERT, tableId, key, snapshot.id, extentCount, rows, sizeBytes, snapshot.committedAtMs);
}

const SWEEP =
  "DELETE FROM ledger WHERE (table_id, key) IN (SELECT table_id, key FROM ledger WHERE created_at_ms <= ? LIMIT ?)";

/** Deletes at most `limit` entries that were past their time to live then; returns how many it deleted. */
export function sweepLedgerEntries(connection: Connection, asOfMs: number, limit: number): number {
  return Number(connection.statement(SWEEP).run(asOfMs - LIMITS.idempotencyTtlMs, limit).changes);
}
