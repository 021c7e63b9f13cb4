import type { WorkerIdentity } from "../auth/caller.ts";
import type { Statement } from "../db/records.ts";
import { EngineError } from "../core/errors.ts";
import { heldValues, IS_HELD, JOB_COLUMNS, toJob, type Hold, type Job } from "./job.ts";
import { findJob } from "./list.ts";
import type { FabricPorts } from "./ports.ts";
import { jobNotFound, leaseLost } from "./refusals.ts";
import { mayHaveJob } from "./workers.ts";

/** The job, for whoever holds it at this moment: before something is given to its holder alone. Rejects with `lease_lost`. */
export async function leasedJob({ records }: Pick<FabricPorts, "records">, hold: Hold): Promise<Job> {
  const [row] = await records.rows(`SELECT ${JOB_COLUMNS} FROM jobs WHERE ${IS_HELD}`, heldValues(hold));
  if (row === undefined) throw leaseLost(hold);
  return toJob(row);
}

/** For a transaction that must not happen unless the job is leased under that fence until its end. */
export function heldStatement(hold: Hold): Statement {
  return { sql: `SELECT id FROM jobs WHERE ${IS_HELD} FOR SHARE`, values: heldValues(hold), mustReturn: 1 };
}

/**
 * Names the credentials that whoever holds the job may fetch, in place of those from before, where they are known only when
 * the job begins. For a transaction that makes sure of the hold.
 */
export function credentialsStatement(hold: Hold, credentialIds: readonly string[]): Statement {
  const sql = `UPDATE jobs SET credentials = ? WHERE ${IS_HELD} RETURNING id`;
  const named = credentialIds.length === 0 ? null : JSON.stringify(credentialIds);
  return { sql, values: [named, ...heldValues(hold)], mustReturn: 1 };
}

/**
 * The hold of a worker that shows no fence: that of its own claim, if nobody has claimed the job since. It need not be
 * good any more: whatever is written under it is refused then, as under any other fence, and a completion that is said
 * again after the job is done is heard as before. Rejects with `lease_lost`; with `not_found` for a job that the worker
 * could not have, so that ids of others' jobs tell it nothing.
 */
export async function holdOfWorker(ports: FabricPorts, jobId: string, worker: WorkerIdentity): Promise<Hold> {
  const job = await findJob(ports.records, jobId);
  if (job?.holder === worker.id) return { jobId, holder: worker.id, fence: job.fence };
  if (job === undefined || !ports.kinds.has(job.kind) || !mayHaveJob(worker, job, ports.kinds)) {
    throw jobNotFound(jobId);
  }
  throw leaseLost({ jobId });
}

/** Throws `not_found` for a credential that the job does not name: its holder may have no other. */
export function checkNames({ id, credentials }: Pick<Job, "id" | "credentials">, credentialId: string): void {
  if (credentials.includes(credentialId)) return;
  throw new EngineError("not_found", `job ${id} names no credential ${credentialId}`);
}
