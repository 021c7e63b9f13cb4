import { EngineError, type ErrorCode } from "../../core/errors.ts";
import { CallEndedError } from "./grpc.ts";

/** The status codes of gRPC (https://grpc.github.io/grpc/core/md_doc_statuscodes.html). */
export const GRPC_STATUS = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type GrpcStatusName = keyof typeof GRPC_STATUS;

/** What a client is told of a call that failed. */
export type GrpcStatus = {
  status: GrpcStatusName;
  message: string;
  /** Trailing metadata: lower-case names. What is not ASCII is left out. */
  metadata?: Readonly<Record<string, string>>;
  /** A serialised `google.rpc.Status`, sent as `grpc-status-details-bin`. */
  details?: Uint8Array;
};

/** A failure that a method has a status of its own for. */
export class GrpcError extends Error {
  readonly status: GrpcStatus;
  constructor(status: GrpcStatus) {
    super(status.message);
    this.name = "GrpcError";
    this.status = status;
  }
}

/** The status of every public error. */
const STATUS_OF: Readonly<Record<ErrorCode, GrpcStatusName>> = {
  parse_error: "INVALID_ARGUMENT",
  invalid_query: "INVALID_ARGUMENT",
  execution_error: "INVALID_ARGUMENT",
  bad_request_body: "INVALID_ARGUMENT",
  missing_header: "INVALID_ARGUMENT",
  invalid_header: "INVALID_ARGUMENT",
  invalid_name: "INVALID_ARGUMENT",
  invalid_parameter: "INVALID_ARGUMENT",
  bad_request: "INVALID_ARGUMENT",
  config_error: "INVALID_ARGUMENT",
  config_validation_error: "INVALID_ARGUMENT",
  not_acceptable: "INVALID_ARGUMENT",
  unsupported_media_type: "INVALID_ARGUMENT",
  upgrade_required: "INVALID_ARGUMENT",
  agent_communication_error: "UNAVAILABLE",
  unauthorized: "UNAUTHENTICATED",
  forbidden: "PERMISSION_DENIED",
  oauth_denied: "PERMISSION_DENIED",
  not_found: "NOT_FOUND",
  database_not_found: "NOT_FOUND",
  table_not_found: "NOT_FOUND",
  sandbox_not_found: "NOT_FOUND",
  session_not_found: "NOT_FOUND",
  image_not_found: "NOT_FOUND",
  volume_not_found: "NOT_FOUND",
  build_not_found: "NOT_FOUND",
  workspace_not_found: "NOT_FOUND",
  file_not_found: "NOT_FOUND",
  credential_not_found: "NOT_FOUND",
  agent_provider_not_found: "NOT_FOUND",
  method_not_allowed: "UNIMPLEMENTED",
  not_configured: "UNIMPLEMENTED",
  request_timeout: "DEADLINE_EXCEEDED",
  timeout: "DEADLINE_EXCEEDED",
  sandbox_timeout: "DEADLINE_EXCEEDED",
  conflict: "ABORTED",
  lease_lost: "ABORTED",
  sandbox_already_exists: "ALREADY_EXISTS",
  sandbox_invalid_state: "FAILED_PRECONDITION",
  session_invalid_state: "FAILED_PRECONDITION",
  snapshot_expired: "FAILED_PRECONDITION",
  gone: "FAILED_PRECONDITION",
  oauth_expired: "FAILED_PRECONDITION",
  precondition_failed: "FAILED_PRECONDITION",
  range_not_satisfiable: "OUT_OF_RANGE",
  body_too_large: "RESOURCE_EXHAUSTED",
  headers_too_large: "RESOURCE_EXHAUSTED",
  budget_exceeded: "RESOURCE_EXHAUSTED",
  too_many_requests: "RESOURCE_EXHAUSTED",
  rate_limited: "RESOURCE_EXHAUSTED",
  insufficient_storage: "RESOURCE_EXHAUSTED",
  cancelled: "CANCELLED",
  query_failed: "INTERNAL",
  ingest_failed: "INTERNAL",
  internal: "INTERNAL",
  engine_failed: "UNAVAILABLE",
  engine_timeout: "DEADLINE_EXCEEDED",
  oauth_failed: "UNAVAILABLE",
  unavailable: "UNAVAILABLE",
};

/**
 * A public error as a status. Its stable code is the metadata `x-engine-error-code`; the headers that it brings over HTTP
 * (`Retry-After`, `X-Engine-Budget-Limit`) are metadata of the same names.
 */
export function statusOf({ code, message, details }: EngineError): GrpcStatus {
  const metadata: Record<string, string> = { "x-engine-error-code": code };
  for (const [name, value] of Object.entries(details.headers ?? {})) metadata[name.toLowerCase()] = value;
  return { status: STATUS_OF[code], message, metadata };
}

const ENDED: Readonly<Record<CallEndedError["reason"], GrpcStatusName>> = {
  cancelled: "CANCELLED",
  deadline: "DEADLINE_EXCEEDED",
  stalled: "ABORTED",
};

/** What a client is told of anything that a method failed with; of what nobody expected, nothing but that it failed. */
export function failureOf(error: unknown): GrpcStatus {
  if (error instanceof GrpcError) return error.status;
  if (error instanceof EngineError) return statusOf(error);
  if (error instanceof CallEndedError) return { status: ENDED[error.reason], message: error.message };
  return { status: "INTERNAL", message: "unexpected failure" };
}

/** Clients refuse trailers above 8 KiB, the message percent-encoded. */
const MAX_MESSAGE_CHARS = 1_000;

/** The message as it may be sent: half of a surrogate pair cannot be encoded, and clients bound what they take. */
export function sentMessage(message: string): string {
  const text = message.length > MAX_MESSAGE_CHARS ? `${message.slice(0, MAX_MESSAGE_CHARS)}…` : message;
  return text.toWellFormed();
}

const METADATA_NAME = /^[0-9a-z_.-]+$/;
const METADATA_VALUE = /^[\x20-\x7e]*$/;
/** HTTP/2 forbids the first ones, and the others are the protocol's own. */
const RESERVED =
  /^(connection|keep-alive|proxy-connection|transfer-encoding|upgrade|host|te|trailer|content-(type|length)|grpc-.*|.*-bin)$/;

/** Those pairs that gRPC can carry as text (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). */
export function sentMetadata(metadata: Readonly<Record<string, string>> = {}): (readonly [string, string])[] {
  return Object.entries(metadata).filter(
    ([name, value]) => METADATA_NAME.test(name) && !RESERVED.test(name) && METADATA_VALUE.test(value),
  );
}
