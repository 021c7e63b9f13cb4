import type { Snapshot } from "../catalog.ts";
import { checkStagedId } from "../flush-checks.ts";
import type { Connection } from "../../db/sqlite/connection.ts";

/** The snapshot that a staged object was committed with. Throws for an id that no object may have. */
export function findStaged(connection: Connection, id: string): number | undefined {
  checkStagedId(id);
  const snapshotId = connection.get("SELECT snapshot_id FROM staged WHERE id = ?", id)?.["snapshot_id"];
  return snapshotId === undefined ? undefined : Number(snapshotId);
}

export function insertStaged(connection: Connection, id: string, snapshot: Snapshot): void {
  const sql = "INSERT INTO staged (id, snapshot_id, committed_at_ms) VALUES (?, ?, ?)";
  connection.run(sql, id, snapshot.id, snapshot.committedAtMs);
}

const SWEEP = "DELETE FROM staged WHERE id IN (SELECT id FROM staged WHERE committed_at_ms < ? LIMIT ?)";

/** Deletes at most `limit` that were committed before the time; returns how many it deleted. */
export function sweepStagedEntries(connection: Connection, beforeMs: number, limit: number): number {
  return Number(connection.statement(SWEEP).run(beforeMs, limit).changes);
}
