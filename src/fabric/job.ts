import { NOW, type RecordRow, type RecordValue } from "../db/records.ts";
import type { Caller } from "../auth/caller.ts";
import { scopeOfColumn, scopeToColumn, storedRole } from "../auth/stored-caller.ts";
import { parseLane, type Labels } from "./lanes.ts";

/**
 * A job: something that takes long, and is done by one node of many.
 *
 * | status | moved by | to |
 * |---|---|---|
 * | (none) | enqueue | `queued` |
 * | `queued` | claim, once it is due | `leased`, with the next fence |
 * | `queued` | cancel | `cancelled` |
 * | `leased` | complete | `done` |
 * | `leased` | fail for good, or for the last time | `failed` |
 * | `leased` | fail that may be retried | `queued`, due after a pause |
 * | `leased` | the lease ends: sweep | `queued`; `failed` after the last attempt |
 * | `leased` | cancel, then complete, fail or sweep | `done`, or else `cancelled` |
 * | `leased` | release (the holder drains) | `queued`, without counting the attempt |
 * | `failed`, `cancelled` | retry | `queued`, attempts counted anew |
 *
 * Whoever holds a job writes with its fence, which grows with every claim: the writes of one whose lease has ended are
 * refused, even before somebody else has the job. Times are the database's.
 */
export type Job = {
  id: string;
  kind: string;
  status: JobStatus;
  /** Higher goes first among the jobs of one kind and database; -100 to 100. */
  priority: number;
  runAfterMs: number;
  /** What it is about: decides who may see it, and whose turn it takes. */
  database: string | undefined;
  dedupKey: string | undefined;
  /** The only worker that may claim it. */
  workerId: string | undefined;
  /** Labels that a worker must have to claim it. */
  selector: Labels | undefined;
  payload: unknown;
  /** Ids of credentials that the holder may fetch. */
  credentials: readonly string[];
  owner: JobOwner;
  /** W3C `traceparent` of what enqueued it. */
  traceContext: string | undefined;
  attempt: number;
  maxAttempts: number;
  backoffMs: number;
  leaseMs: number;
  fence: number;
  holder: string | undefined;
  leaseExpiresAtMs: number | undefined;
  cancelRequested: boolean;
  progress: unknown;
  result: unknown;
  error: string | undefined;
  createdAtMs: number;
  /** Of the newest attempt. */
  startedAtMs: number | undefined;
  finishedAtMs: number | undefined;
  updatedAtMs: number;
};

export const JOB_STATUSES = ["queued", "leased", "done", "failed", "cancelled"] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

/** Who enqueued a job: it runs with no more than their rights. `owner` is whose it is, where it was handed over. */
export type JobOwner = Pick<Caller, "owner" | "subject" | "kind" | "role" | "databases">;

/** What a holder shows with every write. */
export type Hold = { jobId: string; holder: string; fence: number };

/** Of a job, what its holder works with; it may be kept and taken up again (`JobRunner.adopt`). */
export type LeasedJob = Pick<
  Job,
  | "id"
  | "kind"
  | "payload"
  | "credentials"
  | "database"
  | "owner"
  | "traceContext"
  | "attempt"
  | "fence"
  | "holder"
  | "leaseMs"
>;

export function holdOf({ id, holder = "", fence }: Pick<Job, "id" | "holder" | "fence">): Hold {
  return { jobId: id, holder, fence };
}

export function isJobStatus(text: unknown): text is JobStatus {
  return JOB_STATUSES.some((status) => status === text);
}

/** The holder's condition in a WHERE, with its values: the job is leased to it, and the lease has not ended. */
export const IS_HELD = "id = ? AND holder = ? AND fence = ? AND status = 'leased' AND lease_expires_at_ms > ?";

export function heldValues({ jobId, holder, fence }: Hold): RecordValue[] {
  return [jobId, holder, fence, NOW];
}

/** Columns in the order of `Job`; named, for a row that an UPDATE returns may be joined with others. */
export const JOB_COLUMNS =
  "id, kind, status, lane, payload, credentials, dedup_key, owner, subject, caller_kind, role, databases, run_after_ms, " +
  "trace_context, attempt, max_attempts, backoff_ms, lease_ms, fence, holder, lease_expires_at_ms, cancel_requested, " +
  "progress, result, error, created_at_ms, started_at_ms, finished_at_ms, updated_at_ms";

export function toJob(row: RecordRow): Job {
  const lane = parseLane(textOf(row, "lane"));
  return {
    id: textOf(row, "id"),
    kind: textOf(row, "kind"),
    status: statusOf(row),
    priority: lane.priority,
    runAfterMs: Number(row["run_after_ms"]),
    database: lane.database,
    dedupKey: optionalText(row, "dedup_key"),
    workerId: lane.workerId,
    selector: lane.selector,
    payload: jsonOf(row, "payload"),
    credentials: (jsonOf(row, "credentials") as string[] | undefined) ?? [],
    owner: ownerOf(row),
    traceContext: optionalText(row, "trace_context"),
    attempt: Number(row["attempt"]),
    maxAttempts: Number(row["max_attempts"]),
    backoffMs: Number(row["backoff_ms"]),
    leaseMs: Number(row["lease_ms"]),
    fence: Number(row["fence"]),
    holder: optionalText(row, "holder"),
    leaseExpiresAtMs: optionalNumber(row, "lease_expires_at_ms"),
    cancelRequested: Number(row["cancel_requested"]) === 1,
    progress: jsonOf(row, "progress"),
    result: jsonOf(row, "result"),
    error: optionalText(row, "error"),
    createdAtMs: Number(row["created_at_ms"]),
    startedAtMs: optionalNumber(row, "started_at_ms"),
    finishedAtMs: optionalNumber(row, "finished_at_ms"),
    updatedAtMs: Number(row["updated_at_ms"]),
  };
}

/** Of a row with `subject`, `caller_kind`, `role` and `databases`; and `owner`, where the record's is in that column. */
export function ownerOf(row: RecordRow): JobOwner {
  const owner = optionalText(row, "owner");
  return {
    ...(owner !== undefined && { owner }),
    subject: textOf(row, "subject"),
    kind: textOf(row, "caller_kind") as Caller["kind"],
    role: storedRole(row["role"]),
    databases: scopeOfColumn(row["databases"]),
  };
}

/** What goes into those columns, without `owner`. */
export function ownerValues({ subject, kind, role, databases }: JobOwner): RecordValue[] {
  return [subject, kind, role, scopeToColumn(databases)];
}

function statusOf(row: RecordRow): JobStatus {
  const status = textOf(row, "status");
  if (isJobStatus(status)) return status;
  throw new Error(`the status of a stored job is ${status}`);
}

export function textOf(row: RecordRow, column: string): string {
  return String(row[column]);
}

export function optionalText(row: RecordRow, column: string): string | undefined {
  const value = row[column];
  return typeof value === "string" ? value : undefined;
}

export function optionalNumber(row: RecordRow, column: string): number | undefined {
  const value = row[column];
  return value === null || value === undefined ? undefined : Number(value);
}

export function jsonOf(row: RecordRow, column: string): unknown {
  const value = row[column];
  return typeof value === "string" ? JSON.parse(value) : undefined;
}
