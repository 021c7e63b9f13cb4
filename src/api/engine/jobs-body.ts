import { z } from "zod";

import { ownerOf } from "../../auth/owner.ts";
import { CALLER_ROLES } from "../../config/kinds.ts";
import { JOB_STATUSES, type Job } from "../../fabric/job.ts";
import type { JobSummary } from "../../fabric/list.ts";
import { nameSchemas } from "../schema-names.ts";

/** Jobs as JSON. */

const MAX_LEVELS = 200;

/** Any JSON value, of so few levels that what walks it later may do so by recursion. */
export const anyJson = z.unknown().refine(isShallow, `arrays and objects are nested deeper than ${MAX_LEVELS} levels`);

/** A name that databases and logs can hold. */
export function shortText(maxChars: number) {
  const accepted = "accepted are characters that are no control characters";
  return z
    .string()
    .min(1)
    .max(maxChars)
    .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), accepted);
}

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

export function timeOf(atMs: number): string {
  return new Date(atMs).toISOString();
}

export function timeOrNull(atMs: number | undefined): string | null {
  return atMs === undefined ? null : timeOf(atMs);
}

/** Level by level: a document of a megabyte may be nested half a million times. */
function isShallow(document: unknown): boolean {
  let level = [document].filter(isContainer);
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MAX_LEVELS) return false;
    level = level.flatMap((container) => Object.values(container)).filter(isContainer);
  }
  return true;
}

function isContainer(part: unknown): part is object {
  return typeof part === "object" && part !== null;
}
