import { NOW } from "../db/records.ts";
import { EngineError } from "../core/errors.ts";
import { JOB_COLUMNS, toJob, type Job } from "./job.ts";
import type { FabricPorts } from "./ports.ts";
import { jobNotFound } from "./refusals.ts";

/**
 * A job that waits is cancelled; the holder of one that runs is told to stop, and may still complete it. One that is
 * finished stays as it is. Rejects with `not_found`.
 */
export async function cancel({ records }: FabricPorts, id: string): Promise<Job> {
  const [row] = await records.write({
    sql:
      "UPDATE jobs SET finished_at_ms = CASE WHEN status = 'queued' THEN ? ELSE finished_at_ms END, " +
      "status = CASE WHEN status = 'queued' THEN 'cancelled' ELSE status END, cancel_requested = 1, updated_at_ms = ? " +
      `WHERE id = ? AND status IN ('queued', 'leased') RETURNING ${JOB_COLUMNS}`,
    values: [NOW, NOW, id],
  });
  return row === undefined ? await existing(records, id) : toJob(row);
}

/**
 * Queues a job that has failed or was cancelled, as if it were new. Rejects with `not_found`; with `conflict` for one
 * that is not finished or was done, and where another one has its key by now.
 */
export async function retry({ records, announce }: FabricPorts, id: string): Promise<Job> {
  const [row] = await records.write({
    sql:
      "UPDATE jobs SET status = 'queued', attempt = 0, run_after_ms = ?, cancel_requested = 0, error = NULL, " +
      "progress = NULL, holder = NULL, finished_at_ms = NULL, updated_at_ms = ? " +
      `WHERE id = ? AND status IN ('failed', 'cancelled') AND NOT EXISTS (${KEY_IS_TAKEN}) RETURNING ${JOB_COLUMNS}`,
    values: [NOW, NOW, id],
  });
  if (row === undefined) {
    const { status, dedupKey } = await existing(records, id);
    const isFinished = status === "failed" || status === "cancelled";
    const why = isFinished ? `another job has the key ${dedupKey ?? ""}` : `it is ${status}`;
    throw new EngineError("conflict", `job ${id} cannot be retried: ${why}`);
  }
  announce([String(row["lane"])]);
  return toJob(row);
}

const KEY_IS_TAKEN =
  "SELECT 1 FROM jobs other WHERE other.owner = jobs.owner AND other.kind = jobs.kind AND other.dedup_key = jobs.dedup_key AND " +
  "coalesce(other.database_name, '') = coalesce(jobs.database_name, '') AND other.dedup_key IS NOT NULL AND " +
  "other.status IN ('queued', 'leased')";

async function existing(records: FabricPorts["records"], id: string): Promise<Job> {
  const [row] = await records.rows(`SELECT ${JOB_COLUMNS} FROM jobs WHERE id = ?`, [id]);
  if (row === undefined) throw jobNotFound(id);
  return toJob(row);
}
