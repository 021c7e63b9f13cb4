import { z } from "zod";

import { callerOfWorker, type Caller } from "../../auth/caller.ts";
import { ownerFilterWithin, ownerOf } from "../../auth/owner.ts";
import { EngineError } from "../../core/errors.ts";
import { checkName } from "../../core/names.ts";
import { rfc3339ToNs } from "../../format/time-text.ts";
import type { Enqueued, NewJob } from "../enqueue.ts";
import { JOB_STATUSES, type Job } from "../job.ts";
import { checkMayEnqueue, type JobKind } from "../kinds.ts";
import { FABRIC_LIMITS } from "../limits.ts";
import { jobNotFound } from "../refusals.ts";
import { isAdmitted, type Workers } from "../workers.ts";
import type { HttpResponse } from "../../io/http/http.ts";
import { PAGE_HEADERS, pageLimit, pageOf } from "../../server/paging.ts";
import { defineRoute, jsonResponse, workerOf, type RouteResponse } from "../../server/route.ts";
import type { FabricDeps } from "./deps.ts";
import { anyJson, shortText } from "../../server/schemas.ts";
import { bodyOfJob, jobBody, jobSummary, summaryOf } from "./jobs-body.ts";
import { kindsFor, labels } from "./workers.ts";

/** How jobs are enqueued, seen, cancelled and tried again. */

const DEFAULT_LISTED = 50;
const MAX_LISTED = 500;
const MAX_NAME_CHARS = 200;
/** Jobs that a worker may have enqueued for itself, and not claimed. */
const MAX_PINNED = 1_000;
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

const common = { tag: "Jobs" } as const;
const forOperators = { ...common, role: "write" } as const;
const idPath = z.object({ id: z.string() });
const oneJob: RouteResponse = { status: 200, description: "The job.", type: "application/json", schema: jobBody };

const { backoffMs, maxAttempts, priority } = FABRIC_LIMITS;
/** What a worker may say of a job for itself. */
const jobFields = {
  kind: z.string().min(1).max(MAX_NAME_CHARS),
  payload: anyJson.optional().describe("What the kind of job takes; null when absent."),
  priority: z.int().min(priority.min).max(priority.max).optional().describe("Higher goes first."),
  run_after: z
    .string()
    .refine((text) => rfc3339ToNs(text) !== undefined, "accepted is an RFC 3339 time")
    .optional()
    .describe("RFC 3339 time before which nobody gets it, by the database's clock."),
  dedup_key: shortText(FABRIC_LIMITS.dedupKeyChars)
    .optional()
    .describe("While a job of this kind, database and key is unfinished, another is not enqueued."),
  max_attempts: z.int().min(maxAttempts.min).max(maxAttempts.max).optional(),
  backoff_ms: z.int().min(backoffMs.min).max(backoffMs.max).optional(),
  trace_context: z.string().regex(TRACEPARENT, "accepted is a W3C traceparent").optional(),
};

const enqueued = { type: "application/json", schema: z.object({ job_id: z.string(), deduped: z.boolean() }) } as const;
const enqueuedResponses: readonly RouteResponse[] = [
  { ...enqueued, status: 202, description: "Enqueued." },
  { ...enqueued, status: 200, description: "There is such a job already: see `dedup_key`." },
];

const traceHeader = z.object({ traceparent: z.string().optional().describe("The default of `trace_context`.") });

export const enqueueJobRoute = defineRoute({
  ...forOperators,
  method: "POST",
  path: "/v1/jobs",
  summary: "Enqueue a job",
  description: "It runs with no more than the caller's rights.",
  headers: traceHeader,
  json: z.strictObject({
    ...jobFields,
    database: z.string().optional().describe("What it is about: decides who sees it, and whose turn it takes."),
    worker_id: z.string().max(MAX_NAME_CHARS).optional().describe("The only worker that may claim it."),
    selector: labels.optional().describe("Labels that a worker must have to claim it."),
    credentials: z
      .array(z.string().max(MAX_NAME_CHARS))
      .max(FABRIC_LIMITS.credentials)
      .optional()
      .describe("Ids of credentials that whoever runs it may fetch."),
  }),
  responses: enqueuedResponses,
  errors: ["invalid_parameter", "invalid_name", "not_found", "conflict", "not_configured", "insufficient_storage"],
  handler:
    ({ fabric, workers, credentials, clock }: FabricDeps) =>
    async ({ caller, json, headers }) => {
      const kind = fabric.kinds.get(json.kind);
      checkMayEnqueue(kind, caller);
      if (json.database !== undefined) checkName("database", json.database);
      for (const id of json.credentials ?? []) await credentials.get(id, caller);
      const { worker_id: workerId, selector, database } = json;
      if (workerId !== undefined) await checkWorker(workers, { id: workerId, kind, caller });
      const request = { ...requestOf(json, headers, clock.nowMs()), workerId, selector, database };
      const answer = await fabric.enqueue({ ...request, credentials: json.credentials }, caller);
      if (workerId !== undefined && !answer.deduped) await checkPinned({ fabric, workers }, answer.job);
      return answerOf(answer);
    },
});

export const enqueueOwnJobRoute = defineRoute({
  ...common,
  role: "worker",
  method: "POST",
  path: "/v1/jobs/self",
  summary: "Enqueue a job that this worker alone may claim",
  description: "Of a kind that it may claim. `dedup_key` is this worker's own; there are no credentials.",
  headers: traceHeader,
  json: z.strictObject(jobFields),
  responses: enqueuedResponses,
  errors: ["invalid_parameter", "conflict", "insufficient_storage"],
  handler:
    ({ fabric, workers, clock }: FabricDeps) =>
    async (call) => {
      const worker = workerOf(call);
      const { json, headers } = call;
      kindsFor(worker, [json.kind], fabric.kinds);
      // What those may enqueue who may make workers.
      checkMayEnqueue(fabric.kinds.get(json.kind), { role: createWorkerRole });
      if ((await workers.countPinned(worker.id, MAX_PINNED)) >= MAX_PINNED) {
        const details = { headers: { "Retry-After": "1" } };
        throw new EngineError("too_many_requests", `${MAX_PINNED} jobs wait for this worker alone`, details);
      }
      const request = requestOf(json, headers, clock.nowMs());
      const dedupKey = request.dedupKey === undefined ? undefined : `${worker.id}:${request.dedupKey}`;
      const answer = await fabric.enqueue({ ...request, dedupKey, workerId: worker.id }, callerOfWorker(worker));
      if (!answer.deduped) await checkPinned({ fabric, workers }, answer.job);
      return answerOf(answer);
    },
});

/**
 * A worker gains nothing by it: it alone claims the job, of a kind that it may claim anyway, and the job brings no
 * credentials and no database. Its keys are apart from those of others, so that it keeps no job of theirs from being
 * enqueued. The job is the worker's owner's, and runs with the least role.
 */

const createWorkerRole = "write";

export const listJobsRoute = defineRoute({
  ...forOperators,
  method: "GET",
  path: "/v1/jobs",
  summary: "The caller's jobs, without payload, progress and result; to an admin all",
  query: z.object({
    kind: z.string().optional(),
    status: z.enum(JOB_STATUSES).optional(),
    limit: pageLimit(MAX_LISTED, DEFAULT_LISTED),
    before: z
      .uuid("accepted is the id of a job")
      .optional()
      .describe("Only jobs older than the one of this id: the last of the page before."),
  }),
  responses: [
    {
      status: 200,
      description: "Newest first.",
      type: "application/json",
      schema: z.object({ jobs: z.array(jobSummary) }),
      headers: PAGE_HEADERS,
    },
  ],
  errors: ["invalid_parameter"],
  handler:
    ({ fabric }: FabricDeps) =>
    async ({ caller, request, query: { kind, limit: most, ...rest } }) => {
      const known = kind === undefined ? {} : { kind: fabric.kinds.get(kind).name };
      const { databases } = caller;
      const filter = { ...rest, ...known, databases, owner: ownerFilterWithin(caller) };
      const { items, headers } = await pageOf(request, most, (limit) => fabric.list({ ...filter, limit }));
      return jsonResponse(200, { jobs: items.map(summaryOf) }, headers);
    },
});

export const getJobRoute = defineRoute({
  ...forOperators,
  method: "GET",
  path: "/v1/jobs/{id}",
  summary: "A job with its payload, progress and result",
  params: idPath,
  responses: [oneJob],
  errors: ["not_found"],
  handler:
    ({ fabric }: FabricDeps) =>
    async ({ caller, params }) =>
      jsonResponse(200, bodyOfJob(await visible({ fabric }, params.id, caller))),
});

export const cancelJobRoute = defineRoute({
  ...forOperators,
  method: "POST",
  path: "/v1/jobs/{id}/cancel",
  summary: "Cancel a job",
  description: "One that waits is cancelled; whoever runs one is told to stop. One that is finished stays as it is.",
  params: idPath,
  responses: [oneJob],
  errors: ["not_found", "insufficient_storage"],
  handler:
    ({ fabric }: FabricDeps) =>
    async ({ caller, params }) => {
      const { id } = await visible({ fabric }, params.id, caller);
      return jsonResponse(200, bodyOfJob(await fabric.cancel(id)));
    },
});

export const retryJobRoute = defineRoute({
  ...forOperators,
  method: "POST",
  path: "/v1/jobs/{id}/retry",
  summary: "Queue a job again that has failed or was cancelled",
  description: "Of a kind that the caller may enqueue.",
  params: idPath,
  responses: [oneJob],
  errors: ["not_found", "forbidden", "conflict", "insufficient_storage"],
  handler:
    ({ fabric, workers }: FabricDeps) =>
    async ({ caller, params }) => {
      const { id, kind, workerId } = await visible({ fabric }, params.id, caller);
      // What only the engine enqueues it has settled: it would be done again for nothing.
      checkMayEnqueue(fabric.kinds.get(kind), caller);
      const isGone = workerId !== undefined && (await workers.find(workerId))?.status === "revoked";
      if (isGone) throw isRevoked(workerId);
      const job = await fabric.retry(id);
      await checkPinned({ fabric, workers }, job);
      return jsonResponse(200, bodyOfJob(job));
    },
});

/** Throws `not_found` also for a job that the caller may not reach. */
async function visible({ fabric }: Pick<FabricDeps, "fabric">, id: string, caller: Caller): Promise<Job> {
  const job = await fabric.find(id, caller);
  if (job === undefined) throw jobNotFound(id);
  return job;
}

type JobFields = z.output<z.ZodObject<typeof jobFields>>;

function requestOf(json: JobFields, headers: { traceparent?: string | undefined }, nowMs: number): NewJob {
  const { traceparent = "" } = headers;
  const dueAtNs = json.run_after === undefined ? undefined : rfc3339ToNs(json.run_after);
  const runAfterMs = dueAtNs === undefined ? undefined : Number(dueAtNs / 1_000_000n);
  if (runAfterMs !== undefined && runAfterMs - nowMs > FABRIC_LIMITS.runAfterMs) {
    throw new EngineError("bad_request_body", "run_after: is more than a year ahead");
  }
  return {
    kind: json.kind,
    payload: json.payload ?? null,
    priority: json.priority,
    runAfterMs,
    dedupKey: json.dedup_key,
    maxAttempts: json.max_attempts,
    backoffMs: json.backoff_ms,
    // A header that is malformed is to be ignored (W3C Trace Context §3.2).
    traceContext: json.trace_context ?? (TRACEPARENT.test(traceparent) ? traceparent : undefined),
  };
}

type Wanted = { id: string; kind: JobKind; caller: Caller };

/** Throws `not_found`, also for a worker of somebody else; `conflict` for one that will not have the job. */
async function checkWorker(workers: Workers, { id, kind, caller }: Wanted): Promise<void> {
  const worker = await workers.get(id, caller);
  if (worker.status === "revoked") throw isRevoked(id);
  if (worker.owner === ownerOf(caller) || isAdmitted(worker, kind)) return;
  throw new EngineError("conflict", `worker ${id} has its owner's jobs only: admit it for ${kind.name} first`);
}

function isRevoked(workerId: string): EngineError {
  return new EngineError("conflict", `worker ${workerId} is revoked`);
}

/** A worker that was revoked while a job for it was queued leaves it to nobody: then the job is cancelled. */
async function checkPinned({ fabric, workers }: Pick<FabricDeps, "fabric" | "workers">, job: Job): Promise<void> {
  if (job.workerId === undefined) return;
  const worker = await workers.find(job.workerId);
  if (worker !== undefined && worker.status !== "revoked") return;
  await fabric.cancel(job.id);
  throw isRevoked(job.workerId);
}

function answerOf({ job, deduped }: Enqueued): HttpResponse {
  return jsonResponse(deduped ? 200 : 202, { job_id: job.id, deduped });
}
