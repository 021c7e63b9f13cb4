import type { Clock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import type { HttpResponse } from "../../../io/http/http.ts";
import type { SandboxEvents } from "../events/log.ts";
import type { SessionMessage } from "../turns/messages.ts";
import type { Sessions } from "../sessions/sessions.ts";
import type { BegunTurn, EndedTurn } from "../sessions/turn-end.ts";
import { errorResponse } from "../../../server/error-response.ts";
import { jsonResponse } from "../../../server/route.ts";
import { messageItemOf } from "./session-bodies.ts";

type AnswerDeps = {
  sandboxes: { sessions: Pick<Sessions, "ended"> };
  /** Aborted when this server is about to stop. */
  events: Pick<SandboxEvents, "closing">;
  clock: Clock;
};

/** Proxies give up on an answer that is not begun, many of them after half a minute. */
export const BEGINS_AFTER_MS = 20_000;
const KEEP_ALIVE_MS = 15_000;
/** JSON may have it before its first character. */
const SPACE = Buffer.from(" ");

/**
 * The answer to a message that was stored just now, once its turn has ended. Rejects with `agent_communication_error`
 * when the agent failed, and `unavailable` when the server stops. A turn that takes long is answered with a body that
 * begins before: what would be the body of an error is at its end, then.
 */
export async function turnAnswer(
  { sandboxes, events, clock }: AnswerDeps,
  turn: BegunTurn,
  { signal, requestId }: { signal: AbortSignal; requestId: string },
): Promise<HttpResponse> {
  const ending = sandboxes.sessions.ended(turn, { signal: AbortSignal.any([signal, events.closing]), isNew: true });
  const ended = await within(clock, ending, BEGINS_AFTER_MS);
  if (ended !== "late") return answerOf(answered(ended, turn));
  const { headers } = jsonResponse(200, null);
  return { status: 200, headers, body: lateBody(clock, ending, { turn, requestId }) };
}

/** It ends when the client leaves, for the turn is not waited for then. */
async function* lateBody(
  clock: Clock,
  ending: Promise<EndedTurn | undefined>,
  { turn, requestId }: { turn: BegunTurn; requestId: string },
): AsyncGenerator<Uint8Array> {
  for (;;) {
    yield SPACE;
    const ended = await within(clock, ending, KEEP_ALIVE_MS);
    if (ended === "late") continue;
    const { body } = lateAnswer(ended, turn, requestId);
    if (typeof body === "string") yield Buffer.from(body);
    return;
  }
}

function lateAnswer(ended: EndedTurn | undefined, turn: BegunTurn, requestId: string): HttpResponse {
  try {
    return answerOf(answered(ended, turn));
  } catch (error) {
    if (error instanceof EngineError) return errorResponse(error, requestId);
    throw error;
  }
}

function answerOf(message: SessionMessage): HttpResponse {
  return jsonResponse(200, messageItemOf(message));
}

/** What the agent said. Throws where it failed, or nobody knows yet. */
export function answered(ended: EndedTurn | undefined, { sessionId }: BegunTurn): SessionMessage {
  if (ended === undefined) {
    throw new EngineError(
      "unavailable",
      `the server stops; the agent goes on, and session ${sessionId} has its answer`,
    );
  }
  if (ended.type === "gone") throw new EngineError("agent_communication_error", "the sandbox was deleted");
  const { message } = ended;
  if (message.error !== undefined) throw new EngineError("agent_communication_error", message.error);
  return message;
}

/** Late when it takes longer. */
export async function within<T>(clock: Clock, promise: Promise<T>, timeoutMs: number): Promise<T | "late"> {
  const late = Promise.withResolvers<"late">();
  const timer = clock.after(timeoutMs, () => late.resolve("late"), { background: true });
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    timer.cancel();
  }
}
