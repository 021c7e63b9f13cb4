import { GRPC_STATUS, statusOf, type GrpcStatusName } from "../../../io/grpc/status.ts";
import { ERROR_CODES, type EngineError, type ErrorCode } from "../../../core/errors.ts";
import { WireOut } from "../../../format/protobuf/wire-out.ts";

/**
 * Failures as OTLP has them (opentelemetry.io/docs/specs/otlp, "Failures"): a `google.rpc.Status` whose code tells a client
 * whether to send the same again. What may pass is `UNAVAILABLE`, over HTTP 503, with the time to wait for; everything else
 * is for good. The stable code of the error is in an `ErrorInfo`.
 */
export type Failure = {
  code: ErrorCode;
  status: GrpcStatusName;
  httpStatus: number;
  message: string;
  /** Of what may pass: seconds until the client should try again. */
  retryAfterSecs?: number;
};

/** Nothing was stored, or nobody knows: the client is to send it again. */
const MAY_PASS: ReadonlySet<ErrorCode> = new Set([
  "too_many_requests",
  "unavailable",
  "ingest_failed",
  "insufficient_storage",
  "request_timeout",
]);
const DEFAULT_RETRY_SECS = 1;

export function failureOf(error: EngineError): Failure {
  const { code, message, details } = error;
  if (!MAY_PASS.has(code)) return { code, message, status: statusOf(error).status, httpStatus: error.status };
  const said = Number(details.headers?.["Retry-After"]);
  const retryAfterSecs = Number.isSafeInteger(said) && said > 0 ? said : DEFAULT_RETRY_SECS;
  return { code, message, status: "UNAVAILABLE", httpStatus: httpStatusOf(code), retryAfterSecs };
}

/** The HTTP status of an error of that code. */
export function httpStatusOf(code: ErrorCode): number {
  return MAY_PASS.has(code) ? ERROR_CODES.unavailable.status : ERROR_CODES[code].status;
}

const TYPES = "type.googleapis.com/google.rpc.";
const DOMAIN = "engine";

/** The `google.rpc.Status` in JSON. */
export function statusJson({ code, status, message, retryAfterSecs }: Failure): string {
  const info = { "@type": `${TYPES}ErrorInfo`, reason: code, domain: DOMAIN };
  const retry = { "@type": `${TYPES}RetryInfo`, retryDelay: `${retryAfterSecs}s` };
  return JSON.stringify({
    code: GRPC_STATUS[status],
    message,
    details: retryAfterSecs === undefined ? [info] : [retry, info],
  });
}

/** The same in protobuf (google/rpc/{status,error_details}.proto). */
export function statusBytes({ code, status, message, retryAfterSecs }: Failure): Uint8Array {
  const out = new WireOut(256);
  out.varint(1 * 8);
  out.varint(GRPC_STATUS[status]);
  putText(out, 2, message);
  if (retryAfterSecs !== undefined) {
    putDetail(out, "RetryInfo", () => {
      const delay = out.begin(1);
      out.varint(1 * 8);
      out.varint(retryAfterSecs);
      out.end(delay);
    });
  }
  putDetail(out, "ErrorInfo", () => {
    putText(out, 1, code);
    putText(out, 2, DOMAIN);
  });
  return out.written();
}

/** One of `details`, an `Any`. */
function putDetail(out: WireOut, type: string, put: () => void): void {
  const any = out.begin(3);
  putText(out, 1, TYPES + type);
  const value = out.begin(2);
  put();
  out.end(value);
  out.end(any);
}

export function putText(out: WireOut, field: number, text: string): void {
  const bytes = Buffer.from(text);
  const payload = out.begin(field);
  out.bytes(bytes, 0, bytes.length);
  out.end(payload);
}
