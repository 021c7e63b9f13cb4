import { EngineError } from "../../core/errors.ts";
import type { SandboxState } from "../contract/states.ts";

export function sandboxNotFound(id: string): EngineError {
  return new EngineError("sandbox_not_found", `there is no sandbox ${id}`);
}

export function invalidState(state: SandboxState, why: string): EngineError {
  return new EngineError("sandbox_invalid_state", `the sandbox is ${state}: ${why}`);
}

export function tooBusy(id: string): EngineError {
  return new EngineError("unavailable", `sandbox ${id} is being changed by others: try again`);
}

/** A field of a create request; `field` is its path in the body. */
export function invalidField(field: string, why: string): EngineError {
  return new EngineError("config_validation_error", `${field}: ${why}`);
}
