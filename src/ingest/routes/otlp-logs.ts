import { z } from "zod";
import { LIMITS } from "../../core/limits.ts";
import type { HttpResponse } from "../../io/http/http.ts";
import { defineRoute, type RouteFailures } from "../../server/route.ts";
import { nameSchemas } from "../../server/schema-names.ts";
import { exportLogs, responseBytes, responseJson } from "../inputs/otlp/export-logs.ts";
import { failureOf, httpStatusOf, statusBytes, statusJson } from "../inputs/otlp/rpc-status.ts";
import { idempotencyKey, withBody } from "./body.ts";
import type { IngestDeps } from "./deps.ts";

const PROTOBUF = "application/x-protobuf";
const JSON_TYPE = "application/json";

const headers = z.object({ "x-idempotency-key": idempotencyKey });

const exportLogsResponse = z.object({
  partialSuccess: z
    .object({
      rejectedLogRecords: z.string().describe("Records that were left out; 0 where the message is a warning."),
      errorMessage: z.string().describe("Why the first of them was, or what did not fit."),
    })
    .optional()
    .describe("Absent when all records were stored as they came."),
});

const rpcStatus = z.object({
  code: z.int().describe("A `google.rpc.Code`: 14 (`UNAVAILABLE`) is for the client to send the request again."),
  message: z.string(),
  details: z.array(z.looseObject({ "@type": z.string() })).describe("`RetryInfo` and `ErrorInfo` of google.rpc."),
});

nameSchemas({ ExportLogsServiceResponse: exportLogsResponse, RpcStatus: rpcStatus });

/** Errors are a `google.rpc.Status` in the encoding of the request. */
const failures: RouteFailures = {
  types: [PROTOBUF, JSON_TYPE],
  schema: rpcStatus,
  statusOf: httpStatusOf,
  respond(request, error) {
    const failure = failureOf(error);
    const retry = failure.retryAfterSecs === undefined ? {} : { "Retry-After": String(failure.retryAfterSecs) };
    const isJson = isJsonType(request.header("content-type"));
    return {
      status: failure.httpStatus,
      headers: { "Content-Type": isJson ? JSON_TYPE : PROTOBUF, ...error.details.headers, ...retry },
      body: isJson ? statusJson(failure) : statusBytes(failure),
    };
  },
};

export const otlpLogsRoute = defineRoute({
  method: "POST",
  path: "/v1/logs",
  role: "write",
  tag: "Ingest",
  summary: "Store OTLP logs",
  description:
    "An `ExportLogsServiceRequest` of OTLP 1.x, in protobuf or JSON, into the table `otel_logs` of the database that the " +
    "operator has chosen. The answer comes when the records are durable and visible. A request that does not parse is " +
    "refused whole; records that cannot be kept are left out, counted and told of in `partial_success`.",
  headers,
  body: {
    types: [PROTOBUF, JSON_TYPE],
    description:
      "An `ExportLogsServiceRequest`, optionally with `Content-Encoding: gzip`, `zstd` or `deflate`; at most 64 MiB decoded.",
    limitBytes: LIMITS.ingestBodyBytes,
    example: '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"signed in"}}]}]}]}',
  },
  failures,
  responses: [
    { status: 200, description: "An `ExportLogsServiceResponse` in the encoding of the request.", type: PROTOBUF },
    { status: 200, description: "The same in JSON.", type: JSON_TYPE, schema: exportLogsResponse },
  ],
  errors: [
    "bad_request_body",
    "invalid_header",
    "invalid_name",
    "body_too_large",
    "unsupported_media_type",
    "too_many_requests",
    "ingest_failed",
    "unavailable",
    "insufficient_storage",
  ],
  handler:
    (deps: IngestDeps) =>
    async ({ request, caller, headers, bodyType }): Promise<HttpResponse> => {
      const key = headers["x-idempotency-key"];
      const isJson = bodyType === JSON_TYPE;
      const ack = await withBody(request, (body) =>
        exportLogs(deps, {
          ...body,
          caller,
          encoding: isJson ? "otlp_logs_json" : "otlp_logs",
          ...(key === undefined ? {} : { idempotencyKey: key }),
        }),
      );
      return {
        status: 200,
        headers: { "Content-Type": isJson ? JSON_TYPE : PROTOBUF },
        body: isJson ? responseJson(ack) : responseBytes(ack),
      };
    },
});

function isJsonType(contentType: string | undefined): boolean {
  return contentType?.split(";")[0]?.trim().toLowerCase() === JSON_TYPE;
}
