import { EngineError, type ErrorCode } from "../core/errors.ts";
import { ClientGoneError } from "../io/http/http.ts";
import type { HttpResponse } from "../io/http/http.ts";
import { jsonResponse } from "./route.ts";

/**
 * What a client is told of a failure. Anything that is not an `EngineError` is an `internal` without its message, and one
 * whose message names a place in the file system keeps its code only.
 */
export function asEngineError(error: unknown, requestId: string): EngineError {
  if (error instanceof EngineError) return error.withheld === undefined ? error : unexpected(error, requestId);
  // Nobody will read the answer; the code keeps the metrics honest, and the log free of other people's hang-ups.
  if (error instanceof ClientGoneError) return new EngineError("bad_request", "the client left", { cause: error });
  return new EngineError("internal", unexpectedText(requestId), { cause: error });
}

/** The failure with the code that the API of the path has for it. */
export function codedFor(path: string, error: EngineError): EngineError {
  const code = codeFor(path, error.code);
  return code === error.code ? error : new EngineError(code, error.message, error.details);
}

/**
 * What a code is called below that path: the specification of the sandbox service has one for everything that is too
 * much or comes too often, wrong tokens included.
 */
export function codeFor(path: string, code: ErrorCode): ErrorCode {
  return code === "too_many_requests" && path.startsWith(SANDBOX_SERVICE) ? "rate_limited" : code;
}

const SANDBOX_SERVICE = "/api/v1/";

/** The same failure, without saying more of it than where to look. */
function unexpected({ code, details }: EngineError, requestId: string): EngineError {
  return new EngineError(code, unexpectedText(requestId), details);
}

function unexpectedText(requestId: string): string {
  return `unexpected failure; the log has it under request ${requestId}`;
}

/** The one error shape: `{error: {code, message, request_id}}`, with `line`, `column`, `suggestion`, `hint`, `budget` where known. */
export function errorResponse(error: EngineError, requestId: string): HttpResponse {
  const { line, column, suggestion, hint, budget, headers } = error.details;
  const body = {
    error: { code: error.code, message: error.message, request_id: requestId, line, column, suggestion, hint, budget },
  };
  return jsonResponse(error.status, body, { ...headers });
}
