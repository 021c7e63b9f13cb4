import { z } from "zod";

import { jobNotFound } from "../refusals.ts";
import type { JobEvent, WatchedJob } from "../job-events.ts";
import { defineRoute } from "../../server/route.ts";
import { eventStream, eventStreamResponse, mapEvents, type ServerSentEvent } from "../../server/server-sent-events.ts";
import type { FabricDeps } from "./deps.ts";
import { timeOf, timeOrNull } from "../../server/schemas.ts";

/** What happens to a job, as it happens. */

const lineNumber = z
  .string()
  .regex(/^\d{1,15}$/, "is the number of a line")
  .transform(Number);

export const jobEventsRoute = defineRoute({
  role: "write",
  tag: "Jobs",
  method: "GET",
  path: "/v1/jobs/{id}/events",
  summary: "What happens to a job, as server-sent events",
  description:
    "`state` with what `GET /v1/jobs/{id}` shows of the job's course, without its result, at once and whenever it changed; `log` with " +
    "`{at, level, message}`, its `id` the number of the line; `end` with `{status}` when the job is finished. Then the " +
    "stream ends, and a client should not come again. One that lost the connection sends the last number in " +
    "`Last-Event-ID`, as browsers do by themselves, and goes on after it. A stream lasts at most an hour.",
  params: z.object({ id: z.string() }),
  query: z.object({ after: lineNumber.optional().describe("As `Last-Event-ID`, for clients that cannot send it.") }),
  headers: z.object({ "last-event-id": lineNumber.optional().describe("The number of the last line that came.") }),
  responses: [eventStreamResponse("Events, until the job is finished.")],
  errors: ["not_found", "too_many_requests"],
  handler:
    ({ fabric, jobEvents, clock }: FabricDeps) =>
    async ({ caller, params: { id }, query, headers }) => {
      if ((await fabric.find(id, caller)) === undefined) throw jobNotFound(id);
      const events = jobEvents.watch(id, headers["last-event-id"] ?? query.after ?? 0);
      return eventStream({ events: mapEvents(events, eventOf), clock });
    },
});

function eventOf(event: JobEvent): ServerSentEvent {
  if (event.type === "state") return { event: "state", data: stateOf(event.job) };
  if (event.type === "end") return { event: "end", data: { status: event.status ?? null } };
  const { seq, atMs, level, message } = event.line;
  return { event: "log", id: String(seq), data: { at: timeOf(atMs), level, message } };
}

function stateOf(job: WatchedJob): Record<string, unknown> {
  return {
    status: job.status,
    attempt: job.attempt,
    max_attempts: job.maxAttempts,
    holder: job.holder ?? null,
    cancel_requested: job.cancelRequested,
    progress: job.progress ?? null,
    error: job.error ?? null,
    run_after: timeOf(job.runAfterMs),
    created_at: timeOf(job.createdAtMs),
    started_at: timeOrNull(job.startedAtMs),
    finished_at: timeOrNull(job.finishedAtMs),
  };
}
