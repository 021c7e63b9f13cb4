import { NOW } from "../db/records.ts";
import { startOfIds } from "../core/ids.ts";
import { JOB_COLUMNS, toJob, type Job } from "./job.ts";
import type { FabricPorts } from "./ports.ts";

const JOBS_PER_STATEMENT = 500;

/**
 * Takes back jobs whose lease has ended: for the next attempt at once, for another one may do better; failed after the
 * last; cancelled where that was asked for. Any number of nodes may sweep at once. Returns what it took back.
 */
export async function sweep({ records, announce }: Pick<FabricPorts, "records" | "announce">): Promise<Job[]> {
  const swept: Job[] = [];
  for (;;) {
    const rows = await records.write({
      sql:
        "WITH ended AS MATERIALIZED (SELECT id AS ended_id FROM jobs WHERE status = 'leased' AND lease_expires_at_ms <= ? " +
        "ORDER BY lease_expires_at_ms LIMIT ? FOR UPDATE SKIP LOCKED) " +
        "UPDATE jobs SET status = CASE WHEN cancel_requested = 1 THEN 'cancelled' WHEN attempt < max_attempts THEN 'queued' " +
        "ELSE 'failed' END, finished_at_ms = CASE WHEN cancel_requested = 0 AND attempt < max_attempts THEN NULL ELSE " +
        "CAST(? AS bigint) END, error = 'the lease of ' || coalesce(holder, '') || ' ended', updated_at_ms = ?, " +
        `lease_expires_at_ms = NULL WHERE id IN (SELECT ended_id FROM ended) RETURNING ${JOB_COLUMNS}`,
      values: [NOW, JOBS_PER_STATEMENT, NOW, NOW],
    });
    const lanes = rows.filter(({ status }) => status === "queued").map(({ lane }) => String(lane));
    if (lanes.length > 0) announce([...new Set(lanes)]);
    swept.push(...rows.map(toJob));
    if (rows.length < JOBS_PER_STATEMENT) return swept;
  }
}

/** Forgets jobs that were finished and enqueued longer than `keepMs` ago, the oldest first. Returns how many. */
export async function forgetFinished(
  { records }: Pick<FabricPorts, "records">,
  { nowMs, keepMs, maxJobs }: { nowMs: number; keepMs: number; maxJobs: number },
): Promise<number> {
  let forgotten = 0;
  while (forgotten < maxJobs) {
    const rows = await records.write({
      sql:
        "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE id < ? AND status IN ('done', 'failed', 'cancelled') " +
        "AND finished_at_ms < ? ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED) RETURNING id",
      values: [startOfIds(nowMs - keepMs), { nowPlusMs: -keepMs }, JOBS_PER_STATEMENT],
    });
    forgotten += rows.length;
    if (rows.length < JOBS_PER_STATEMENT) break;
  }
  return forgotten;
}
