import type { BodyEncoding } from "./encodings.ts";
import { byteScanner } from "./ndjson/byte-scanner.ts";
import type { BodyScanner } from "./ndjson/scanner.ts";

const SCANNERS: Readonly<Record<BodyEncoding, BodyScanner>> = {
  ndjson: byteScanner,
};

/** What reads the bodies of an encoding. */
export function scannerOf(encoding: BodyEncoding | undefined): BodyScanner {
  return SCANNERS[encoding ?? "ndjson"];
}
