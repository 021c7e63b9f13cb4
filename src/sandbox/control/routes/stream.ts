import { z } from "zod";
import type { HttpResponse } from "../../../io/http/http.ts";
import type { FollowFrom } from "../events/log.ts";
import type { Followed } from "../events/follower.ts";
import { loggedStreamEvent, passingStreamEvent, type StreamEvent } from "../events/stream-event.ts";
import { defineRoute } from "../../../server/route.ts";
import { eventStream, eventStreamResponse, type ServerSentEvent } from "../../../server/server-sent-events.ts";
import type { SandboxDeps } from "./deps.ts";

/** What happens in a sandbox, as it happens. */

export const eventNumber = z
  .string()
  .regex(/^\d{1,15}$/, "is the number of an event")
  .transform(Number);

export const lastEventIdHeader = z.object({
  "last-event-id": eventNumber.optional().describe("The `id` of the last event that came."),
});

export const streamQuery = z.object({
  from: z.enum(["now", "start"]).optional().describe("Where to begin without `Last-Event-ID`; `now` unless given."),
  last_event_id: eventNumber.optional().describe("As `Last-Event-ID`, for clients that cannot send it."),
});

export const sandboxStreamRoute = defineRoute({
  role: "read",
  tag: "Sandboxes",
  method: "GET",
  path: "/api/v1/sandboxes/{id}/stream",
  summary: "What happens in a sandbox, as server-sent events",
  description:
    "Each message is a stream event: `{id, sandbox_id, session_id, event_type, data, timestamp}`. First comes " +
    "`connected`, then what happens from then on; with `from=start` what is kept of the past before it. A client that " +
    "lost the connection sends the last `id` in `Last-Event-ID`, as browsers do by themselves, and goes on after it: " +
    "nothing is lost and nothing comes twice. Where events before or between were already deleted, an `error` with the " +
    "code `events_lost` says how many this client missed (`dropped_events`), and how many bytes the log has dropped since " +
    "the sandbox was made (`log_dropped_bytes`); the next event follows. `connected`, `keepalive` (every 15 s), `reconnect` and such errors are in no log: they have " +
    "no `id`, and an empty one in the event. After `reconnect` the stream ends, and the client comes again in " +
    "`after_ms`: this server is about to stop, the client took its events too slowly, or an hour has passed. Without it " +
    "the stream ends when the sandbox is deleted.",
  params: z.object({ id: z.string() }),
  query: streamQuery,
  headers: lastEventIdHeader,
  responses: [eventStreamResponse("Events, until the sandbox is deleted.")],
  errors: ["sandbox_not_found", "rate_limited"],
  handler:
    (deps: SandboxDeps) =>
    async ({ caller, params: { id }, query, headers }) => {
      await deps.sandboxes.get(id, caller);
      const followed = await deps.events.follow(id, placeIn(query, headers));
      return streamAnswer(deps, id, { followed, seq: followed.seq });
    },
});

/** Where a client goes on, or begins. */
export function placeIn(query: z.output<typeof streamQuery>, headers: z.output<typeof lastEventIdHeader>): FollowFrom {
  const lastId = headers["last-event-id"] ?? query.last_event_id;
  return lastId === undefined ? (query.from ?? "now") : { afterSeq: lastId };
}

/** What is followed of a sandbox, as server-sent events. */
export function streamAnswer(
  { clock }: Pick<SandboxDeps, "clock">,
  sandboxId: string,
  { followed, seq }: { followed: AsyncIterator<Followed>; /** Where it begins. */ seq: number },
): HttpResponse {
  const passing = (type: string, data: StreamEvent["data"] = {}) => ({
    data: passingStreamEvent(sandboxId, { type, data, atMs: clock.nowMs() }),
  });
  return eventStream({
    events: withConnected(passing("connected"), followed, (item) => messageOf(item, passing)),
    clock,
    heartbeat: () => passing("keepalive"),
    beginsAfter: String(seq),
  });
}

type Passing = (type: string, data: StreamEvent["data"]) => ServerSentEvent;

export function messageOf(item: Followed, passing: Passing): ServerSentEvent {
  if (item.type === "event") return { id: String(item.event.seq), data: loggedStreamEvent(item.event) };
  if (item.type === "reconnect") return passing("reconnect", { after_ms: item.afterMs });
  const { nextSeq, events, cutBytes } = item;
  const message = `${events} events before ${nextSeq} that were not read yet are deleted`;
  return passing("error", {
    code: "events_lost",
    message,
    dropped_events: events,
    log_dropped_bytes: cutBytes,
  });
}

/** The same iterator with each value changed, after a first one. */
export function withConnected<T>(
  connected: ServerSentEvent,
  events: AsyncIterator<T>,
  toEvent: (value: T) => ServerSentEvent,
): AsyncIterator<ServerSentEvent> {
  let isTold = false;
  return {
    next: async () => {
      if (!isTold) {
        isTold = true;
        return { done: false, value: connected };
      }
      const step = await events.next();
      return step.done === true ? { done: true, value: undefined } : { done: false, value: toEvent(step.value) };
    },
    return: async () => {
      await events.return?.();
      return { done: true, value: undefined };
    },
  };
}
