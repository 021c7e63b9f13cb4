import { CondemnedExtent } from "../refusals.ts";
import type { Connection } from "../../db/sqlite/connection.ts";

const CONDEMN =
  "INSERT OR IGNORE INTO condemned_extents (id) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM extents WHERE id = ?)";

/** Condemns ids that no extent has; returns those that are condemned now. */
export function condemnExtents(connection: Connection, ids: readonly string[]): string[] {
  for (const id of ids) connection.run(CONDEMN, id, id);
  return ids.filter((id) => isCondemned(connection, id));
}

const SWEEP =
  "DELETE FROM condemned_extents WHERE id IN (SELECT id FROM condemned_extents WHERE id < ? ORDER BY id LIMIT ?)";

/** Forgets at most `limit` ids that sort before that one; returns how many it forgot. */
export function sweepCondemnedIds(connection: Connection, before: string, limit: number): number {
  return Number(connection.statement(SWEEP).run(before, limit).changes);
}

function isCondemned(connection: Connection, id: string): boolean {
  return connection.get("SELECT 1 FROM condemned_extents WHERE id = ?", id) !== undefined;
}

/** Throws `CondemnedExtent` when one of the ids is condemned. */
export function refuseCondemned(connection: Connection, ids: readonly string[]): void {
  const condemned = ids.filter((id) => isCondemned(connection, id));
  if (condemned.length > 0) throw new CondemnedExtent(condemned);
}
