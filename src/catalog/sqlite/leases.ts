import type { Lease } from "../catalog.ts";
import { LeaseLost } from "../refusals.ts";
import type { Connection } from "../../db/sqlite/connection.ts";

const ACQUIRE = `
INSERT INTO leases (name, holder, fence, expires_at_ms) VALUES (?, ?, 1, ? + ?)
ON CONFLICT (name) DO UPDATE SET
  fence = fence + (expires_at_ms <= ?),
  holder = excluded.holder,
  expires_at_ms = excluded.expires_at_ms
WHERE holder = excluded.holder OR expires_at_ms <= ?
RETURNING fence`;

/** Takes a lease that is free, has ended, or is the holder's own. */
export function acquireLease(
  connection: Connection,
  request: { name: string; holder: string; ttlMs: number; nowMs: number },
): Lease | undefined {
  const { name, holder, ttlMs, nowMs } = request;
  const row = connection.get(ACQUIRE, name, holder, nowMs, ttlMs, nowMs, nowMs);
  return row === undefined ? undefined : { name, holder, fence: Number(row["fence"]) };
}

/** Ends a lease. The row stays, for the next fence is to be higher. */
export function releaseLease(connection: Connection, { name, holder, fence }: Lease): void {
  const sql = "UPDATE leases SET expires_at_ms = 0 WHERE name = ? AND holder = ? AND fence = ?";
  connection.run(sql, name, holder, fence);
}

/** Throws `LeaseLost` unless the lease, if one is given, is held. */
export function checkLease(connection: Connection, nowMs: number, lease: Lease | undefined): void {
  if (lease === undefined) return;
  const sql = "SELECT 1 FROM leases WHERE name = ? AND holder = ? AND fence = ? AND expires_at_ms > ?";
  if (connection.get(sql, lease.name, lease.holder, lease.fence, nowMs) === undefined) throw new LeaseLost(lease.name);
}
