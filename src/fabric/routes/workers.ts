import { z } from "zod";

import { roleIncludes, type Caller, type WorkerIdentity } from "../../auth/caller.ts";
import { EngineError } from "../../core/errors.ts";
import { namesKind, type JobKinds } from "../kinds.ts";
import { isAdmitted, WORKER_STATUSES, type Worker } from "../workers.ts";
import { defineRoute, jsonResponse, workerOf } from "../../server/route.ts";
import { originOf, secret } from "../../server/origin.ts";
import type { FabricDeps } from "./deps.ts";
import { shortText, timeOf, timeOrNull } from "../../server/schemas.ts";
import { deleted, deletedResponse } from "../../server/schemas.ts";
import { nameSchemas } from "../../server/schema-names.ts";

/** Nodes that run jobs: how operators admit them, and how they report. */

const HEARTBEAT_INTERVAL_SECS = 30;
const RECOMMENDED_POLL_MS = 1_000;
const MAX_NAME_CHARS = 200;
const MAX_KINDS = 100;
const MAX_LABELS = 32;
const LABEL_CHARS = 64;

const anyKindNames = z.array(z.string().min(1).max(MAX_NAME_CHARS)).max(MAX_KINDS);
export const kindNames = anyKindNames.min(1);

export const labels = z
  .record(shortText(LABEL_CHARS), shortText(LABEL_CHARS))
  .refine((all) => Object.keys(all).length <= MAX_LABELS, `accepted are at most ${MAX_LABELS} labels`);

const admittedKinds = anyKindNames
  .nullable()
  .describe(
    "Kinds of which it may claim everybody's jobs, not only its owner's; null for all that it may claim. Only an admin " +
      "may say it. By default a worker that an admin makes has all, and another one's none.",
  );

const worker = z.object({
  id: z.string(),
  name: z.string(),
  status: z
    .enum(WORKER_STATUSES)
    .describe("`new` has not come yet; `offline` has been silent; the token of `revoked` is not good any more."),
  drain: z.boolean().describe("Whether it is to take no further jobs."),
  capabilities: z.array(z.string()).nullable().describe("Kinds of jobs that it may claim; null for all."),
  admitted: z
    .array(z.string())
    .nullable()
    .describe("Kinds of which it may claim everybody's jobs, not only its owner's; null for all that it may claim."),
  owned_by: z.string(),
  labels: z.record(z.string(), z.string()),
  preview: z.string().describe("The beginning and the end of its token."),
  host: z.string().nullable(),
  created_by: z.string(),
  created_at: z.string(),
  registered_at: z.string().nullable(),
  seen_at: z.string().nullable().describe("To about ten seconds."),
  revoked_at: z.string().nullable(),
});

nameSchemas({ Worker: worker });

const common = { tag: "Workers" } as const;
const forOperators = { ...common, role: "write", unscoped: true } as const;
const idPath = z.object({ id: z.string() });

export const createWorkerRoute = defineRoute({
  ...forOperators,
  method: "POST",
  path: "/v1/workers",
  summary: "Admit a worker",
  description:
    "Its token is in this answer and in no other. The worker is the caller's and claims the caller's jobs; what else it " +
    "may claim an admin says: see `admitted`.",
  json: z.strictObject({
    name: shortText(MAX_NAME_CHARS),
    capabilities: kindNames.optional().describe("Kinds of jobs that it may claim; all that workers may by default."),
    labels: labels.optional().describe("What a job's `selector` is compared with."),
    admitted: admittedKinds.optional(),
  }),
  responses: [
    {
      status: 200,
      description: "Admitted.",
      type: "application/json",
      schema: z.object({ worker_id: z.string(), token: z.string().describe("Shown this once.") }),
    },
  ],
  errors: ["conflict", "invalid_parameter", "forbidden", "insufficient_storage"],
  handler:
    ({ fabric, workers }: FabricDeps) =>
    async (call) => {
      const { name, labels: given, capabilities: kinds, admitted: asked } = call.json;
      const capabilities = kinds === undefined ? undefined : [...fabric.kinds.claimable(kinds, "workers")];
      const admitted = admittedBy(call.caller, { capabilities, admitted: asked }, fabric.kinds);
      const made = await workers.create({ name, capabilities, labels: given, admitted }, originOf(call));
      return secret(200, { worker_id: made.worker.id, token: made.token });
    },
});

export const listWorkersRoute = defineRoute({
  ...forOperators,
  method: "GET",
  path: "/v1/workers",
  summary: "The caller's workers; to an admin all",
  responses: [
    {
      status: 200,
      description: "Newest first, those that are revoked last.",
      type: "application/json",
      schema: z.object({ workers: z.array(worker) }),
    },
  ],
  errors: [],
  handler:
    ({ workers }: FabricDeps) =>
    async ({ caller }) =>
      jsonResponse(200, { workers: (await workers.list(caller)).map(bodyOf) }),
});

export const revokeWorkerRoute = defineRoute({
  ...forOperators,
  method: "DELETE",
  path: "/v1/workers/{id}",
  summary: "Revoke a worker",
  description:
    "Its writes are refused at once, and its jobs go to others with the next sweep; those that only it may run fail.",
  params: idPath,
  responses: [deletedResponse],
  errors: ["not_found", "insufficient_storage"],
  handler:
    ({ workers }: FabricDeps) =>
    async (call) => {
      await workers.revoke(call.params.id, originOf(call));
      return deleted();
    },
});

export const drainWorkerRoute = defineRoute({
  ...forOperators,
  method: "POST",
  path: "/v1/workers/{id}/drain",
  summary: "Say whether a worker is to take no further jobs",
  params: idPath,
  json: z.strictObject({ drain: z.boolean() }),
  responses: [{ status: 200, description: "The worker.", type: "application/json", schema: worker }],
  errors: ["not_found", "insufficient_storage"],
  handler:
    ({ workers }: FabricDeps) =>
    async (call) =>
      jsonResponse(200, bodyOf(await workers.drain(call.params.id, call.json.drain, originOf(call)))),
});

export const admitWorkerRoute = defineRoute({
  ...common,
  role: "admin",
  unscoped: true,
  method: "POST",
  path: "/v1/workers/{id}/admit",
  summary: "Say of which kinds a worker may claim everybody's jobs",
  description:
    "It is shown the credentials that jobs of these kinds name. One that may no longer claim others' jobs keeps those that it " +
    "holds, and is shown no credential for them.",
  params: idPath,
  json: z.strictObject({ admitted: admittedKinds }),
  responses: [{ status: 200, description: "The worker.", type: "application/json", schema: worker }],
  errors: ["not_found", "invalid_parameter", "forbidden", "insufficient_storage"],
  handler:
    ({ fabric, workers }: FabricDeps) =>
    async (call) => {
      const { capabilities } = await workers.get(call.params.id, call.caller);
      const admitted = admittedBy(call.caller, { capabilities, admitted: call.json.admitted }, fabric.kinds);
      return jsonResponse(200, bodyOf(await workers.admit(call.params.id, admitted, originOf(call))));
    },
});

type Admission = { capabilities: readonly string[] | undefined; admitted: readonly string[] | null | undefined };

/**
 * Of which kinds a worker is to have everybody's jobs, undefined for all. Where it is not said, an admin's has all of its
 * capabilities, and another one's none. Throws `forbidden` for one who may not say it, and for capabilities that need it.
 */
function admittedBy(
  { role }: Caller,
  { capabilities, admitted }: Admission,
  kinds: JobKinds,
): readonly string[] | undefined {
  if (roleIncludes(role, "admin")) {
    return admitted === undefined || admitted === null ? undefined : [...kinds.claimable(admitted, "workers")];
  }
  const needsAdmin = (capabilities ?? []).find((kind) => kinds.get(kind).needsAdmission === true);
  if (admitted !== undefined || needsAdmin !== undefined) {
    const what = needsAdmin === undefined ? "jobs of others" : `jobs of ${needsAdmin}`;
    throw new EngineError("forbidden", `only an admin lets a worker have ${what}`);
  }
  return [];
}

export const registerWorkerRoute = defineRoute({
  ...common,
  role: "worker",
  method: "POST",
  path: "/v1/workers/register",
  summary: "A worker has started",
  json: z
    .strictObject({
      name: shortText(MAX_NAME_CHARS).optional(),
      host: shortText(MAX_NAME_CHARS).optional(),
      version: shortText(MAX_NAME_CHARS).optional(),
      kinds: kindNames.optional().describe("Kinds that it is going to claim: refused here if it may not."),
    })
    .default({}),
  responses: [
    {
      status: 200,
      description: "Who it is, and how often to report.",
      type: "application/json",
      schema: z.object({
        worker_id: z.string(),
        heartbeat_interval_secs: z.int(),
        lease_secs: z.number().describe("Lease of jobs whose kind does not say otherwise."),
      }),
    },
  ],
  errors: ["invalid_parameter", "forbidden", "insufficient_storage"],
  handler:
    ({ fabric, workers }: FabricDeps) =>
    async (call) => {
      const { name, host = name, version, kinds } = call.json;
      const by = workerOf(call);
      if (kinds !== undefined) kindsFor(by, kinds, fabric.kinds);
      await workers.register(by.id, version === undefined ? host : `${host ?? "unknown"} (${version})`);
      return jsonResponse(200, {
        worker_id: by.id,
        heartbeat_interval_secs: HEARTBEAT_INTERVAL_SECS,
        lease_secs: fabric.leaseMs / 1_000,
      });
    },
});

export const heartbeatRoute = defineRoute({
  ...common,
  role: "worker",
  method: "POST",
  path: "/v1/workers/heartbeat",
  summary: "A worker is there",
  json: z.looseObject({}).default({}).describe("May be empty; what is in it is not looked at."),
  responses: [
    {
      status: 200,
      description: "How it stands.",
      type: "application/json",
      schema: z.object({
        status: z.enum(WORKER_STATUSES),
        drain: z.boolean(),
        recommended_poll_ms: z.int(),
        cancel: z.array(z.string()).describe("Ids of jobs of this worker that somebody cancelled."),
      }),
    },
  ],
  errors: ["insufficient_storage"],
  handler:
    ({ workers }: FabricDeps) =>
    async (call) => {
      const { worker: seen, cancel } = await workers.heartbeat(workerOf(call).id);
      const { status, drain } = seen;
      return jsonResponse(200, { status, drain, recommended_poll_ms: RECOMMENDED_POLL_MS, cancel });
    },
});

/** The names under which jobs of those kinds wait. Throws `invalid_parameter`, and `forbidden` for what it may not have. */
export function kindsFor(worker: WorkerIdentity, names: readonly string[], kinds: JobKinds): Set<string> {
  const { capabilities } = worker;
  const claimable = kinds.claimable(names, "workers");
  for (const name of claimable) {
    const kind = kinds.get(name);
    if (capabilities !== undefined && !namesKind(capabilities, kind)) {
      throw new EngineError("forbidden", `this worker may not have jobs of ${name}`);
    }
    if (kind.needsAdmission === true && !isAdmitted(worker, kind)) {
      throw new EngineError("forbidden", `an admin must admit this worker for jobs of ${name}`);
    }
  }
  return claimable;
}

function bodyOf(found: Worker): z.output<typeof worker> {
  return {
    id: found.id,
    name: found.name,
    status: found.status,
    drain: found.drain,
    capabilities: found.capabilities === undefined ? null : [...found.capabilities],
    admitted: found.admitted === undefined ? null : [...found.admitted],
    owned_by: found.owner,
    labels: { ...found.labels },
    preview: found.preview,
    host: found.host ?? null,
    created_by: found.createdBy,
    created_at: timeOf(found.createdAtMs),
    registered_at: timeOrNull(found.registeredAtMs),
    seen_at: timeOrNull(found.seenAtMs),
    revoked_at: timeOrNull(found.revokedAtMs),
  };
}
