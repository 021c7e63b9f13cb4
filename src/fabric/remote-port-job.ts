import { z } from "zod";
import { NO_OWNER } from "../auth/owner.ts";
import { CALLER_ROLES } from "../config/kinds.ts";
import { JOB_STATUSES, type Job } from "./job.ts";

const text = z.string().nullish();
const time = z.iso.datetime({ offset: true }).nullish();

/** A claimed job as the routes of workers show it. What this program does not know yet is left out. */
const wireJob = z.object({
  id: z.string().min(1),
  kind: z.string(),
  status: z.enum(JOB_STATUSES),
  priority: z.number(),
  database: text,
  dedup_key: text,
  worker_id: text,
  selector: z.record(z.string(), z.string()).nullish(),
  payload: z.unknown(),
  credentials: z.array(z.string()).nullish(),
  owner: z.object({
    subject: z.string(),
    role: z.enum(CALLER_ROLES),
    databases: z.array(z.string()).nullish(),
  }),
  owned_by: text,
  trace_context: text,
  attempt: z.int(),
  max_attempts: z.int(),
  backoff_ms: z.number(),
  lease_secs: z.number().positive(),
  fence: z.int(),
  holder: text,
  cancel_requested: z.boolean(),
  progress: z.unknown(),
  run_after: time,
  lease_expires_at: time,
  created_at: time,
  started_at: time,
  updated_at: time,
});

/** The answer to a claim. */
export const wireClaim = z.object({ jobs: z.array(wireJob) });

/** What a holder learns when it writes. */
export const wireHoldState = z.object({
  cancel_requested: z.boolean(),
  lease_expires_at: z.iso.datetime({ offset: true }),
});

export function toClaimedJob(wire: z.infer<typeof wireJob>): Job {
  return {
    id: wire.id,
    kind: wire.kind,
    status: wire.status,
    priority: wire.priority,
    runAfterMs: msOf(wire.run_after) ?? 0,
    database: wire.database ?? undefined,
    dedupKey: wire.dedup_key ?? undefined,
    workerId: wire.worker_id ?? undefined,
    selector: wire.selector ?? undefined,
    payload: wire.payload ?? undefined,
    credentials: wire.credentials ?? [],
    // How the owner was told apart stays with the server, which alone acts for them.
    owner: {
      ...wire.owner,
      kind: "internal",
      owner: wire.owned_by ?? NO_OWNER,
      databases: wire.owner.databases ?? undefined,
    },
    traceContext: wire.trace_context ?? undefined,
    attempt: wire.attempt,
    maxAttempts: wire.max_attempts,
    backoffMs: wire.backoff_ms,
    leaseMs: wire.lease_secs * 1_000,
    fence: wire.fence,
    holder: wire.holder ?? undefined,
    leaseExpiresAtMs: msOf(wire.lease_expires_at),
    cancelRequested: wire.cancel_requested,
    progress: wire.progress ?? undefined,
    result: undefined,
    error: undefined,
    createdAtMs: msOf(wire.created_at) ?? 0,
    startedAtMs: msOf(wire.started_at),
    finishedAtMs: undefined,
    updatedAtMs: msOf(wire.updated_at) ?? 0,
  };
}

function msOf(rfc3339: string | null | undefined): number | undefined {
  return rfc3339 === null || rfc3339 === undefined ? undefined : Date.parse(rfc3339);
}
