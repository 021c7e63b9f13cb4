import { MalformedWire, tagOf, WIRE, WireReader } from "../protobuf/wire.ts";

/** Records are counted in the first bytes of a body and extrapolated over the rest: whoever receives it must not be held up. */
const COUNTED_BYTES = 64 * 1024;

const wire = new WireReader();
// A group is read to its end to be skipped, unlike everything else.
wire.maxGroupBytes = COUNTED_BYTES;
let records = 0;

/** Fields that hold messages on the way to a record: `resource_logs`, `scope_logs`, `log_records`. */
const WAY = [tagOf(1, WIRE.length), tagOf(2, WIRE.length), tagOf(2, WIRE.length)];

/** About how many records the request has; at least one. */
export function estimateRecords(bytes: Uint8Array): number {
  wire.open(bytes);
  records = 0;
  try {
    count(0);
  } catch (error) {
    // What cannot be read is for the scanner to refuse.
    if (!(error instanceof MalformedWire)) throw error;
  }
  const seenBytes = Math.max(Math.min(wire.at, bytes.byteLength), 1);
  return Math.max(1, Math.ceil((records * bytes.byteLength) / seenBytes));
}

/** Counts records in the message that the reader is in, until enough was seen; the reader stays there. */
function count(level: number): void {
  while (wire.at < COUNTED_BYTES && wire.next()) {
    if (wire.tag !== WAY[level]) continue;
    if (level === WAY.length - 1) {
      records++;
      continue;
    }
    const { end, stop } = wire;
    wire.enter(wire.start, stop);
    count(level + 1);
    if (wire.at >= COUNTED_BYTES) return;
    wire.enter(stop, end);
  }
}

const RECORD_KEY = Buffer.from('"timeUnixNano"');

/** The same of a request in the JSON form, by how often the name of a time stands there. */
export function estimateJsonRecords(bytes: Uint8Array): number {
  const sample = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, COUNTED_BYTES));
  let records = 0;
  for (let at = sample.indexOf(RECORD_KEY); at !== -1; at = sample.indexOf(RECORD_KEY, at + 1)) records++;
  return Math.max(1, Math.ceil((records * bytes.byteLength) / Math.max(sample.byteLength, 1)));
}
