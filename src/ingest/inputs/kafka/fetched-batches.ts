import type { RecordBatch } from "./record-batch.ts";

/** Takes apart what a fetch brings of one partition: headers only, records stay as they are. */

const HEADER_BYTES = 61;
/** In front of what the length counts. */
const LENGTH_END = 12;
const MAGIC_AT = 16;
const CODEC = 0x07;
const APPEND_TIME = 0x08;
const TRANSACTIONAL = 0x10;
const CONTROL = 0x20;
const ABORT_KEY = Buffer.from([0, 0, 0, 0]);

/** A batch with what tells whether a transaction took effect. */
export type FetchedBatch = {
  batch: RecordBatch;
  producerId: bigint;
  isTransactional: boolean;
  /** Ends a transaction that did not take effect. */
  isAbortMarker: boolean;
};

/**
 * The batches that are there whole: a fetch may end within one. Throws an `Error` for bytes that are no batches, or
 * messages in the formats before Kafka 0.11.
 */
export function splitBatches(bytes: Buffer): FetchedBatch[] {
  const batches: FetchedBatch[] = [];
  for (let at = 0; at + HEADER_BYTES <= bytes.length;) {
    const magic = bytes.readInt8(at + MAGIC_AT);
    if (magic !== 2) {
      throw new Error(`messages are in format ${magic}, from before Kafka 0.11: have the topic's brokers upgrade it`);
    }
    const length = bytes.readInt32BE(at + LENGTH_END - 4);
    if (length < HEADER_BYTES - LENGTH_END) throw new Error(`a record batch has a length of ${length} bytes`);
    const end = at + LENGTH_END + length;
    if (end > bytes.length) break;
    batches.push(readBatch(bytes.subarray(at, end)));
    at = end;
  }
  return batches;
}

function readBatch(bytes: Buffer): FetchedBatch {
  const baseOffset = Number(bytes.readBigInt64BE(0));
  const attributes = bytes.readInt16BE(21);
  const lastOffset = baseOffset + bytes.readInt32BE(23);
  const maxTimestampMs = Number(bytes.readBigInt64BE(35));
  const isControl = (attributes & CONTROL) !== 0;
  const records = bytes.subarray(HEADER_BYTES);
  return {
    batch: {
      baseOffset,
      lastOffset,
      count: bytes.readInt32BE(57),
      sizeBytes: bytes.length,
      codec: attributes & CODEC,
      isControl,
      isAborted: false,
      baseTimestampMs: Number(bytes.readBigInt64BE(27)),
      appendTimestampMs: (attributes & APPEND_TIME) === 0 ? undefined : maxTimestampMs,
      records,
    },
    producerId: bytes.readBigInt64BE(43),
    isTransactional: (attributes & TRANSACTIONAL) !== 0,
    isAbortMarker: isControl && isAbort(records),
  };
}

/** The one record of a control batch: length, attributes, two deltas of a byte each, then the key. */
function isAbort(records: Buffer): boolean {
  return records.subarray(5, 5 + ABORT_KEY.length).equals(ABORT_KEY);
}

/** A transaction that was aborted, as a fetch tells of it: by its producer, and where it begins. */
export type AbortedTransaction = { producerId: string; firstOffset: string };

/** Marks the batches of aborted transactions: from where one begins until its marker. */
export function markAborted(batches: readonly FetchedBatch[], aborted: readonly AbortedTransaction[]): void {
  const waiting = aborted
    .map(({ producerId, firstOffset }) => ({ producerId: BigInt(producerId), firstOffset: Number(firstOffset) }))
    .toSorted((a, b) => a.firstOffset - b.firstOffset);
  const open = new Set<bigint>();
  let next = 0;
  for (const { batch, producerId, isTransactional, isAbortMarker } of batches) {
    for (; (waiting[next]?.firstOffset ?? Infinity) <= batch.lastOffset; next++) {
      open.add(waiting[next]?.producerId ?? -1n);
    }
    if (isAbortMarker) open.delete(producerId);
    else if (isTransactional && open.has(producerId)) batch.isAborted = true;
  }
}
