import type { Clock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import type { HttpResponse } from "../../../io/http/http.ts";
import type { Followed } from "../events/follower.ts";
import type { BegunTurn } from "../sessions/turn-end.ts";
import { answered, BEGINS_AFTER_MS, within } from "./session-answer.ts";
import { streamAnswer } from "./stream.ts";

type Events = AsyncIterator<Followed> & Required<Pick<AsyncIterator<Followed>, "return">>;

/**
 * The answer to a message that was stored just now, as events: what its session does from then on, to the end of the
 * turn. It begins with the first event, or after 20 s. Before that it rejects as `turnAnswer` does, so an agent that
 * fails before it has said anything is a status; one that fails later is an `error` event.
 *
 * @param followed the log of the sandbox, from before the turn on
 */
export async function turnStream(
  { clock }: { clock: Clock },
  turn: BegunTurn & { sandboxId: string },
  { followed, signal }: { followed: Events; signal: AbortSignal },
): Promise<HttpResponse> {
  const events = ofTurn(followed, turn);
  const leave = () => void events.return();
  signal.addEventListener("abort", leave, { once: true });
  try {
    const first = events.next();
    const begun = await within(clock, first, BEGINS_AFTER_MS);
    if (begun !== "late") checkHasBegun(begun, turn);
    return streamAnswer({ clock }, turn.sandboxId, { followed: withFirst(first, events), seq: turn.eventSeq });
  } catch (error) {
    await events.return();
    throw error;
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

/** Throws where the first that comes is that nothing will come. */
function checkHasBegun({ done, value }: IteratorResult<Followed>, turn: BegunTurn): void {
  if (done === true) answered({ type: "gone" }, turn);
  else if (value.type === "reconnect") answered(undefined, turn);
  else if (value.type === "event" && value.event.type === "error") {
    const { code, message } = value.event.data;
    if (code === "agent_communication_error") throw new EngineError(code, String(message));
  }
}

/** The events of the session from the beginning of the turn to its end. */
function ofTurn(followed: Events, { sessionId, eventSeq }: BegunTurn): Events {
  let isOver = false;
  return {
    next: async () => {
      for (;;) {
        if (isOver) {
          await followed.return();
          return { done: true, value: undefined };
        }
        const step = await followed.next();
        if (step.done === true || step.value.type !== "event") return step;
        const { event } = step.value;
        if (event.sessionId !== sessionId || event.seq <= eventSeq) continue;
        isOver = event.type === "session_completed" || event.type === "session_failed";
        return step;
      }
    },
    return: async () => {
      isOver = true;
      await followed.return();
      return { done: true, value: undefined };
    },
  };
}

function withFirst(first: Promise<IteratorResult<Followed>>, rest: Events): Events {
  let waiting: typeof first | undefined = first;
  return {
    next: async () => {
      const next = waiting ?? rest.next();
      waiting = undefined;
      return await next;
    },
    return: () => rest.return(),
  };
}
