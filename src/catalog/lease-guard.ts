import { NOW, type Statement } from "../db/records.ts";
import type { Lease } from "./catalog.ts";

/** A statement that undoes its transaction of records unless the lease is held: the fence of writes beside commits. */
export function leaseGuard({ name, holder, fence }: Lease): Statement {
  const sql = "SELECT 1 FROM leases WHERE name = ? AND holder = ? AND fence = ? AND expires_at_ms > ? FOR SHARE";
  return { sql, values: [name, holder, fence, NOW], mustReturn: 1 };
}
