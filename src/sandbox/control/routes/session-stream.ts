import type { Followed } from "../events/follower.ts";
import { defineRoute } from "../../../server/route.ts";
import { eventStreamResponse } from "../../../server/server-sent-events.ts";
import type { SandboxDeps } from "./deps.ts";
import { sessionPath } from "./session-bodies.ts";
import { lastEventIdHeader, placeIn, streamAnswer, streamQuery } from "./stream.ts";

export const sessionStreamRoute = defineRoute({
  role: "read",
  tag: "Sessions",
  method: "GET",
  path: "/api/v1/sessions/{sid}/stream",
  summary: "What happens in a session, as server-sent events",
  description:
    "The stream of its sandbox without the events of other sessions: `text_delta`, `text_complete`, `tool_use_start`, " +
    "`tool_use_complete`, `tool_result`, `session_completed` and `session_failed` of this one, and what concerns the " +
    "sandbox as a whole. Numbers are those of the sandbox's stream, and a client goes on after one as there. Whoever " +
    "wants all of a message opens the stream before sending it.",
  params: sessionPath,
  query: streamQuery,
  headers: lastEventIdHeader,
  responses: [eventStreamResponse("Events, until the sandbox is deleted.")],
  errors: ["session_not_found", "rate_limited"],
  handler:
    (deps: SandboxDeps) =>
    async ({ caller, params, query, headers }) => {
      const { id, sandboxId } = await deps.sandboxes.sessions.get(params.sid, caller);
      const followed = await deps.events.follow(sandboxId, placeIn(query, headers));
      return streamAnswer(deps, sandboxId, { followed: ofSession(followed, id), seq: followed.seq });
    },
});

/** Without the events of other sessions. */
function ofSession(followed: AsyncIterableIterator<Followed>, sessionId: string): AsyncIterator<Followed> {
  return {
    next: async () => {
      for (;;) {
        const step = await followed.next();
        if (step.done === true || isOf(step.value, sessionId)) return step;
      }
    },
    return: async () => {
      await followed.return?.();
      return { done: true, value: undefined };
    },
  };
}

function isOf(item: Followed, sessionId: string): boolean {
  if (item.type !== "event") return true;
  const { sessionId: of } = item.event;
  return of === undefined || of === sessionId;
}
