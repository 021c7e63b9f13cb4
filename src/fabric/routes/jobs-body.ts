import { z } from "zod";

import { ownerOf } from "../../auth/owner.ts";
import { CALLER_ROLES } from "../../config/kinds.ts";
import { JOB_STATUSES, type Job } from "../job.ts";
import type { JobSummary } from "../list.ts";
import { nameSchemas } from "../../server/schema-names.ts";
import { timeOf, timeOrNull } from "../../server/schemas.ts";

/** Jobs as JSON. */

const time = z.string().nullable().describe("RFC 3339 time.");

export const jobSummary = z.object({
  id: z.string(),
  kind: z.string(),
  status: z.enum(JOB_STATUSES),
  priority: z.int(),
  database: z.string().nullable(),
  dedup_key: z.string().nullable(),
  worker_id: z.string().nullable().describe("The only worker that may claim it."),
  selector: z.record(z.string(), z.string()).nullable().describe("Labels that a worker must have to claim it."),
  attempt: z.int(),
  max_attempts: z.int(),
  backoff_ms: z.int(),
  run_after: z.string(),
  lease_expires_at: time,
  holder: z.string().nullable().describe("Who has it, or had it last."),
  fence: z.int().describe("Grows with every claim."),
  cancel_requested: z.boolean(),
  error: z.string().nullable(),
  created_by: z.string(),
  owned_by: z.string(),
  created_at: z.string(),
  started_at: time,
  finished_at: time,
  updated_at: z.string(),
  trace_context: z.string().nullable(),
});

export const jobBody = jobSummary.extend({ payload: z.unknown(), progress: z.unknown(), result: z.unknown() });

export const claimedJob = jobBody.extend({
  lease_secs: z.number().describe("How long the holder may be silent."),
  owner: z
    .object({ subject: z.string(), role: z.enum(CALLER_ROLES), databases: z.array(z.string()).nullable() })
    .describe("Who enqueued it: it runs with no more than their rights."),
  credentials: z.array(z.string()).describe("Ids of credentials that the holder may fetch."),
});

nameSchemas({ JobSummary: jobSummary, Job: jobBody, ClaimedJob: claimedJob });

export function summaryOf(job: JobSummary): z.output<typeof jobSummary> {
  return {
    id: job.id,
    kind: job.kind,
    status: job.status,
    priority: job.priority,
    database: job.database ?? null,
    dedup_key: job.dedupKey ?? null,
    worker_id: job.workerId ?? null,
    selector: job.selector === undefined ? null : { ...job.selector },
    attempt: job.attempt,
    max_attempts: job.maxAttempts,
    backoff_ms: job.backoffMs,
    run_after: timeOf(job.runAfterMs),
    lease_expires_at: timeOrNull(job.leaseExpiresAtMs),
    holder: job.holder ?? null,
    fence: job.fence,
    cancel_requested: job.cancelRequested,
    error: job.error ?? null,
    created_by: job.owner.subject,
    owned_by: ownerOf(job.owner),
    created_at: timeOf(job.createdAtMs),
    started_at: timeOrNull(job.startedAtMs),
    finished_at: timeOrNull(job.finishedAtMs),
    updated_at: timeOf(job.updatedAtMs),
    trace_context: job.traceContext ?? null,
  };
}

export function bodyOfJob(job: Job): z.output<typeof jobBody> {
  const { payload = null, progress = null, result = null } = job;
  return { ...summaryOf(job), payload, progress, result };
}

export function bodyOfClaimed(job: Job): z.output<typeof claimedJob> {
  const { subject, role, databases } = job.owner;
  return {
    ...bodyOfJob(job),
    lease_secs: job.leaseMs / 1_000,
    owner: { subject, role, databases: databases === undefined ? null : [...databases] },
    credentials: [...job.credentials],
  };
}
