import { writeSync } from "node:fs";
import { systemCodeOf } from "../../core/errors.ts";

/** Not `process.stdout`, which would hold what a slow reader has not taken. */
const STDOUT = 1;
const RETRY_MS = 1;

/** Writes all bytes to standard output before it returns. */
export function writeOut(bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(STDOUT, bytes, at);
    } catch (error) {
      // Only where the pipe does not block: until it is read.
      if (systemCodeOf(error) !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
    }
  }
}
