import type { Caller } from "../../../auth/caller.ts";
import type { BodyEncoding } from "../../../format/encodings.ts";
import type { Misfit } from "../../../format/ndjson/misfits.ts";
import { OTLP_LOGS_SHAPE, OTLP_LOGS_TABLE } from "../../../format/otlp/shape.ts";
import { WireOut } from "../../../format/protobuf/wire-out.ts";
import type { IngestAck, IngestRequest, IngestService } from "../../ingest.ts";
import { putText } from "./rpc-status.ts";

/** What the receivers of OTLP logs work with. */
export type OtlpDeps = {
  ingest: Pick<IngestService, "ingest">;
  /** `ENGINE_OTLP_DATABASE`. */
  otlpDatabase: string;
};

type LogsRequest = Pick<IngestRequest, "readBody" | "expectedBytes" | "idempotencyKey"> & {
  caller: Pick<Caller, "databases">;
  encoding: BodyEncoding;
};

/** Stores the records of a request, as durable as any ingest; what cannot be kept is in the acknowledgement. */
export function exportLogs({ ingest, otlpDatabase }: OtlpDeps, request: LogsRequest): Promise<IngestAck> {
  return ingest.ingest({
    ...request,
    database: otlpDatabase,
    table: OTLP_LOGS_TABLE,
    autoCreate: true,
    columns: OTLP_LOGS_SHAPE,
    evolve: true,
    inferTypes: false,
  });
}

/** What an `ExportLogsServiceResponse` has to say: records left out, or, with none, a warning. */
type PartialSuccess = { rejected: number; message: string };

function partialSuccessOf({ rejected, warnings }: IngestAck): PartialSuccess | undefined {
  if (rejected !== undefined) return { rejected: rejected.rows, message: rejected.reason };
  return warnings === undefined ? undefined : { rejected: 0, message: warnings.map(sentenceOf).join("; ") };
}

function sentenceOf({ code, field, count, firstLine }: Misfit): string {
  const where = `${count} of the records, first in record ${firstLine}`;
  if (code === "at_unreadable") return `no time can be read of ${where}: they have the time of arrival`;
  return `values that do not fit ${field ?? "their columns"} are in props, of ${where}`;
}

/** The `ExportLogsServiceResponse` in protobuf (opentelemetry/proto/collector/logs/v1/logs_service.proto). */
export function responseBytes(ack: IngestAck): Uint8Array {
  const partial = partialSuccessOf(ack);
  const out = new WireOut(0);
  if (partial === undefined) return out.written();
  const message = out.begin(1);
  out.varint(1 * 8);
  out.varint(partial.rejected);
  putText(out, 2, partial.message);
  out.end(message);
  return out.written();
}

/** The same in JSON, which has integers of 64 bits as text. */
export function responseJson(ack: IngestAck): string {
  const partial = partialSuccessOf(ack);
  if (partial === undefined) return "{}";
  return JSON.stringify({
    partialSuccess: { rejectedLogRecords: String(partial.rejected), errorMessage: partial.message },
  });
}
