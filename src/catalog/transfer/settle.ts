import type { Statement } from "../../db/records.ts";

const RESTORED = "the catalog was restored from a backup";

/**
 * What is done to a catalog that was loaded: what was under way when the backup was made is under way no more, and its
 * holders are gone, or must not go on here.
 *
 * - Leases of background duties have ended. Their fences stay, so the next ones are larger.
 * - Jobs that ran are as if their lease had ended: queued for another attempt, failed after the last one, cancelled where
 *   that was asked for. Fences stay.
 * - Backups do not begin again: they would write to the place that this catalog came from.
 * - Sandboxes need nothing here: a server that finds one whose job nobody holds takes its node for lost.
 */
export function settleStatements(nowMs: number): Statement[] {
  const again = "cancel_requested = 0 AND attempt < max_attempts";
  return [
    { sql: "UPDATE leases SET expires_at_ms = 0" },
    {
      sql:
        "UPDATE jobs SET status = 'cancelled', finished_at_ms = ?, error = ?, updated_at_ms = ?, " +
        "lease_expires_at_ms = NULL WHERE kind = 'backup' AND status IN ('queued', 'leased')",
      values: [nowMs, RESTORED, nowMs],
    },
    {
      sql:
        `UPDATE jobs SET status = CASE WHEN cancel_requested = 1 THEN 'cancelled' WHEN ${again} THEN 'queued' ` +
        `ELSE 'failed' END, finished_at_ms = CASE WHEN ${again} THEN NULL ELSE CAST(? AS bigint) END, error = ?, ` +
        "updated_at_ms = ?, lease_expires_at_ms = NULL WHERE status = 'leased'",
      values: [nowMs, RESTORED, nowMs],
    },
  ];
}
