import { EngineError, messageOf, publicText, type ErrorCode } from "../core/errors.ts";
import type { Failure } from "./fail.ts";
import { JobFailure } from "./handler.ts";

/** The fabric does not take this node, whatever it asks for: its token was revoked, or is not for this. */
export class NodeRefused extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "NodeRefused";
  }
}

const PASSING: ReadonlySet<ErrorCode> = new Set(["too_many_requests", "rate_limited", "request_timeout"]);

/** Whether the same call may succeed a little later: the fault is not in what was asked for. */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof EngineError)) return !(error instanceof NodeRefused);
  return error.status >= 500 || PASSING.has(error.code);
}

/** How a handler's error fails its job: see `JobHandler`. Whoever may see the job is told of it. */
export function failureOf(error: unknown): Failure {
  if (error instanceof JobFailure) return { ...error.failure, error: publicText(error.failure.error) };
  const failure: Failure = { error: publicText(messageOf(error)), retryable: isPassing(error) };
  const retryAfterSecs = error instanceof EngineError ? Number(error.details.headers?.["Retry-After"]) : Number.NaN;
  return Number.isFinite(retryAfterSecs) ? { ...failure, retryAfterMs: retryAfterSecs * 1_000 } : failure;
}

/** Throws `bad_request_body` for a value that JSON has no room for. */
export function checkJson(value: unknown, what: string): void {
  try {
    JSON.stringify(value);
  } catch (error) {
    throw new EngineError("bad_request_body", `${what} is no JSON value: ${messageOf(error)}`, { cause: error });
  }
}
