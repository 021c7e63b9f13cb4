import { EngineError } from "../../../core/errors.ts";
import type { SessionState } from "../../contract/session-states.ts";

export function sessionNotFound(id: string): EngineError {
  return new EngineError("session_not_found", `there is no session ${id}`);
}

export function invalidSessionState(state: SessionState, why: string): EngineError {
  return new EngineError("session_invalid_state", `the session is ${state}: ${why}`);
}
