import { estimateJsonRecords, estimateRecords } from "./otlp/estimate.ts";
import { countLines, cutAtNewlines, estimateLines } from "./ndjson/lines.ts";

/**
 * How the bodies of requests may be written, as far as whoever receives them has to know. What reads each of them is in
 * `body-scanners.ts`, which only the threads that seal load.
 *
 * A body counts in *lines*: what its client would count to find a row that it is told of. Those of NDJSON are lines of
 * text, blank ones too; of another encoding they are its records.
 */
export type Encoding = {
  /** About how many lines the body has: it decides when to flush, and nothing else. Fast, whatever the body is. */
  estimateLines(bytes: Uint8Array): number;
  /** Absent where a body can only be read whole. */
  parts?: {
    /** Pieces of about `cutBytes` that are bodies of their own; at least one line each, whatever `cutBytes` is. */
    cut(bytes: Uint8Array, cutBytes: number): Uint8Array[];
    /** How many lines a piece has. */
    countLines(bytes: Uint8Array): number;
  };
};

export const ENCODINGS = {
  ndjson: { estimateLines, parts: { cut: cutAtNewlines, countLines } },
  /**
   * `ExportLogsServiceRequest` of OTLP, in protobuf and in JSON. They are not cut for several threads: between resources they
   * could be, but a large request mostly has one, and inside of it each cut would need the resource and the scope before it.
   * 64 MiB, 420,000 records, take 0.9 s of one thread (2026-11, benchmark `kernel/otlp`); exporters send 10,000 at a time.
   */
  otlp_logs: { estimateLines: estimateRecords },
  otlp_logs_json: { estimateLines: estimateJsonRecords },
} satisfies Record<string, Encoding>;

/** Where a body does not say, it is `ndjson`. */
export type BodyEncoding = keyof typeof ENCODINGS;

/** What to know of the bodies of an encoding. */
export function encodingOf(encoding: BodyEncoding | undefined): Encoding {
  return ENCODINGS[encoding ?? "ndjson"];
}
