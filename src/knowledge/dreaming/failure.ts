import { EngineError } from "../../core/errors.ts";
import { JobFailure } from "../../fabric/handler.ts";
import { isPassing } from "../../fabric/runner-failure.ts";
import type { RunErrorCode } from "../agent/run/events.ts";
import { RunStopped } from "../agent/run/run-end.ts";
import type { RunError } from "./runs.ts";

/** Why an engine gave no answer: as `RunStopped` says it, in values that can be stored and sent. */
export type EngineFailure = {
  code: RunErrorCode;
  message: string;
  retryable: boolean;
  retryAfterMs?: number | undefined;
  isOfContent: boolean;
};

export function engineFailureOf({ code, message, retryable, retryAfterMs, isOfContent }: RunStopped): EngineFailure {
  return { code, message, retryable, retryAfterMs, isOfContent };
}

export function toRunStopped({ code, message, ...rest }: EngineFailure): RunStopped {
  return new RunStopped(code, message, rest);
}

/** Why a dream failed. `isKnown`: its words are for those who asked. */
export type DreamFailure = RunError & { retryable: boolean; retryAfterMs?: number | undefined; isKnown: boolean };

export function dreamFailureOf(error: unknown): DreamFailure {
  if (error instanceof RunStopped) {
    const { code, message, retryable, retryAfterMs } = error;
    return { code, message, retryable, retryAfterMs, isKnown: true };
  }
  if (error instanceof EngineError && error.code !== "internal") {
    const { code, message } = error;
    return { code, message, retryable: code !== "not_configured" && isPassing(error), isKnown: true };
  }
  const message = "unexpected failure; the log of the server says more";
  return { code: "internal", message, retryable: true, isKnown: false };
}

export function toJobFailure({ code, message, retryable, retryAfterMs }: DreamFailure): JobFailure {
  return new JobFailure({ error: `${code}: ${message}`, retryable, retryAfterMs });
}
