import type { Statement } from "../../../catalog/records.ts";
import { cancelQueued } from "../cancel-queued.ts";
import { removeEvents } from "../events/removal.ts";
import { removeSessions } from "../turns/removal.ts";
import type { Sandbox } from "./sandbox.ts";

/**
 * Ends the job that no node has yet, or that waits for one that is lost, and the record with it. Where a node has the
 * sandbox both stay, until it has put everything away.
 */
export function removeUnheld({ id, jobId }: Pick<Sandbox, "id" | "jobId">): Statement[] {
  const isHeld = "SELECT 1 FROM jobs WHERE jobs.id = sandboxes.job_id AND jobs.status = 'leased'";
  return [
    ...(jobId === undefined ? [] : [cancelQueued(jobId)]),
    { sql: `DELETE FROM sandboxes WHERE id = ? AND NOT EXISTS (${isHeld})`, values: [id] },
    ...removeSessions(id),
    ...removeEvents(id),
  ];
}

/** Takes the sandbox that nobody has begun with from its node, so that any may get it; returns its id then. */
export function unplace(id: string, jobId: string | undefined): Statement {
  return {
    sql:
      "UPDATE sandboxes SET node_id = NULL, job_id = NULL " +
      "WHERE id = ? AND job_id = ? AND state = 'pending' AND recorded_fence = 0 RETURNING id",
    values: [id, jobId ?? null],
  };
}
