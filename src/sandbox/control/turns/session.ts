import type { RecordRow } from "../../../catalog/records.ts";
import { jsonOf, optionalText, textOf } from "../../../fabric/job.ts";
import { SESSION_STATES, type SessionState } from "../../contract/session-states.ts";

/** A conversation with the agent of a sandbox. Times are the database's, in ms since 1970. */
export type Session = {
  id: string;
  sandboxId: string;
  state: SessionState;
  metadata: Readonly<Record<string, unknown>>;
  /** The turn that is under way. */
  turnId: string | undefined;
  /** Number of the newest event of the sandbox when that began. */
  turnEventSeq: number;
  isInterrupted: boolean;
  /** The session by the agent's own name. */
  agentSessionId: string | undefined;
  /** Number of the newest message: of the turn's user message, while one is under way. */
  lastMessage: number;
  createdAtMs: number;
  updatedAtMs: number;
};

const NAMES = [
  "id",
  "sandbox_id",
  "state",
  "metadata",
  "turn_id",
  "turn_event_seq",
  "is_interrupted",
  "agent_session_id",
  "last_message",
  "created_at_ms",
  "updated_at_ms",
];

/** Of the table `sandbox_sessions`, also where others are joined to it. */
export const SESSION_COLUMNS = NAMES.map((name) => `sandbox_sessions.${name}`).join(", ");

export function toSession(row: RecordRow): Session {
  return {
    id: textOf(row, "id"),
    sandboxId: textOf(row, "sandbox_id"),
    state: stateOf(row),
    metadata: jsonOf(row, "metadata") as Record<string, unknown>,
    turnId: optionalText(row, "turn_id"),
    turnEventSeq: Number(row["turn_event_seq"]),
    isInterrupted: Number(row["is_interrupted"]) === 1,
    agentSessionId: optionalText(row, "agent_session_id"),
    lastMessage: Number(row["last_message"]),
    createdAtMs: Number(row["created_at_ms"]),
    updatedAtMs: Number(row["updated_at_ms"]),
  };
}

function stateOf(row: RecordRow): SessionState {
  const state = SESSION_STATES.find((one) => one === row["state"]);
  if (state === undefined) throw new Error(`the state of a stored session is ${String(row["state"])}`);
  return state;
}
