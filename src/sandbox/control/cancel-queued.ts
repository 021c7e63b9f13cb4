import { NOW, type Statement } from "../../catalog/records.ts";

/** Nobody claims the job any more, if nobody has; returns its id then. */
export function cancelQueued(jobId: string): Statement {
  return {
    sql:
      "UPDATE jobs SET status = 'cancelled', cancel_requested = 1, finished_at_ms = ?, updated_at_ms = ? " +
      "WHERE id = ? AND status = 'queued' RETURNING id",
    values: [NOW, NOW, jobId],
  };
}
