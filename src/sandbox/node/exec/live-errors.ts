import { EngineError, type ErrorCode } from "../../../core/errors.ts";
import { RuntimeError } from "../../runtime/runtime.ts";

const CODES: Readonly<Record<RuntimeError["code"], ErrorCode>> = {
  not_runnable: "config_validation_error",
  not_running: "sandbox_invalid_state",
  refused: "unavailable",
  no_space: "insufficient_storage",
  unable: "not_configured",
  unknown_image: "config_validation_error",
  failed: "internal",
};

/** What a client is told of a runtime that could not do something. */
export function liveError(error: unknown): unknown {
  if (!(error instanceof RuntimeError)) return error;
  const field = error.code === "not_runnable" ? "command: " : "";
  return new EngineError(CODES[error.code], `${field}${error.message}`, { cause: error });
}
