import { linesOf as linesWithin } from "../core/lines.ts";
import { CliError } from "./failure.ts";

/** A row beyond this cannot be shown as text by the runtime either (its strings end at 512 MiB). */
const MAX_LINE_BYTES = 256 * 2 ** 20;

/** The lines of a stream of UTF-8, without their ends; empty lines are left out. */
export function linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  return linesWithin(body, {
    maxLineBytes: MAX_LINE_BYTES,
    tooLong: () => new CliError(`a row has more than ${MAX_LINE_BYTES} bytes`),
  });
}
