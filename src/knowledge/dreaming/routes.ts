import { z } from "zod";
import { usToText } from "../memory/times.ts";
import { originOf } from "../../server/origin.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { nameSchemas } from "../../server/schema-names.ts";
import { databaseHeader } from "../../server/schemas.ts";
import { DREAM_MODES, focusField } from "./dream-job.ts";
import { DREAMING_LIMITS } from "./limits.ts";
import { KEPT_REASONS } from "./revert.ts";
import { PIPELINE_KINDS, RUN_STATUSES, RUN_TRIGGERS, type PipelineRun } from "./runs.ts";
import type { DreamingService } from "./service.ts";

/** What the routes of dreaming work with. */
export type DreamingDeps = { dreaming: DreamingService };

const TAG = "Dreaming";
const PATH = "/v1/agent/memory/dreaming";

const inDatabase = z.object({ "x-database": databaseHeader });
const ofRun = z.object({ id: z.string() });

const pipelineRun = z.object({
  id: z.string(),
  kind: z.enum(PIPELINE_KINDS),
  status: z.enum(RUN_STATUSES),
  mode: z.string().nullable().describe("Of a dream: `incremental` or `deep`."),
  focus: z.string().nullable(),
  trigger: z.enum(RUN_TRIGGERS),
  requested_by: z.string().nullable().describe("Who asked for it; null where nobody did."),
  engine: z.string().nullable(),
  model: z.string().nullable(),
  created_at: z.string(),
  started_at: z.string().nullable(),
  finished_at: z.string().nullable(),
  events_scanned: z.int(),
  memories_written: z.int().describe("Memories and entities that it added, changed or ended."),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  job_id: z.string().nullable(),
  session_id: z.string().nullable(),
  agent_run_id: z.string().nullable(),
  worker_id: z.string().nullable().describe("The worker that it ran on; null where this program ran it."),
  stats: z.record(z.string(), z.unknown()).describe("Counts; of a dream, what came of the proposals."),
  progress: z
    .unknown()
    .describe(
      "Of a run under way: `phase`, and counts of `events`, `proposals` and what is `written`; null otherwise.",
    ),
  reverted_at: z.string().nullable(),
});

nameSchemas({ PipelineRun: pipelineRun });

const runRoute = defineRoute({
  method: "POST",
  path: `${PATH}/run`,
  role: "read",
  tag: TAG,
  summary: "Dream",
  description:
    "Has the agent's engine read the events of the table `firehose` that no dream has read, and turn them into memories. It " +
    "is a job, one at a time for each database. What it writes is `derived`, lies in the realms of the settings, and can be " +
    "taken back. `deep` and `focus` need the role `write`; a dream with a `focus` leaves its events to the next dream, too.",
  headers: inDatabase,
  json: z
    .strictObject({
      mode: z.enum(DREAM_MODES).nullish().describe("`deep` also goes over old memories; `incremental` unless given."),
      focus: focusField.nullish().describe("What to look for."),
    })
    .optional(),
  responses: [
    {
      status: 202,
      description: "It is queued.",
      type: "application/json",
      schema: z.object({ job_id: z.string() }),
    },
    {
      status: 200,
      description: "One is queued or running already.",
      type: "application/json",
      schema: z.object({ job_id: z.null(), deduped: z.literal(true), detail: z.string() }),
    },
  ],
  errors: ["bad_request_body", "database_not_found"],
  handler:
    ({ dreaming }: DreamingDeps) =>
    async ({ caller, headers: { "x-database": database }, json }) => {
      const scope = await dreaming.scope(caller, database);
      const focus = json?.focus?.trim() ?? "";
      const asked = await dreaming.request(scope, database, {
        mode: json?.mode ?? "incremental",
        focus: focus === "" ? undefined : focus,
      });
      if (asked.jobId !== undefined) return jsonResponse(202, { job_id: asked.jobId });
      const which = asked.inFlight === undefined ? "" : `: run ${asked.inFlight}`;
      const detail = `a dream of this database is queued or running${which}`;
      return jsonResponse(200, { job_id: null, deduped: true, detail });
    },
});

const listRoute = defineRoute({
  method: "GET",
  path: `${PATH}/runs`,
  role: "read",
  tag: TAG,
  summary: "Runs of pipelines",
  description: "Runs of everything that writes memories by itself, the newest first.",
  headers: inDatabase,
  query: z.object({
    kind: z.enum(PIPELINE_KINDS).optional(),
    limit: z.coerce.number().int().min(1).max(DREAMING_LIMITS.runs).default(50),
    offset: z.coerce.number().int().min(0).max(1_000_000).default(0),
  }),
  responses: [
    {
      status: 200,
      description: "The newest first.",
      type: "application/json",
      schema: z.object({ runs: z.array(pipelineRun) }),
    },
  ],
  errors: ["database_not_found", "invalid_parameter"],
  handler:
    ({ dreaming }: DreamingDeps) =>
    async ({ caller, headers, query }) => {
      const scope = await dreaming.scope(caller, headers["x-database"]);
      return jsonResponse(200, { runs: (await dreaming.list(scope, query)).map(bodyOf) });
    },
});

const getRoute = defineRoute({
  method: "GET",
  path: `${PATH}/runs/{id}`,
  role: "read",
  tag: TAG,
  summary: "A run of a pipeline",
  headers: inDatabase,
  params: ofRun,
  responses: [{ status: 200, description: "As it is now.", type: "application/json", schema: pipelineRun }],
  errors: ["database_not_found", "not_found"],
  handler:
    ({ dreaming }: DreamingDeps) =>
    async ({ caller, headers, params }) => {
      const scope = await dreaming.scope(caller, headers["x-database"]);
      return jsonResponse(200, bodyOf(await dreaming.get(scope, params.id)));
    },
});

const revertRoute = defineRoute({
  method: "POST",
  path: `${PATH}/runs/{id}/revert`,
  role: "write",
  tag: TAG,
  summary: "Take a run back",
  description:
    "Takes back what a run wrote, where nothing was built on it: what it added holds no more, what it changed or ended is as " +
    "it was. All in one commit, and audited. What stays is named: `changed` and `erased` since; `linked`: something that " +
    "stays ends at it; `together`: the same proposal wrote something that stays; `forbidden`: it lies in another user's realm.",
  headers: inDatabase,
  params: ofRun,
  responses: [
    {
      status: 200,
      description: "What was taken back, and what was not.",
      type: "application/json",
      schema: z.object({
        run_id: z.string(),
        reverted: z.int().describe("Records that were taken back by this request."),
        kept: z.array(z.object({ kind: z.enum(["node", "edge"]), id: z.string(), reason: z.enum(KEPT_REASONS) })),
      }),
    },
  ],
  errors: ["database_not_found", "not_found", "conflict", "too_many_requests"],
  handler:
    ({ dreaming }: DreamingDeps) =>
    async (call) => {
      const { caller, headers, params } = call;
      const scope = await dreaming.scope(caller, headers["x-database"]);
      const { taken, kept } = await dreaming.revert(scope, params.id, originOf(call));
      return jsonResponse(200, { run_id: params.id, reverted: taken.length, kept });
    },
});

export const DREAMING_ROUTES = [runRoute, listRoute, getRoute, revertRoute];

function bodyOf(run: PipelineRun): z.input<typeof pipelineRun> {
  return {
    id: run.id,
    kind: run.kind,
    status: run.status,
    mode: run.mode ?? null,
    focus: run.focus ?? null,
    trigger: run.trigger,
    requested_by: run.requestedBy ?? null,
    engine: run.engine ?? null,
    model: run.model ?? null,
    created_at: timeText(run.createdAtMs),
    started_at: run.startedAtMs === undefined ? null : timeText(run.startedAtMs),
    finished_at: run.finishedAtMs === undefined ? null : timeText(run.finishedAtMs),
    events_scanned: run.eventsScanned,
    memories_written: run.memoriesWritten,
    error: run.error ?? null,
    job_id: run.jobId ?? null,
    session_id: run.sessionId ?? null,
    agent_run_id: run.agentRunId ?? null,
    worker_id: run.workerId ?? null,
    stats: { ...run.stats },
    progress: run.progress ?? null,
    reverted_at: run.revertedAtMs === undefined ? null : timeText(run.revertedAtMs),
  };
}

function timeText(ms: number): string {
  return usToText(ms * 1_000);
}
