import type { Lease } from "../catalog.ts";
import type { Database } from "../../db/postgres/database.ts";

/** Takes a lease that is free, has ended, or is the holder's own. Repeated by the same holder it changes nothing. */
export async function acquireLease(
  database: Database,
  request: { name: string; holder: string; ttlMs: number },
): Promise<Lease | undefined> {
  const { name, holder, ttlMs } = request;
  const sql = "SELECT engine.acquire_lease($1::bigint, $2, $3, $4::bigint) AS fence";
  const [row] = await database.write(sql, [database.now, name, holder, ttlMs]);
  const fence = row?.["fence"];
  return typeof fence === "string" ? { name, holder, fence: Number(fence) } : undefined;
}

/** Ends a lease. Its row stays, for the next fence is to be higher. */
export async function releaseLease(database: Database, { name, holder, fence }: Lease): Promise<void> {
  const sql = "UPDATE engine.leases SET expires_at_ms = 0 WHERE name = $1 AND holder = $2 AND fence = $3::bigint";
  await database.write(sql, [name, holder, fence]);
}
