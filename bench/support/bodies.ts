/** Cuts NDJSON into request bodies; they are views of it. */

const LINE_FEED = 10;

/** Bodies of whole rows and at most `sizeBytes`; a row that is longer makes a body alone. */
export function cutBySize(ndjson: Buffer, sizeBytes: number): Buffer[] {
  const bodies: Buffer[] = [];
  for (let start = 0; start < ndjson.length;) {
    const end = endOfBody(ndjson, start, sizeBytes);
    bodies.push(ndjson.subarray(start, end));
    start = end;
  }
  return bodies;
}

function endOfBody(ndjson: Buffer, start: number, sizeBytes: number): number {
  if (start + sizeBytes >= ndjson.length) return ndjson.length;
  const last = ndjson.lastIndexOf(LINE_FEED, start + sizeBytes - 1);
  if (last >= start) return last + 1;
  const next = ndjson.indexOf(LINE_FEED, start);
  return next === -1 ? ndjson.length : next + 1;
}

/** Bodies of `rows` rows, the last perhaps of fewer. */
export function cutByRows(ndjson: Buffer, rows: number): Buffer[] {
  const bodies: Buffer[] = [];
  let start = 0;
  let inBody = 0;
  for (let feed = ndjson.indexOf(LINE_FEED); feed !== -1; feed = ndjson.indexOf(LINE_FEED, feed + 1)) {
    if (++inBody < rows) continue;
    bodies.push(ndjson.subarray(start, feed + 1));
    start = feed + 1;
    inBody = 0;
  }
  if (start < ndjson.length) bodies.push(ndjson.subarray(start));
  return bodies;
}

/** Rows of NDJSON whose every line ends in a line feed. */
export function countRows(ndjson: Uint8Array): number {
  let rows = 0;
  for (let feed = ndjson.indexOf(LINE_FEED); feed !== -1; feed = ndjson.indexOf(LINE_FEED, feed + 1)) rows++;
  return rows;
}
