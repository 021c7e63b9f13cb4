import { entryBatch, openEntry } from "./message-set.ts";
import { MAX_BATCH_BYTES, openRecords, type BatchReader, type RecordBatch } from "./record-batch.ts";

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

/** What a fetch brought; `problem` says why nothing can be told apart after the batches. */
export type Fetched = { batches: FetchedBatch[]; problem: string | undefined };

/** The batches that are there whole: a fetch may end within one. */
export function splitBatches(bytes: Buffer): Fetched {
  const batches: FetchedBatch[] = [];
  for (let at = 0; at + MAGIC_AT < bytes.length;) {
    const magic = bytes.readInt8(at + MAGIC_AT);
    const length = bytes.readInt32BE(at + LENGTH_END - 4);
    const problem = problemOf(magic, length);
    if (problem !== undefined) return { batches, problem };
    const end = at + LENGTH_END + length;
    if (end > bytes.length) break;
    const whole = bytes.subarray(at, end);
    batches.push(magic === 2 ? readBatch(whole) : { ...NO_TRANSACTION, batch: entryBatch(whole) });
    at = end;
  }
  return { batches, problem: undefined };
}

const NO_TRANSACTION = { producerId: -1n, isTransactional: false, isAbortMarker: false };

/** Whether a batch may begin so. Nothing says where the next one is behind one that does not. */
function problemOf(magic: number, length: number): string | undefined {
  if (magic < 0 || magic > 2) return `the broker sends messages in format ${magic}, which is unknown`;
  const least = magic === 2 ? HEADER_BYTES - LENGTH_END : MAGIC_AT + 2 - LENGTH_END;
  return length < least ? `the broker sends a record batch with a length of ${length} bytes` : undefined;
}

/** Decompresses a batch of any format. Throws an `Error` that says what is wrong with it. */
export async function openBatch(batch: RecordBatch): Promise<BatchReader> {
  return batch.format === 2 ? await openRecords(batch) : await openEntry(batch, MAX_BATCH_BYTES);
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
      format: 2,
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
