import { EngineError } from "../../../core/errors.ts";
import { GrpcError, statusOf } from "../../../io/grpc/status.ts";
import type { GrpcContext, GrpcOperations } from "../../../server/grpc/guarded-service.ts";
import { idempotencyKey } from "../../routes/body.ts";
import { exportLogs, responseBytes, type OtlpDeps } from "./export-logs.ts";
import { failureOf, statusBytes } from "./rpc-status.ts";

/** `LogsService` of OTLP (opentelemetry/proto/collector/logs/v1/logs_service.proto). */
export function logsOperations(deps: OtlpDeps): GrpcOperations {
  return {
    name: "opentelemetry.proto.collector.logs.v1.LogsService",
    operations: { Export: { streams: false, handle: (context, message) => answer(deps, context, message) } },
  };
}

async function answer(deps: OtlpDeps, { call, caller }: GrpcContext, message: Uint8Array) {
  try {
    const key = keyOf(call.header("x-idempotency-key"));
    const ack = await exportLogs(deps, {
      caller,
      encoding: "otlp_logs",
      expectedBytes: message.byteLength,
      readBody: () => Promise.resolve(message),
      ...(key === undefined ? {} : { idempotencyKey: key }),
    });
    return { messages: responseBytes(ack) };
  } catch (error) {
    throw error instanceof EngineError && error.withheld === undefined ? asStatus(error) : error;
  }
}

function keyOf(value: string | undefined): string | undefined {
  const checked = idempotencyKey.safeParse(value);
  if (checked.success) return checked.data;
  const reason = checked.error.issues[0]?.message ?? "not accepted";
  throw new EngineError("invalid_header", `metadata x-idempotency-key: ${reason}`);
}

/** With the details that tell a client whether to send the request again, and when. */
function asStatus(error: EngineError): GrpcError {
  const failure = failureOf(error);
  const { metadata = {} } = statusOf(error);
  return new GrpcError({
    status: failure.status,
    message: failure.message,
    metadata,
    details: statusBytes(failure),
  });
}
