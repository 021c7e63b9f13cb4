import { EngineError } from "../../../core/errors.ts";
import type { EngineProblem } from "../engines/engine.ts";
import type { RunErrorCode, RunStatus, Usage } from "./events.ts";

/** Why a run ends before its answer is whole. */
export class RunStopped extends Error {
  readonly code: RunErrorCode;
  readonly retryable: boolean;
  /** How long a provider asks to be left alone, where it does. */
  readonly retryAfterMs: number | undefined;
  /** Whether it is about what was asked, and not about the provider or the way to it. */
  readonly isOfContent: boolean;
  /** The tokens that the question took all the same, where the provider says so. */
  usage: Usage | undefined;

  constructor(
    code: RunErrorCode,
    message: string,
    { retryable = false, retryAfterMs, isOfContent }: Partial<Omit<EngineProblem, "code" | "message">> = {},
  ) {
    super(message);
    this.name = "RunStopped";
    this.code = code;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
    this.isOfContent = isOfContent ?? code === "context_too_large";
  }

  static of({ code, message, ...rest }: EngineProblem): RunStopped {
    return new RunStopped(code, message, rest);
  }
}

export type RunFailure = {
  code: RunErrorCode;
  message: string;
  retryable: boolean;
  /** Nobody need look into the log for it. */
  isExpected: boolean;
};

/** What a client is told of what ended a run. */
export function failureOf(error: unknown): RunFailure {
  if (error instanceof RunStopped) {
    const { code, message, retryable } = error;
    return { code, message, retryable, isExpected: true };
  }
  if (error instanceof EngineError && error.code === "not_configured") {
    return { code: "not_configured", message: error.message, retryable: false, isExpected: true };
  }
  const retryable = error instanceof EngineError && error.status === 503;
  return {
    code: "internal",
    message: "unexpected failure; the log of the server says more",
    retryable,
    isExpected: false,
  };
}

export function statusOf({ code }: Pick<RunFailure, "code">): Exclude<RunStatus, "running" | "done"> {
  return code === "cancelled" ? "cancelled" : "failed";
}
