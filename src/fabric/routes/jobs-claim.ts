import { z } from "zod";

import type { WorkerIdentity } from "../../auth/caller.ts";
import { EngineError } from "../../core/errors.ts";
import { holdOf, type Job } from "../job.ts";
import { FABRIC_LIMITS } from "../limits.ts";
import { isLeaseLost } from "../refusals.ts";
import { jobsOfWorker, mayHaveJob } from "../workers.ts";
import { unauthorized } from "../../auth/authenticator.ts";
import { defineRoute, jsonResponse, workerOf } from "../../server/route.ts";
import type { FabricDeps } from "./deps.ts";
import { bodyOfClaimed, claimedJob } from "./jobs-body.ts";
import { kindNames, kindsFor } from "./workers.ts";

/** Claims of one worker that are answered at once, here; a daemon has one or two. */
const MAX_CLAIMS = 64;

export const claimJobsRoute = defineRoute({
  role: "worker",
  tag: "Jobs",
  method: "POST",
  path: "/v1/jobs/claim",
  summary: "Lease jobs",
  description:
    "Waits up to `wait_ms`, at most 25 s, for the first. A worker that drains gets none. Whoever gets a job writes with " +
    "its `fence` in the header `X-Job-Fence`, and says within `lease_secs` that it is still there.",
  json: z.strictObject({
    kinds: kindNames,
    max: z.int().min(1).max(FABRIC_LIMITS.claimJobs).default(1),
    wait_ms: z
      .int()
      .min(0)
      .default(0)
      .transform((waitMs) => Math.min(waitMs, FABRIC_LIMITS.claimWaitMs)),
  }),
  responses: [
    {
      status: 200,
      description: "At most `max` jobs.",
      type: "application/json",
      schema: z.object({ jobs: z.array(claimedJob) }),
    },
  ],
  errors: ["invalid_parameter", "forbidden", "insufficient_storage"],
  handler: (deps: FabricDeps) => {
    const { fabric } = deps;
    const claims = new ClaimCount();
    return async (call) => {
      const { json, request } = call;
      const worker = workerOf(call);
      const kinds = kindsFor(worker, json.kinds, fabric.kinds);
      if (worker.drain) return jsonResponse(200, { jobs: [] });
      const { id, labels } = worker;
      const who = { kinds, labels, workerId: id, holder: id, jobsOf: jobsOfWorker(worker, fabric.kinds) };
      const jobs = await claims.one(id, () =>
        fabric.claim({ ...who, max: json.max, waitMs: json.wait_ms, signal: request.signal }),
      );
      if (jobs.length > 0) await checkStillWanted(deps, worker, { jobs, signal: request.signal });
      return jsonResponse(200, { jobs: jobs.map(bodyOfClaimed) });
    };
  },
});

type Claimed = { jobs: Job[]; signal: AbortSignal };

/**
 * While it waited the worker may have left, or been revoked, told to drain, handed over, or no longer be admitted: then
 * it must not keep what it just got. Asked only where there are jobs, so that those who wait in vain cost nothing.
 */
async function checkStillWanted(
  { fabric, workers }: FabricDeps,
  { id }: WorkerIdentity,
  { jobs, signal }: Claimed,
): Promise<void> {
  const worker = await workers.find(id);
  const isRevoked = worker === undefined || worker.status === "revoked";
  const isWanted = !isRevoked && !worker.drain && !signal.aborted;
  for (const job of jobs.splice(0)) {
    if (isWanted && mayHaveJob(worker, job, fabric.kinds)) {
      jobs.push(job);
      continue;
    }
    await fabric.release(holdOf(job)).catch((error: unknown) => {
      // Revoking it ended the lease already.
      if (!isLeaseLost(error)) throw error;
    });
  }
  if (isRevoked) throw unauthorized("the token is not valid: it is unknown, expired or revoked", "invalid_token");
}

/** How many claims of each worker are being answered. */
class ClaimCount {
  readonly #byWorker = new Map<string, number>();

  /** Throws `too_many_requests`. */
  async one<T>(workerId: string, run: () => Promise<T>): Promise<T> {
    const running = this.#byWorker.get(workerId) ?? 0;
    if (running >= MAX_CLAIMS) {
      const details = { headers: { "Retry-After": "1" } };
      throw new EngineError("too_many_requests", `${MAX_CLAIMS} claims of this worker are waiting`, details);
    }
    this.#byWorker.set(workerId, running + 1);
    try {
      return await run();
    } finally {
      const rest = (this.#byWorker.get(workerId) ?? 1) - 1;
      if (rest === 0) this.#byWorker.delete(workerId);
      else this.#byWorker.set(workerId, rest);
    }
  }
}
