import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import type { Caller } from "../../../auth/caller.ts";
import type { Sandbox } from "../scheduler/sandbox.ts";
import type { Session } from "../turns/session.ts";
import { sessionNotFound } from "../sessions/refusals.ts";
import { originOf } from "../../../server/origin.ts";
import { preferredType } from "../../../server/negotiate.ts";
import { defineRoute } from "../../../server/route.ts";
import { eventStreamResponse } from "../../../server/server-sent-events.ts";
import type { SandboxDeps } from "./deps.ts";
import { inState } from "./node-call.ts";
import { turnAnswer } from "./session-answer.ts";
import { messageItem, sessionPath } from "./session-bodies.ts";
import { turnStream } from "./session-turn-stream.ts";
import { sessionJsonErrors } from "./sessions.ts";
import { nameSchemas } from "../../../server/schema-names.ts";

/** What is said to agents. */

const JSON_TYPE = "application/json";
const EVENTS_TYPE = "text/event-stream";
const MOST_REQUEST_BYTES = 16 * 1024 * 1024;
const MOST_BLOCKS = 100;
const MOST_TEXT_CHARS = 1024 * 1024;
const MOST_IMAGE_CHARS = 8 * 1024 * 1024;

const userBlock = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text"), text: z.string().min(1).max(MOST_TEXT_CHARS) }),
  z.strictObject({
    type: z.literal("image"),
    media_type: z.string().regex(/^image\/[a-z0-9][a-z0-9.+-]{0,99}$/, "is no media type of an image"),
    data: z.base64().min(1).max(MOST_IMAGE_CHARS),
  }),
]);

const newMessage = z.strictObject({
  role: z.literal("user"),
  content: z.array(userBlock).min(1).max(MOST_BLOCKS),
});

const lateError = z.object({ error: z.looseObject({ code: z.string(), message: z.string() }) });

nameSchemas({ NewMessage: newMessage, LateError: lateError });

export const sendMessageRoute = defineRoute({
  tag: "Sessions",
  role: "write",
  method: "POST",
  path: "/api/v1/sessions/{sid}/messages",
  summary: "Say something to the agent of a sandbox, and wait for its answer",
  description:
    "However long that takes; the session's stream tells what the agent does meanwhile. After 20 s the answer is begun: " +
    "status 200, white space now and then, and at last the message, or the body of an error, whose status can no longer " +
    "be told. With `Accept: text/event-stream` the answer is what the session's stream has of this message, to " +
    "`session_completed` or `session_failed`; it begins with the first event, or after 20 s. An agent that fails before has " +
    "its status; one that fails later is told by an `error` event. Of one message after the other: while one is being answered, others are refused. The agent goes on when " +
    "its client leaves, or the server stops: the session has the answer. A sandbox that is being made is waited for; " +
    "any other must be running.",
  params: sessionPath,
  json: newMessage,
  jsonLimitBytes: MOST_REQUEST_BYTES,
  jsonErrors: sessionJsonErrors,
  responses: [
    {
      status: 200,
      description: "What the agent said; of a message that was interrupted, what it had said by then.",
      type: "application/json",
      schema: z.union([messageItem, lateError]),
    },
    eventStreamResponse("Events of the answer, with `Accept: text/event-stream`."),
  ],
  errors: [
    "agent_communication_error",
    "session_not_found",
    "session_invalid_state",
    "sandbox_invalid_state",
    "insufficient_storage",
    "unavailable",
  ],
  handler: (deps: SandboxDeps) => async (call) => {
    const { caller, params, json, request, requestId } = call;
    const { signal } = request;
    const { sessions } = deps.sandboxes;
    const session = await sessions.get(params.sid, caller);
    const type = preferredType([JSON_TYPE, EVENTS_TYPE], request.header("accept"));
    // Before the turn: what it does at once is in it, and too many followers refuse the message, not its answer.
    const followed = type === EVENTS_TYPE ? await deps.events.follow(session.sandboxId, "now") : undefined;
    const begin = () => sessions.begin(session, json.content, { asker: caller, origin: originOf(call) });
    const begunOnceUp = async () => {
      try {
        return await begin();
      } catch (error) {
        if (!(error instanceof EngineError) || error.code !== "sandbox_invalid_state") throw error;
        const sandbox = await sandboxOf(deps, session, caller);
        await inState(deps, sandbox, { allowed: ["running"], asker: caller, signal });
        return await begin();
      }
    };
    try {
      const turn = await begunOnceUp();
      if (followed === undefined) return await turnAnswer(deps, turn, { signal, requestId });
      return await turnStream(deps, { ...turn, sandboxId: session.sandboxId }, { followed, signal });
    } catch (error) {
      await followed?.return();
      throw error;
    }
  },
});

async function sandboxOf({ sandboxes }: SandboxDeps, { id, sandboxId }: Session, caller: Caller): Promise<Sandbox> {
  try {
    return await sandboxes.get(sandboxId, caller);
  } catch (error) {
    // It was deleted at this moment, and the session with it.
    throw error instanceof EngineError && error.code === "sandbox_not_found" ? sessionNotFound(id) : error;
  }
}
