import type { Snapshot } from "../catalog.ts";
import { snapshotExpired } from "../refusals.ts";
import type { Connection } from "../../db/sqlite/connection.ts";
import { readHead, readOldestKept, readOldestSnapshot } from "./snapshots.ts";

/**
 * The oldest snapshots that may be read, of all tables and of one, and what keeps them from advancing: the snapshots
 * that nodes say they read.
 */
const HOLD = "INSERT OR REPLACE INTO snapshot_holds (node, oldest_snapshot, expires_at_ms) VALUES (?, ?, ?)";

/** Throws `snapshot_expired` when the snapshot cannot be read. */
export function holdSnapshots(
  connection: Connection,
  hold: { node: string; oldest: number; expiresAtMs: number },
): void {
  const oldest = readOldestSnapshot(connection);
  if (hold.oldest < oldest.id) throw snapshotExpired(hold.oldest, oldest);
  connection.run(HOLD, hold.node, hold.oldest, hold.expiresAtMs);
}

export function releaseSnapshots(connection: Connection, node: string): void {
  connection.run("DELETE FROM snapshot_holds WHERE node = ?", node);
}

/** Makes snapshots before that one unreadable. */
export function expireSnapshots(connection: Connection, nowMs: number, before: number): Snapshot {
  const bound = expirable(connection, nowMs, before);
  connection.run("UPDATE meta SET oldest_snapshot = max(oldest_snapshot, ?)", bound);
  return readOldestSnapshot(connection);
}

/** Makes snapshots of one table before that one unreadable. */
export function expireTable(connection: Connection, nowMs: number, tableId: number, before: number): Snapshot {
  const bound = expirable(connection, nowMs, before);
  connection.run("UPDATE tables SET oldest_snapshot = max(oldest_snapshot, ?) WHERE id = ?", bound, tableId);
  return readOldestKept(connection, tableId);
}

/** Up to where snapshots may become unreadable: not the head, and none that a live reader holds. */
function expirable(connection: Connection, nowMs: number, before: number): number {
  connection.run("DELETE FROM snapshot_holds WHERE expires_at_ms <= ?", nowMs);
  const held = connection.get("SELECT min(oldest_snapshot) AS id FROM snapshot_holds")?.["id"];
  const bound = Math.min(before, readHead(connection).id);
  return typeof held === "number" ? Math.min(bound, held) : bound;
}

/** Throws `snapshot_expired` when the table cannot be read at the snapshot. */
export function checkReadable(connection: Connection, tableId: number, snapshotId: number): void {
  const oldest = readOldestSnapshot(connection, tableId);
  if (snapshotId < oldest.id) throw snapshotExpired(snapshotId, oldest);
}

/** Throws `snapshot_expired` when the extents of the table at the snapshot are not kept any more. */
export function checkKept(connection: Connection, tableId: number, snapshotId: number): void {
  const oldest = readOldestKept(connection, tableId);
  if (snapshotId < oldest.id) throw snapshotExpired(snapshotId, oldest);
}
