import type { Snapshot } from "../catalog.ts";
import { headStrictlyIncreases, snapshotTimesNeverDecrease } from "../invariants.ts";
import { toSnapshot } from "../rows.ts";
import type { Connection, Row } from "../../db/sqlite/connection.ts";

/** The snapshot of a catalog that has just been made. */
export function makeFirstSnapshot(connection: Connection, nowMs: number): void {
  insertSnapshot(connection, { id: 0, committedAtMs: nowMs });
}

export function readHead(connection: Connection): Snapshot {
  const row = connection.get("SELECT id, committed_at_ms FROM snapshots ORDER BY id DESC LIMIT 1");
  if (row === undefined) throw new Error("the catalog has no snapshot");
  return toSnapshot(row);
}

/** Newest first. */
export function readSnapshots(connection: Connection, limit: number): Snapshot[] {
  return connection.all("SELECT id, committed_at_ms FROM snapshots ORDER BY id DESC LIMIT ?", limit).map(toSnapshot);
}

/** The snapshot that would follow the head. A clock that went back repeats the head's time. */
export function nextSnapshot(connection: Connection, nowMs: number): Snapshot {
  const head = readHead(connection);
  const next = { id: head.id + 1, committedAtMs: Math.max(nowMs, head.committedAtMs) };
  headStrictlyIncreases(head, next);
  snapshotTimesNeverDecrease(head, next);
  return next;
}

export function insertSnapshot(connection: Connection, { id, committedAtMs }: Snapshot): void {
  connection.run("INSERT INTO snapshots (id, committed_at_ms) VALUES (?, ?)", id, committedAtMs);
}

// Number 0 stays.
const SWEEP =
  "DELETE FROM snapshots WHERE id IN " +
  "(SELECT id FROM snapshots WHERE id > 0 AND id < (SELECT oldest_snapshot FROM meta) ORDER BY id LIMIT ?)";

/** Forgets at most `limit` snapshots of which no table can be read; returns how many it forgot. */
export function sweepUnreadableSnapshots(connection: Connection, limit: number): number {
  return Number(connection.statement(SWEEP).run(limit).changes);
}

/** The newest snapshot committed at or before the time. */
export function findSnapshotAt(connection: Connection, timeMs: number): Snapshot | undefined {
  const newest = "ORDER BY committed_at_ms DESC, id DESC LIMIT 1";
  const row = connection.get(`SELECT id, committed_at_ms FROM snapshots WHERE committed_at_ms <= ? ${newest}`, timeMs);
  return row === undefined ? undefined : toSnapshot(row);
}

const OF_ALL = "SELECT oldest_snapshot FROM meta";

/** The oldest snapshot that can still be read: of the table, or of every table. */
export function readOldestSnapshot(connection: Connection, tableId?: number): Snapshot {
  if (tableId === undefined) return oldest(connection.get(`${SNAPSHOT} (${OF_ALL})`));
  return oldestOf(connection, tableId, "max(oldest_snapshot, readable_from)");
}

/** The oldest snapshot for which the extents of the table are kept. */
export function readOldestKept(connection: Connection, tableId: number): Snapshot {
  return oldestOf(connection, tableId, "oldest_snapshot");
}

const SNAPSHOT = "SELECT id, committed_at_ms FROM snapshots WHERE id =";

function oldestOf(connection: Connection, tableId: number, floor: string): Snapshot {
  const ofTable = `SELECT ${floor} FROM tables WHERE id = ?`;
  return oldest(connection.get(`${SNAPSHOT} max((${OF_ALL}), coalesce((${ofTable}), 0))`, tableId));
}

function oldest(row: Row | undefined): Snapshot {
  if (row === undefined) throw new Error("the oldest readable snapshot is not in the catalog");
  return toSnapshot(row);
}
