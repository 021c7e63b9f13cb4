import { namesPrivatePath } from "./private-paths.ts";

/**
 * Errors in three tiers.
 *
 * 1. Inside a module an error is precise (a class or a tagged union of that module).
 * 2. An operation that can fail in ways its caller handles returns a union of outcomes.
 * 3. What a client sees is an `EngineError`: one of the stable codes of `ERROR_CODES`, with its HTTP status.
 *
 * Messages may change from release to release; codes and statuses may not.
 */

/** Every public error code with its HTTP status and the sentence that the reference prints for it. */
export const ERROR_CODES = {
  parse_error: { status: 400, doc: "The query text is empty or does not parse." },
  invalid_query: {
    status: 400,
    doc: "The query parses but cannot be run: a statement that is not a read, an unknown column or function, a type mismatch.",
  },
  execution_error: {
    status: 400,
    doc: "The query failed on a value that it met: text that is no number, a number out of range, a call of `error()`.",
  },
  bad_request_body: {
    status: 400,
    doc: "The body is not what the route takes; for ingest, a line does not parse and the whole batch is rejected.",
  },
  missing_header: { status: 400, doc: "A required request header is absent." },
  invalid_header: { status: 400, doc: "A request header has a value outside its range or alphabet." },
  invalid_name: { status: 400, doc: "A database, table or column name is outside the accepted alphabet, or reserved." },
  invalid_parameter: {
    status: 400,
    doc: "A parameter of the path, the query string or the query is missing, unknown or malformed.",
  },
  bad_request: { status: 400, doc: "The HTTP request itself is malformed." },
  config_error: {
    status: 400,
    doc: "The description of a sandbox, or of a session or message of it, is not a JSON object.",
  },
  config_validation_error: {
    status: 400,
    doc: "A field of the description of a sandbox, session or message is not accepted; the message names it.",
  },
  agent_communication_error: {
    status: 400,
    doc: "The agent did not answer the message; what it said before is kept in the session.",
  },
  unauthorized: { status: 401, doc: "No token, or one that is not valid; `WWW-Authenticate` says what is asked for." },
  forbidden: { status: 403, doc: "The caller's role or databases do not allow this, or a web page asks that may not." },
  oauth_denied: { status: 403, doc: "The owner of the account said no on the provider's page." },
  not_found: { status: 404, doc: "No route, or no such resource." },
  database_not_found: { status: 404, doc: "The database does not exist." },
  table_not_found: { status: 404, doc: "The table does not exist and may not be created by this request." },
  sandbox_not_found: { status: 404, doc: "There is no such sandbox, or it is somebody else's." },
  session_not_found: { status: 404, doc: "There is no such session, or it is somebody else's." },
  image_not_found: { status: 404, doc: "There is no such image, or it is somebody else's and not shared." },
  volume_not_found: { status: 404, doc: "There is no such volume, or it is somebody else's." },
  build_not_found: { status: 404, doc: "There is no such image build, or it is somebody else's." },
  workspace_not_found: { status: 404, doc: "There is no such workspace, or it is somebody else's." },
  file_not_found: { status: 404, doc: "There is no such file in the sandbox." },
  credential_not_found: { status: 404, doc: "There is no such credential for that use, or it is somebody else's." },
  agent_provider_not_found: { status: 404, doc: "There is no agent provider of that name." },
  method_not_allowed: { status: 405, doc: "The path exists, but not for this method; see `Allow`." },
  not_acceptable: { status: 406, doc: "None of the media types in `Accept` can be produced." },
  request_timeout: { status: 408, doc: "The request did not arrive in time." },
  conflict: { status: 409, doc: "The change contradicts what is already there." },
  lease_lost: { status: 409, doc: "The job is not, or no longer, leased to this worker under this fence." },
  sandbox_already_exists: { status: 409, doc: "The tenant has a sandbox of that name." },
  sandbox_invalid_state: { status: 409, doc: "The sandbox's state does not allow this; the message says the state." },
  session_invalid_state: { status: 409, doc: "The session's state does not allow this; the message says the state." },
  snapshot_expired: {
    status: 410,
    doc: "The snapshot asked for can no longer be read: what only it could see may be deleted.",
  },
  gone: { status: 410, doc: "What was asked for was there, and has been deleted since." },
  oauth_expired: { status: 410, doc: "The owner of the account did not decide in time: begin again." },
  precondition_failed: {
    status: 412,
    doc: "What `If-Match` or `If-None-Match` asks for does not hold; nothing was done.",
  },
  body_too_large: { status: 413, doc: "The body is larger than the route allows (decoded bytes are counted)." },
  unsupported_media_type: { status: 415, doc: "The content type or content encoding is not supported here." },
  upgrade_required: { status: 426, doc: "The route answers with a WebSocket, and the request asks for none." },
  range_not_satisfiable: { status: 416, doc: "Nothing lies in the range asked for; `Content-Range` says the size." },
  headers_too_large: { status: 431, doc: "The request's headers are too large." },
  budget_exceeded: { status: 429, doc: "The query passed one of its budgets; `X-Engine-Budget-Limit` names it." },
  too_many_requests: { status: 429, doc: "An admission limit is reached; retry after `Retry-After` seconds." },
  rate_limited: {
    status: 429,
    doc:
      "Of the sandbox service: the caller creates too fast, has or follows too many, has too many or too large volumes, or " +
      "sent wrong tokens too often; retry after `Retry-After` seconds.",
  },
  cancelled: { status: 499, doc: "The client left, or the query or its job was ended, before it was done." },
  query_failed: { status: 500, doc: "The query failed while running, through no fault of its own." },
  ingest_failed: {
    status: 500,
    doc: "The commit failed. Nothing was stored, unless the message says that the outcome is not known.",
  },
  internal: { status: 500, doc: "An unexpected failure; the log has the request id." },
  not_configured: { status: 501, doc: "The operator has not configured what this route needs; the message names it." },
  engine_failed: {
    status: 502,
    doc: "The provider of the agent's model refused or failed; the message has its words.",
  },
  oauth_failed: { status: 502, doc: "The provider refused the account's connection; the message has its code." },
  unavailable: { status: 503, doc: "The server is draining or a component is not available." },
  engine_timeout: { status: 504, doc: "The provider of the agent's model did not answer in time." },
  sandbox_timeout: { status: 504, doc: "The node of the sandbox did not answer in time." },
  timeout: { status: 504, doc: "What listens on a port of the sandbox did not answer in time." },
  insufficient_storage: { status: 507, doc: "The disk is full or read-only; nothing of this request was stored." },
} as const satisfies Record<string, { status: number; doc: string }>;

export type ErrorCode = keyof typeof ERROR_CODES;

/** Details that travel with an `EngineError`: where in the text it happened, and what the client may do. */
export type ErrorDetails = {
  /** 1-based line in the body or query text. */
  line?: number;
  /** Column name for ingest errors, 1-based character position for query errors. */
  column?: number | string;
  /** A name or an expression that the caller may have meant. */
  suggestion?: string;
  /** What to write instead; the message ends with it. */
  hint?: string;
  /** Of `budget_exceeded`: which budget, what the query had used of it, and what it was allowed. */
  budget?: { name: string; used: number; allowed: number };
  /** Response headers the error brings (`Retry-After`, `Allow`, `X-Engine-Budget-Limit`). */
  headers?: Readonly<Record<string, string>>;
  /** The request reached for what it may not have: for the audit log, and not for the client. */
  refused?: true;
  cause?: unknown;
};

/** What clients are told instead of a message that names a place in the server's file system. */
const WITHHELD = "unexpected failure; the log of the server says more";

/**
 * The public error: a stable code, its status, a message meant for the person who sent the request. Where the message
 * came to name a place in the server's file system, the error says so no more, and keeps it for the log.
 */
export class EngineError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;
  /** The message that is for the log alone. */
  declare readonly withheld?: string;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    const isPrivate = namesPrivatePath(message);
    super(isPrivate ? WITHHELD : message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "EngineError";
    this.code = code;
    this.details = details;
    if (isPrivate) this.withheld = message;
  }

  get status(): number {
    return ERROR_CODES[this.code].status;
  }
}

/** The form in which an error crosses a thread or process boundary (structured clone drops classes). */
export type ErrorRecord = { code: ErrorCode; message: string; details: Omit<ErrorDetails, "cause"> };

export function toErrorRecord(error: EngineError): ErrorRecord {
  const { cause: _cause, ...details } = error.details;
  return { code: error.code, message: error.message, details };
}

export function fromErrorRecord(record: ErrorRecord): EngineError {
  return new EngineError(record.code, record.message, record.details);
}

/** The message of anything thrown, as the log may have it. */
export function messageOf(error: unknown): string {
  if (error instanceof EngineError) return error.withheld ?? error.message;
  return error instanceof Error ? error.message : String(error);
}

/** The text as clients may have it: for what reaches them in other ways than as an `EngineError`. */
export function publicText(text: string): string {
  return namesPrivatePath(text) ? WITHHELD : text;
}

/** The `code` of a system error (`ENOSPC`, `EADDRINUSE`), or undefined. */
export function systemCodeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** The program cannot start, and says why in one sentence; 2 means the operator's input is wrong, 1 anything else. */
export class StartupError extends Error {
  readonly exitCode: 1 | 2;
  constructor(message: string, exitCode: 1 | 2 = 1, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "StartupError";
    this.exitCode = exitCode;
  }
}
