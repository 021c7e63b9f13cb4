import { ExtentPendingDeletion } from "../refusals.ts";
import type { Connection } from "../../db/sqlite/connection.ts";

const MARK =
  "INSERT OR IGNORE INTO condemned_extents (id) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM extents WHERE id = ?)";

/** Marks ids that no extent has; returns those that are pending deletion now. */
export function markPendingDeletion(connection: Connection, ids: readonly string[]): string[] {
  for (const id of ids) connection.run(MARK, id, id);
  return ids.filter((id) => isPendingDeletion(connection, id));
}

const SWEEP =
  "DELETE FROM condemned_extents WHERE id IN (SELECT id FROM condemned_extents WHERE id < ? ORDER BY id LIMIT ?)";

/** Forgets at most `limit` ids that sort before that one; returns how many it forgot. */
export function sweepPendingDeletionIds(connection: Connection, before: string, limit: number): number {
  return Number(connection.statement(SWEEP).run(before, limit).changes);
}

function isPendingDeletion(connection: Connection, id: string): boolean {
  return connection.get("SELECT 1 FROM condemned_extents WHERE id = ?", id) !== undefined;
}

/** Throws `ExtentPendingDeletion` when one of the ids is pending deletion. */
export function refusePendingDeletion(connection: Connection, ids: readonly string[]): void {
  const marked = ids.filter((id) => isPendingDeletion(connection, id));
  if (marked.length > 0) throw new ExtentPendingDeletion(marked);
}
