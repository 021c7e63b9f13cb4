import { decompress } from "./decompress.ts";
import type { BatchReader, KafkaMessage, RecordBatch } from "./record-batch.ts";

/**
 * Messages in formats 0 and 1, from before Kafka 0.11 (https://kafka.apache.org/39/documentation/#messageset): brokers up
 * to 3.x may keep a topic in them, and later ones hand out what they have of it. Each is an entry of its own: offset,
 * size, checksum, format, attributes, in format 1 a time, then key and value. A compressed entry has others as its value.
 */

const SIZE_AT = 8;
/** In front of what the size counts. */
const SIZE_END = 12;
const FORMAT_AT = 16;
const ATTRIBUTES_AT = 17;
const TIMESTAMP_AT = 18;
const CODEC = 0x07;
const APPEND_TIME = 0x08;
/** The least entry: format 0, without key and value. */
const MIN_SIZE = 14;

/** A whole entry as a batch of its own. How many messages a compressed one has shows when it is opened. */
export function entryBatch(bytes: Buffer): RecordBatch {
  const offset = Number(bytes.readBigInt64BE(0));
  const codec = (bytes[ATTRIBUTES_AT] ?? 0) & CODEC;
  return {
    format: bytes[FORMAT_AT] === 0 ? 0 : 1,
    // A compressed entry has the offset of its last message.
    baseOffset: codec === 0 ? offset : 0,
    lastOffset: offset,
    count: 1,
    sizeBytes: bytes.length,
    codec,
    isControl: false,
    isAborted: false,
    baseTimestampMs: 0,
    appendTimestampMs: appendTimestampOf(bytes),
    records: bytes,
  };
}

function appendTimestampOf(bytes: Buffer): number | undefined {
  const isAppendTime = bytes[FORMAT_AT] !== 0 && ((bytes[ATTRIBUTES_AT] ?? 0) & APPEND_TIME) !== 0;
  return isAppendTime && bytes.length >= TIMESTAMP_AT + 8 ? Number(bytes.readBigInt64BE(TIMESTAMP_AT)) : undefined;
}

/** Opens an entry. Throws an `Error` that says what is wrong with it. */
export async function openEntry(batch: RecordBatch, maxBytes: number): Promise<BatchReader> {
  if (batch.codec === 0) return new MessageReader(batch, batch.records, 0);
  const { bytes, valueStart, valueEnd } = entryAt(batch.records, 0).message;
  if (valueEnd === -1) throw new Error("a compressed message has no value");
  const inner = await decompress(batch.codec, bytes.subarray(valueStart, valueEnd), maxBytes);
  // In format 1 offsets are relative, and the last is that of the outer entry.
  return new MessageReader(batch, inner, batch.format === 0 ? 0 : batch.lastOffset - lastOffsetIn(inner));
}

function lastOffsetIn(bytes: Buffer): number {
  let last = 0;
  for (let at = 0; at < bytes.length;) {
    const { message, end } = entryAt(bytes, at);
    last = message.offset;
    at = end;
  }
  return last;
}

/** Reads the messages of an entry, some at a time. */
class MessageReader implements BatchReader {
  readonly #batch: RecordBatch;
  readonly #bytes: Buffer;
  readonly #shift: number;
  #at = 0;
  #least = 0;

  /** `shift` is added to the offsets in `bytes`. */
  constructor(batch: RecordBatch, bytes: Buffer, shift: number) {
    this.#batch = batch;
    this.#bytes = bytes;
    this.#shift = shift;
  }

  get sizeBytes(): number {
    return this.#bytes.length;
  }

  get isDone(): boolean {
    return this.#at >= this.#bytes.length;
  }

  next(): KafkaMessage {
    const { message, codec, end } = entryAt(this.#bytes, this.#at);
    const { codec: outer, lastOffset, appendTimestampMs } = this.#batch;
    const offset = message.offset + this.#shift;
    if (outer !== 0 && codec !== 0) throw new Error("a compressed message lies within another");
    if (offset < this.#least || offset > lastOffset) throw new Error("a message is damaged");
    this.#at = end;
    this.#least = offset + 1;
    return { ...message, offset, timestampMs: appendTimestampMs ?? message.timestampMs };
  }
}

function entryAt(bytes: Buffer, at: number): { message: KafkaMessage; codec: number; end: number } {
  const end = at + SIZE_END + (at + SIZE_END <= bytes.length ? bytes.readInt32BE(at + SIZE_AT) : MIN_SIZE);
  if (end > bytes.length || end < at + SIZE_END + MIN_SIZE) throw new Error("a message is cut off");
  const format = bytes[at + FORMAT_AT] ?? 0;
  if (format > 1) throw new Error(`a message is in format ${format} among others in format 0 or 1`);
  const timestampMs = format === 0 ? -1 : Number(bytes.readBigInt64BE(at + TIMESTAMP_AT));
  const [keyStart, keyEnd, keyNext] = fieldAt(bytes, at + TIMESTAMP_AT + (format === 0 ? 0 : 8), end);
  const [valueStart, valueEnd, next] = fieldAt(bytes, keyNext, end);
  if (next !== end) throw new Error("a message is damaged");
  const offset = Number(bytes.readBigInt64BE(at));
  const codec = (bytes[at + ATTRIBUTES_AT] ?? 0) & CODEC;
  return { message: { offset, timestampMs, bytes, keyStart, keyEnd, valueStart, valueEnd }, codec, end };
}

/** Where a field lies, its end -1 for null, and where the next begins. */
function fieldAt(bytes: Buffer, at: number, entryEnd: number): [start: number, end: number, next: number] {
  const start = at + 4;
  if (start > entryEnd) throw new Error("a message is cut off");
  const length = bytes.readInt32BE(at);
  if (length < 0) return [start, -1, start];
  if (start + length > entryEnd) throw new Error("a message is cut off");
  return [start, start + length, start + length];
}
