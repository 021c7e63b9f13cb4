import { CliError } from "./failure.ts";

const NEWLINE = 0x0a;
/** A row beyond this cannot be shown as text by the runtime either (its strings end at 512 MiB). */
const MAX_LINE_BYTES = 256 * 2 ** 20;

/** The lines of a stream of UTF-8, without their ends; empty lines are left out. */
export async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let parts: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of body) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      parts.push(chunk.subarray(start, end));
      const line = Buffer.concat(parts).toString("utf8");
      parts = [];
      sizeBytes = 0;
      start = end + 1;
      if (line !== "") yield line;
    }
    parts.push(chunk.subarray(start));
    sizeBytes += chunk.byteLength - start;
    if (sizeBytes > MAX_LINE_BYTES) throw new CliError(`a row has more than ${MAX_LINE_BYTES} bytes`);
  }
  const last = Buffer.concat(parts).toString("utf8");
  if (last !== "") yield last;
}
