import { decompress } from "./decompress.ts";

/**
 * Record batches, as a topic keeps them (https://kafka.apache.org/documentation/#recordbatch): a header of 61 bytes, then
 * records, compressed as a whole. Offsets are numbers here: none comes near 2^53.
 */
export type RecordBatch = {
  /** 2; or 0 and 1, which are older (`message-set.ts`). */
  format: 0 | 1 | 2;
  baseOffset: number;
  lastOffset: number;
  /** How many records it has; compaction may leave none. */
  count: number;
  /** What the batch takes as it was fetched. */
  sizeBytes: number;
  codec: number;
  isControl: boolean;
  /** Of a transaction that was aborted. */
  isAborted: boolean;
  baseTimestampMs: number;
  /** The broker's time, where the topic goes by that: then all its records have it. */
  appendTimestampMs: number | undefined;
  /** As they were fetched. */
  records: Buffer;
};

/** A message where it lies: `end` -1 stands for null. */
export type KafkaMessage = {
  offset: number;
  /** Milliseconds since 1970; -1 where it has none. */
  timestampMs: number;
  bytes: Buffer;
  keyStart: number;
  keyEnd: number;
  valueStart: number;
  valueEnd: number;
};

/** The value; undefined for null. */
export function valueOf({ bytes, valueStart, valueEnd }: KafkaMessage): Buffer | undefined {
  return valueEnd === -1 ? undefined : bytes.subarray(valueStart, valueEnd);
}

export function keyOf({ bytes, keyStart, keyEnd }: KafkaMessage): Buffer | undefined {
  return keyEnd === -1 ? undefined : bytes.subarray(keyStart, keyEnd);
}

/** What one batch may have, decompressed. Producers send batches of a megabyte at most unless told otherwise. */
export const MAX_BATCH_BYTES = 128 * 1024 * 1024;

/** Decompresses a batch. Throws an `Error` that says what is wrong with it. */
export async function openRecords(batch: RecordBatch): Promise<BatchReader> {
  return new RecordReader(batch, await decompress(batch.codec, batch.records, MAX_BATCH_BYTES));
}

/** Gives the messages of a batch in order. */
export type BatchReader = {
  /** Bytes that it holds. */
  readonly sizeBytes: number;
  readonly isDone: boolean;
  /** The next message. Throws an `Error` for a damaged one; nothing can be read after it. */
  next(): KafkaMessage;
};

/** Reads the records of a batch, some at a time. */
class RecordReader implements BatchReader {
  readonly #batch: RecordBatch;
  readonly #bytes: Buffer;
  #at = 0;
  #left: number;
  #offset: number;

  constructor(batch: RecordBatch, bytes: Buffer) {
    this.#batch = batch;
    this.#bytes = bytes;
    this.#left = batch.count;
    this.#offset = batch.baseOffset;
  }

  get sizeBytes(): number {
    return this.#bytes.length;
  }

  get isDone(): boolean {
    return this.#left <= 0;
  }

  next(): KafkaMessage {
    const { baseOffset, lastOffset, baseTimestampMs, appendTimestampMs } = this.#batch;
    const length = this.#varint();
    const end = this.#at + length;
    if (length < 0 || end > this.#bytes.length) throw new Error("a record is cut off");
    this.#at++;
    const ownTimestampMs = baseTimestampMs + this.#varint();
    const timestampMs = appendTimestampMs ?? ownTimestampMs;
    const offset = baseOffset + this.#varint();
    const [keyStart, keyEnd] = this.#field(end);
    const [valueStart, valueEnd] = this.#field(end);
    if (this.#at > end || offset < this.#offset || offset > lastOffset) throw new Error("a record is damaged");
    // Headers follow.
    this.#at = end;
    this.#left--;
    this.#offset = offset + 1;
    return { offset, timestampMs, bytes: this.#bytes, keyStart, keyEnd, valueStart, valueEnd };
  }

  #field(recordEnd: number): [start: number, end: number] {
    const length = this.#varint();
    if (length < 0) return [this.#at, -1];
    const start = this.#at;
    this.#at += length;
    if (this.#at > recordEnd) throw new Error("a record is cut off");
    return [start, this.#at];
  }

  /** A zigzag varint of up to 64 bits; exact up to 2^53. */
  #varint(): number {
    const first = this.#bytes[this.#at];
    // Most are small.
    if (first !== undefined && first < 128) {
      this.#at++;
      return (first >>> 1) ^ -(first & 1);
    }
    let value = 0;
    for (let factor = 1; factor <= 2 ** 63; factor *= 128) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw new Error("a record is cut off");
      value += (byte & 127) * factor;
      if (byte < 128) return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    }
    throw new Error("a record has a number of more than 64 bits");
  }
}
