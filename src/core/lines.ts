const NEWLINE = 0x0a;

/**
 * The lines of a stream of UTF-8, without their ends; empty lines are left out. One of more than `maxLineBytes` throws
 * what `tooLong` makes.
 */
export async function* linesOf(
  body: AsyncIterable<Uint8Array>,
  { maxLineBytes, tooLong }: { maxLineBytes: number; tooLong: () => Error },
): AsyncGenerator<string> {
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
    if (sizeBytes > maxLineBytes) throw tooLong();
  }
  const last = Buffer.concat(parts).toString("utf8");
  if (last !== "") yield last;
}
