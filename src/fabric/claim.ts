import { NOW } from "../db/records.ts";
import { JOB_COLUMNS, toJob, type Job } from "./job.ts";
import { parseLane } from "./lanes.ts";
import { FABRIC_LIMITS } from "./limits.ts";
import type { FabricPorts } from "./ports.ts";

/** The oldest due jobs of one lane, leased to the holder: at most `max`, none that another claim is taking. */
export async function claimFromLane(
  { records }: Pick<FabricPorts, "records">,
  { lane, holder, max }: { lane: string; holder: string; max: number },
): Promise<Job[]> {
  const rows = await records.write({
    sql:
      "WITH picked AS MATERIALIZED (SELECT id AS picked_id FROM jobs WHERE status = 'queued' AND lane = ? " +
      "AND run_after_ms <= ? ORDER BY run_after_ms, id LIMIT ? FOR UPDATE SKIP LOCKED) " +
      "UPDATE jobs SET status = 'leased', holder = ?, fence = fence + 1, attempt = attempt + 1, " +
      "lease_expires_at_ms = lease_ms + ?, started_at_ms = ?, updated_at_ms = ?, error = NULL " +
      `WHERE id IN (SELECT picked_id FROM picked) RETURNING ${JOB_COLUMNS}`,
    values: [lane, NOW, max, holder, NOW, NOW, NOW],
  });
  const jobs = rows.map(toJob);
  return jobs.toSorted((a, b) => a.runAfterMs - b.runAfterMs || (a.id < b.id ? -1 : 1));
}

/** A lane that has jobs, and when the first of them is due: in so many ms, or before now. */
export type LaneHead = { lane: string; dueInMs: number };

/** The heads of all lanes: one step of an index for each. */
export async function laneHeads({ records }: Pick<FabricPorts, "records">): Promise<LaneHead[]> {
  const rows = await records.rows(
    "WITH RECURSIVE heads (lane) AS (SELECT min(lane) FROM jobs WHERE status = 'queued' UNION ALL " +
      "SELECT (SELECT min(j.lane) FROM jobs j WHERE j.status = 'queued' AND j.lane > heads.lane) FROM heads " +
      "WHERE heads.lane IS NOT NULL) SELECT lane, (SELECT min(j.run_after_ms) FROM jobs j " +
      "WHERE j.status = 'queued' AND j.lane = heads.lane) - ? AS due_in_ms FROM heads WHERE lane IS NOT NULL LIMIT ?",
    [NOW, FABRIC_LIMITS.lanes],
  );
  // A lane that was emptied in between has no head any more.
  return rows.flatMap(({ lane, due_in_ms: due }) =>
    due === null ? [] : [{ lane: String(lane), dueInMs: Number(due) }],
  );
}

/** For how long the oldest queued job of each kind has been due, in ms; kinds without one are absent. */
export async function oldestWaiting(ports: Pick<FabricPorts, "records">): Promise<Map<string, number>> {
  const oldest = new Map<string, number>();
  for (const { lane, dueInMs } of await laneHeads(ports)) {
    const { kind } = parseLane(lane);
    if (dueInMs <= 0) oldest.set(kind, Math.max(-dueInMs, oldest.get(kind) ?? 0));
  }
  return oldest;
}
