import { z } from "zod";

import type { HoldState } from "../extend.ts";
import { LOG_LEVELS } from "../handler.ts";
import type { Hold } from "../job.ts";
import { FABRIC_LIMITS } from "../limits.ts";
import type { Fabric } from "../fabric.ts";
import { jobNotFound, leaseLost } from "../refusals.ts";
import type { HttpResponse } from "../../io/http/http.ts";
import { defineRoute, jsonResponse, workerOf, type Call } from "../../server/route.ts";
import type { FabricDeps } from "./deps.ts";
import { anyJson, timeOf } from "../../server/schemas.ts";

/**
 * What the worker that holds a job writes of it, and fetches for it, under its fence. A worker that shows no fence writes
 * under that of the lease that it has: enough for one that runs a job at a time. One that lost a job and got it again
 * cannot tell its two attempts apart without it.
 */

const common = { role: "worker", tag: "Jobs" } as const;
const idPath = z.object({ id: z.string() });
const JOB_ID = /^[0-9a-f-]{36}$/;
const fence = z
  .string()
  .regex(/^[0-9]{1,15}$/, "accepted is the `fence` of the claimed job")
  .transform(Number);
export const fenceHeader = z.object({ "x-job-fence": fence.describe("The `fence` of the claimed job.") });
export const optionalFence = z.object({
  "x-job-fence": fence
    .optional()
    .describe("The `fence` of the claimed job. Without it, that of the lease that the worker has on the job."),
});
const writeErrors = ["invalid_header", "not_found", "lease_lost", "insufficient_storage"] as const;

const heldResponse = {
  status: 200,
  description: "Written.",
  type: "application/json",
  schema: z.object({
    cancel_requested: z.boolean().describe("Somebody cancelled the job: stop soon."),
    lease_expires_at: z.string(),
  }),
};
const writtenResponse = { status: 204, description: "Written." };

export const progressRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/jobs/{id}/progress",
  summary: "Say how far a job is",
  description: "Any JSON value of at most 64 KiB, in place of the one before.",
  params: idPath,
  headers: optionalFence,
  json: anyJson.optional(),
  responses: [heldResponse],
  errors: writeErrors,
  handler:
    ({ fabric }: FabricDeps) =>
    async (call) =>
      stateResponse(await fabric.progress(await holdIn(fabric, call), call.json ?? null)),
});

export const completeRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/jobs/{id}/complete",
  summary: "A job is done",
  description: "The body is its result: any JSON value of at most 256 KiB, or nothing.",
  params: idPath,
  headers: optionalFence,
  json: anyJson.optional(),
  responses: [writtenResponse],
  errors: writeErrors,
  handler:
    ({ fabric }: FabricDeps) =>
    async (call) => {
      await fabric.complete(await holdIn(fabric, call), call.json ?? null);
      return written();
    },
});

export const failRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/jobs/{id}/fail",
  summary: "A job has failed",
  description: "For good, unless the body says that it is `retryable` and there are attempts left.",
  params: idPath,
  headers: optionalFence,
  json: z.union([
    z.string(),
    z.strictObject({
      error: z.string(),
      retryable: z.boolean().optional(),
      retry_after_ms: z
        .int()
        .min(0)
        .max(FABRIC_LIMITS.backoffMs.max)
        .optional()
        .describe("The pause before the next attempt; by default the job's own, longer with each."),
    }),
  ]),
  responses: [writtenResponse],
  errors: writeErrors,
  handler:
    ({ fabric }: FabricDeps) =>
    async (call) => {
      const { json } = call;
      const failure =
        typeof json === "string"
          ? { error: json }
          : { error: json.error, retryable: json.retryable, retryAfterMs: json.retry_after_ms };
      await fabric.fail(await holdIn(fabric, call), failure);
      return written();
    },
});

const { min, max } = FABRIC_LIMITS.leaseMs;

export const leaseRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/jobs/{id}/lease",
  summary: "Keep a job for longer",
  params: idPath,
  headers: optionalFence,
  json: z.strictObject({
    lease_secs: z
      .number()
      .min(min / 1_000)
      .max(max / 1_000)
      .describe("Seconds from now."),
  }),
  responses: [heldResponse],
  errors: writeErrors,
  handler:
    ({ fabric }: FabricDeps) =>
    async (call) =>
      stateResponse(await fabric.extend(await holdIn(fabric, call), call.json.lease_secs * 1_000)),
});

export const releaseRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/jobs/{id}/release",
  summary: "Give a job back",
  description: "It goes to the next at once, and the attempt does not count.",
  params: idPath,
  headers: optionalFence,
  responses: [writtenResponse],
  errors: writeErrors,
  handler:
    ({ fabric }: FabricDeps) =>
    async (call) => {
      await fabric.release(await holdIn(fabric, call));
      return written();
    },
});

export const jobLogsRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/jobs/{id}/logs",
  summary: "Add lines to a job's log",
  params: idPath,
  headers: optionalFence,
  json: z.strictObject({
    lines: z
      .array(z.strictObject({ level: z.enum(LOG_LEVELS), message: z.string() }))
      .max(FABRIC_LIMITS.log.linesAtOnce),
  }),
  responses: [writtenResponse],
  errors: writeErrors,
  handler:
    ({ fabric, logs }: FabricDeps) =>
    async (call) => {
      await logs.append(await holdIn(fabric, call), call.json.lines);
      return written();
    },
});

type Shown = { "x-job-fence"?: number | undefined };

/**
 * What the worker shows of a job, or has. Throws `lease_lost`; and where it shows nothing, `not_found` for a job that it
 * could not have, as for an id that is none.
 */
export async function holdIn(fabric: Fabric, call: Call<{ id: string }, unknown, Shown>): Promise<Hold> {
  const { id } = call.params;
  const fence = call.headers["x-job-fence"];
  if (fence !== undefined) return holdOfJob(id, { ...call, headers: { "x-job-fence": fence } });
  if (!JOB_ID.test(id)) throw jobNotFound(id);
  return fabric.holdOfWorker(id, workerOf(call));
}

type Fenced = { "x-job-fence": number };

/** What the worker shows of a job. Throws `lease_lost` for an id that is none: no worker holds such a job. */
export function holdOfJob(jobId: string, call: Pick<Call<unknown, unknown, Fenced>, "worker" | "headers">): Hold {
  const hold = { jobId, holder: workerOf(call).id, fence: call.headers["x-job-fence"] };
  if (!JOB_ID.test(hold.jobId)) throw leaseLost(hold);
  return hold;
}

function stateResponse({ cancelRequested, leaseExpiresAtMs }: HoldState): HttpResponse {
  return jsonResponse(200, { cancel_requested: cancelRequested, lease_expires_at: timeOf(leaseExpiresAtMs) });
}

function written(): HttpResponse {
  return { status: 204, headers: {} };
}
