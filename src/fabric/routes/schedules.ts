import { z } from "zod";

import { ownerOf } from "../../auth/owner.ts";
import { checkName } from "../../core/names.ts";
import type { Timing } from "../cron.ts";
import { FABRIC_LIMITS } from "../limits.ts";
import { CATCH_UPS, type Schedule } from "../schedule.ts";
import { defineRoute, jsonResponse, type RouteResponse } from "../../server/route.ts";
import type { FabricDeps } from "./deps.ts";
import { anyJson, shortText, timeOf, timeOrNull } from "../../server/schemas.ts";
import { deleted, deletedResponse } from "../../server/schemas.ts";
import { nameSchemas } from "../../server/schema-names.ts";

/** What enqueues jobs again and again. */

const DEFAULT_LISTED = 100;
const MAX_LISTED = 500;
const MAX_NAME_CHARS = 200;
const { everyMs, jitterMs, catchUpJobs } = FABRIC_LIMITS;

const timing = z
  .union([
    z.strictObject({ cron: z.string().max(MAX_NAME_CHARS), time_zone: z.string().max(MAX_NAME_CHARS).default("UTC") }),
    z.strictObject({ every_ms: z.int().min(everyMs.min).max(everyMs.max) }),
  ])
  .describe(
    "A cron expression (five fields, or six with seconds in front) in an IANA time zone, or every so many ms since " +
      "1970 in UTC: every hour is on the hour.",
  );

const changeable = {
  payload: anyJson.optional().describe("Of each job; null when absent."),
  catch_up: z
    .enum(CATCH_UPS)
    .describe(
      "What becomes of ticks at which no node ran: left out (`skip`), one job for all of them (`once`), or one for " +
        `each, the newest ${catchUpJobs} (\`all\`).`,
    ),
  jitter_ms: z.int().min(0).max(jitterMs).describe("A tick is later by up to so much, and before the next one."),
  enabled: z.boolean(),
};

const schedule = z.object({
  id: z.string(),
  name: z.string(),
  kind: z.string(),
  payload: z.unknown(),
  database: z.string().nullable(),
  timing,
  catch_up: changeable.catch_up,
  jitter_ms: z.int(),
  enabled: z.boolean(),
  next_at: z.string().nullable().describe("When the next job is due."),
  last_at: z.string().nullable().describe("The newest tick that is over."),
  last_job_id: z.string().nullable(),
  created_by: z.string().describe("Who of its owner made it, or changed it last: its jobs run with those rights."),
  owned_by: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
});

nameSchemas({ Schedule: schedule });

const common = { role: "write", tag: "Schedules" } as const;
const idPath = z.object({ id: z.string() });
const oneSchedule: RouteResponse = {
  status: 200,
  description: "The schedule.",
  type: "application/json",
  schema: schedule,
};

export const createScheduleRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/schedules",
  summary: "Enqueue a job again and again",
  description: "Each tick makes one job, however many nodes there are, with no more than the caller's rights.",
  json: z.strictObject({
    ...changeable,
    name: shortText(MAX_NAME_CHARS),
    kind: z.string().min(1).max(MAX_NAME_CHARS),
    database: z.string().optional().describe("What its jobs are about: decides who sees the schedule and them."),
    timing,
    catch_up: changeable.catch_up.default("once"),
    jitter_ms: changeable.jitter_ms.default(0),
    enabled: z.boolean().default(true),
  }),
  responses: [oneSchedule],
  errors: ["invalid_parameter", "invalid_name", "conflict", "insufficient_storage"],
  handler:
    ({ schedules }: FabricDeps) =>
    async ({ caller, json }) => {
      const { name, kind, database, enabled, payload = null } = json;
      if (database !== undefined) checkName("database", database);
      const more = { timing: timingOf(json.timing), catchUp: json.catch_up, jitterMs: json.jitter_ms, enabled };
      return jsonResponse(200, bodyOf(await schedules.create({ name, kind, payload, database, ...more }, caller)));
    },
});

export const listSchedulesRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/schedules",
  summary: "The caller's schedules; to an admin all",
  query: z.object({
    limit: z
      .string()
      .regex(/^[0-9]{1,4}$/, `accepted are integers from 1 to ${MAX_LISTED}`)
      .transform(Number)
      .refine((count) => count >= 1 && count <= MAX_LISTED, `accepted are integers from 1 to ${MAX_LISTED}`)
      .default(DEFAULT_LISTED),
    after: shortText(MAX_NAME_CHARS)
      .optional()
      .describe("Only those behind the one of this id, or this name: the last of the page before."),
  }),
  responses: [
    {
      status: 200,
      description: "By name.",
      type: "application/json",
      schema: z.object({ schedules: z.array(schedule) }),
    },
  ],
  errors: ["invalid_parameter"],
  handler:
    ({ schedules }: FabricDeps) =>
    async ({ caller, query }) =>
      jsonResponse(200, { schedules: (await schedules.list(caller, query)).map(bodyOf) }),
});

export const getScheduleRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/schedules/{id}",
  summary: "One schedule",
  params: idPath,
  responses: [oneSchedule],
  errors: ["not_found"],
  handler:
    ({ schedules }: FabricDeps) =>
    async ({ caller, params }) =>
      jsonResponse(200, bodyOf(await schedules.get(params.id, caller))),
});

export const changeScheduleRoute = defineRoute({
  ...common,
  method: "PATCH",
  path: "/v1/schedules/{id}",
  summary: "Change a schedule",
  description:
    "Its ticks count from then on, and its jobs run with no more than the rights of its owner, as they are now.",
  params: idPath,
  json: z.strictObject({ ...changeable, timing }).partial(),
  responses: [oneSchedule],
  errors: ["not_found", "insufficient_storage"],
  handler:
    ({ schedules }: FabricDeps) =>
    async ({ caller, params, json }) => {
      const { payload, catch_up: catchUp, jitter_ms: jitter, enabled } = json;
      const change = {
        ...(json.timing === undefined ? {} : { timing: timingOf(json.timing) }),
        ...(catchUp === undefined ? {} : { catchUp }),
        ...(jitter === undefined ? {} : { jitterMs: jitter }),
        ...(enabled === undefined ? {} : { enabled }),
        ...(payload === undefined ? {} : { payload }),
      };
      return jsonResponse(200, bodyOf(await schedules.change(params.id, change, caller)));
    },
});

export const deleteScheduleRoute = defineRoute({
  ...common,
  method: "DELETE",
  path: "/v1/schedules/{id}",
  summary: "Delete a schedule; jobs that it made stay",
  params: idPath,
  responses: [deletedResponse],
  errors: ["not_found", "insufficient_storage"],
  handler:
    ({ schedules }: FabricDeps) =>
    async ({ caller, params }) => {
      await schedules.remove(params.id, caller);
      return deleted();
    },
});

export const runScheduleRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/schedules/{id}/run",
  summary: "Enqueue the job of a schedule at once",
  description: "With no more than the rights of its owner. Its ticks stay as they are.",
  params: idPath,
  responses: [
    { status: 202, description: "Enqueued.", type: "application/json", schema: z.object({ job_id: z.string() }) },
  ],
  errors: ["not_found", "bad_request_body", "insufficient_storage"],
  handler:
    ({ schedules }: FabricDeps) =>
    async ({ caller, params }) =>
      jsonResponse(202, { job_id: (await schedules.run(params.id, caller)).id }),
});

type TimingBody = z.output<typeof timing>;

function timingOf(body: TimingBody): Timing {
  return "cron" in body ? { cron: body.cron, timeZone: body.time_zone } : { everyMs: body.every_ms };
}

function bodyOfTiming(found: Timing): TimingBody {
  return "cron" in found ? { cron: found.cron, time_zone: found.timeZone } : { every_ms: found.everyMs };
}

function bodyOf(found: Schedule): z.output<typeof schedule> {
  return {
    id: found.id,
    name: found.name,
    kind: found.kind,
    payload: found.payload,
    database: found.database ?? null,
    timing: bodyOfTiming(found.timing),
    catch_up: found.catchUp,
    jitter_ms: found.jitterMs,
    enabled: found.enabled,
    next_at: timeOrNull(found.nextAtMs),
    last_at: timeOrNull(found.lastAtMs),
    last_job_id: found.lastJobId ?? null,
    created_by: found.owner.subject,
    owned_by: ownerOf(found.owner),
    created_at: timeOf(found.createdAtMs),
    updated_at: timeOf(found.updatedAtMs),
  };
}
