const LINE_FEED = 10;
/** Lines are counted here and extrapolated over the rest: a large body must not hold up the thread that receives. */
const COUNTED_BYTES = 64 * 1024;

/** About how many lines the body has, blank ones included. */
export function estimateLines(bytes: Uint8Array): number {
  const sample = bytes.subarray(0, COUNTED_BYTES);
  return Math.ceil((Math.max(countFeeds(sample), 1) * bytes.byteLength) / Math.max(sample.byteLength, 1));
}

/** How many lines the body has, blank ones included; the last need not end in a line feed. */
export function countLines(bytes: Uint8Array): number {
  return countFeeds(bytes) + (bytes.length > 0 && bytes.at(-1) !== LINE_FEED ? 1 : 0);
}

/** Pieces of about `cutBytes`, each but the last ending in a line feed. */
export function cutAtNewlines(bytes: Uint8Array, cutBytes: number): Uint8Array[] {
  const cuts: Uint8Array[] = [];
  for (let start = 0; start < bytes.length;) {
    const feed = bytes.indexOf(LINE_FEED, start + cutBytes - 1);
    const end = feed === -1 ? bytes.length : feed + 1;
    cuts.push(bytes.subarray(start, end));
    start = end;
  }
  return cuts;
}

function countFeeds(bytes: Uint8Array): number {
  // A Buffer searches with memchr; a plain Uint8Array takes five times as long.
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let feeds = 0;
  for (let at = buffer.indexOf(LINE_FEED); at !== -1; at = buffer.indexOf(LINE_FEED, at + 1)) feeds++;
  return feeds;
}
