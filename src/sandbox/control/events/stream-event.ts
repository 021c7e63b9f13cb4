import type { LoggedEvent } from "./read-events.ts";

/** An event as clients see it, by the names of the specification. */
export type StreamEvent = {
  /** Of an event of a log its number in it; empty for what is in no log. */
  id: string;
  sandbox_id: string;
  session_id: string | null;
  event_type: string;
  data: Readonly<Record<string, unknown>>;
  timestamp: string;
};

export function loggedStreamEvent({ sandboxId, seq, sessionId, type, data, atMs }: LoggedEvent): StreamEvent {
  return { ...passingStreamEvent(sandboxId, { type, data, atMs }), id: String(seq), session_id: sessionId ?? null };
}

/** One that is in no log: about the stream itself. */
export function passingStreamEvent(
  sandboxId: string,
  { type, data, atMs }: Pick<LoggedEvent, "type" | "data" | "atMs">,
): StreamEvent {
  return {
    id: "",
    sandbox_id: sandboxId,
    session_id: null,
    event_type: type,
    data,
    timestamp: new Date(atMs).toISOString(),
  };
}
