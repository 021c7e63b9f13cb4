import { startOfIds } from "../../core/ids.ts";
import { LIMITS } from "../../core/limits.ts";
import type { Parameter } from "../../db/postgres/connection.ts";
import type { Database } from "../../db/postgres/database.ts";

/** What is forgotten in time, so that no table grows for ever. */

/** Rows per transaction of deletions that may be large. */
const DELETIONS_PER_STATEMENT = 2_000;

/** `$1` is how many rows at most. Rows that a commit is about to change are left for the next time. */
function deleteSome(table: string, condition: string): string {
  return (
    `WITH old AS (SELECT ctid FROM engine.${table} WHERE ${condition} LIMIT $1::bigint ` +
    `FOR UPDATE SKIP LOCKED), gone AS (DELETE FROM engine.${table} WHERE ctid IN (SELECT ctid FROM old) RETURNING 1) ` +
    "SELECT count(*) AS gone FROM gone"
  );
}

// As a query of its own it is computed once, and the index is used.
const PAST_TTL = "(SELECT least(engine.now_ms($2::bigint), $4::bigint) - $3::bigint)";
const SWEEP_LEDGER = deleteSome("ledger", `created_at_ms <= ${PAST_TTL}`);
const SWEEP_COMMITS = deleteSome("commits", `made_at_ms <= ${PAST_TTL}`);
const SWEEP_STAGED = deleteSome("staged", "committed_at_ms < $2::bigint");
const SWEEP_PENDING_DELETIONS = deleteSome("condemned_extents", "id < $2 ORDER BY id");
// Number 0 stays.
const SWEEP_SNAPSHOTS = deleteSome(
  "snapshots",
  "id > 0 AND id < (SELECT oldest_snapshot FROM engine.horizon) ORDER BY id",
);

/**
 * Deletes entries that were past their time to live by `asOfMs`, and what commits were answered that are as old by now;
 * resolves to how many entries.
 */
export async function sweepLedger(database: Database, asOfMs: number | undefined): Promise<number> {
  const [now, ttlMs] = [database.now, LIMITS.idempotencyTtlMs];
  await sweep(database, SWEEP_COMMITS, [now, ttlMs, null]);
  return await sweep(database, SWEEP_LEDGER, [now, ttlMs, asOfMs === undefined ? null : wholeMs(asOfMs)]);
}

/** Forgets staged objects committed before the time; how many. */
export async function sweepStaged(database: Database, beforeMs: number): Promise<number> {
  return await sweep(database, SWEEP_STAGED, [wholeMs(Math.ceil(beforeMs))]);
}

/** Forgets at most so many ids pending deletion that were made before the time; how many. */
export async function sweepPendingDeletions(database: Database, madeBeforeMs: number, most: number): Promise<number> {
  return await sweep(database, SWEEP_PENDING_DELETIONS, [startOfIds(madeBeforeMs)], most);
}

/** Forgets at most so many snapshots of which no table can be read; how many. */
export async function sweepSnapshots(database: Database, most: number): Promise<number> {
  return await sweep(database, SWEEP_SNAPSHOTS, [], most);
}

async function sweep(
  database: Database,
  sql: string,
  parameters: readonly Parameter[],
  most = Infinity,
): Promise<number> {
  for (let swept = 0; ;) {
    const limit = Math.min(DELETIONS_PER_STATEMENT, most - swept);
    const [row] = await database.write(sql, [limit, ...parameters]);
    const gone = Number(row?.["gone"]);
    swept += gone;
    if (gone < limit || swept >= most) return swept;
  }
}

function wholeMs(ms: number): number {
  return Math.min(Math.floor(ms), Number.MAX_SAFE_INTEGER);
}
