import { backoffMs as jitteredMs } from "../core/backoff.ts";
import { NOW } from "../db/records.ts";
import { heldValues, IS_HELD, JOB_COLUMNS, toJob, type Hold, type Job } from "./job.ts";
import { findJob } from "./list.ts";
import { FABRIC_LIMITS, MOST_BACKOFF_MS } from "./limits.ts";
import type { FabricPorts } from "./ports.ts";
import { boundedText, leaseLost } from "./refusals.ts";

export type Failure = {
  error: string;
  /** Whether another attempt may do better. A failure is for good unless it says so. */
  retryable?: boolean | undefined;
  /** The pause before the next attempt; by default the job's own, doubled with each attempt, within an hour. */
  retryAfterMs?: number | undefined;
};

/**
 * Ends an attempt badly: the job waits for another one, if there may be one, or has failed. A job whose cancellation was
 * asked for is cancelled. The same holder may say the same again. Rejects with `lease_lost`.
 */
export async function fail(ports: FabricPorts, hold: Hold, failure: Failure): Promise<Job> {
  const job = await findJob(ports.records, hold.jobId);
  if (job === undefined) throw leaseLost(hold);
  const again = failure.retryable === true && job.attempt < job.maxAttempts;
  const error = boundedText(failure.error, FABRIC_LIMITS.errorChars);
  const [row] = await ports.records.write({
    sql:
      `UPDATE jobs SET status = CASE WHEN cancel_requested = 1 THEN 'cancelled' ELSE '${again ? "queued" : "failed"}' END, ` +
      "run_after_ms = CASE WHEN cancel_requested = 1 THEN run_after_ms ELSE ? END, error = ?, " +
      `finished_at_ms = ${again ? "CASE WHEN cancel_requested = 1 THEN CAST(? AS bigint) END" : "?"}, updated_at_ms = ?, ` +
      `lease_expires_at_ms = NULL WHERE ${IS_HELD} RETURNING ${JOB_COLUMNS}`,
    values: [
      again ? { nowPlusMs: pauseMs(ports, job, failure) } : job.runAfterMs,
      error,
      NOW,
      NOW,
      ...heldValues(hold),
    ],
  });
  if (row !== undefined) {
    const ended = toJob(row);
    ports.metrics?.ended(ended);
    return ended;
  }
  return await heardBefore(ports, hold, error);
}

/** Ends an attempt that was not one: the holder stops before the job is done. It is the next one's at once. */
export async function release({ records, announce }: FabricPorts, hold: Hold): Promise<Job> {
  const [row] = await records.write({
    sql:
      "UPDATE jobs SET status = CASE WHEN cancel_requested = 1 THEN 'cancelled' ELSE 'queued' END, " +
      "finished_at_ms = CASE WHEN cancel_requested = 1 THEN CAST(? AS bigint) END, attempt = attempt - 1, " +
      `updated_at_ms = ?, lease_expires_at_ms = NULL WHERE ${IS_HELD} RETURNING ${JOB_COLUMNS}`,
    values: [NOW, NOW, ...heldValues(hold)],
  });
  if (row === undefined) throw leaseLost(hold);
  announce([String(row["lane"])]);
  return toJob(row);
}

/**
 * The job, if this holder failed this attempt before and did not hear the answer. The job tells by its error: one whose
 * lease ended has another, and its holder must not believe that it had the last word.
 */
async function heardBefore({ records }: FabricPorts, hold: Hold, error: string): Promise<Job> {
  const job = await findJob(records, hold.jobId);
  const isHeard = job?.status !== "leased" && job?.status !== "done" && job?.error === error;
  if (job === undefined || !isHeard || job.holder !== hold.holder || job.fence !== hold.fence) throw leaseLost(hold);
  return job;
}

/** Not the same for all who failed together. */
function pauseMs({ random }: FabricPorts, { backoffMs, attempt }: Job, { retryAfterMs }: Failure): number {
  if (retryAfterMs !== undefined) return Math.min(Math.max(0, retryAfterMs), FABRIC_LIMITS.backoffMs.max);
  return jitteredMs({ firstMs: backoffMs, mostMs: MOST_BACKOFF_MS }, attempt - 1, random, 0.25);
}
