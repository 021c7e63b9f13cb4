import type { BodyEncoding } from "./encodings.ts";
import { byteScanner } from "./ndjson/byte-scanner.ts";
import type { BodyScanner } from "./ndjson/scanner.ts";
import { logsJsonScanner, logsScanner } from "./otlp/scanner.ts";

const SCANNERS: Readonly<Record<BodyEncoding, BodyScanner>> = {
  ndjson: byteScanner,
  otlp_logs: logsScanner,
  otlp_logs_json: logsJsonScanner,
};

/** What reads the bodies of an encoding. */
export function scannerOf(encoding: BodyEncoding | undefined): BodyScanner {
  return SCANNERS[encoding ?? "ndjson"];
}
