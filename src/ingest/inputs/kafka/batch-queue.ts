import { messageOf } from "../../../core/errors.ts";
import { openBatch } from "./fetched-batches.ts";
import type { FetchMemory } from "./memory.ts";
import type { OffsetRange } from "./position.ts";
import type { BatchReader, KafkaMessage, RecordBatch } from "./record-batch.ts";

/** Batches of one partition that were fetched and not taken yet, in order; they are decoded when they are taken. */

/** Offsets whose messages cannot be read, and why. */
export type Unreadable = OffsetRange & { reason: string };

/** Unpacked batches that one turn holds; one more may be opened before that is seen. */
const MAX_OPENED_BYTES = 64 * 1024 * 1024;

/** What is committed together. */
export type Gathered = {
  messages: KafkaMessage[];
  unreadable: Unreadable[];
  tombstones: number;
  /** The offset after the last that was looked at. */
  to: number;
};

export type GatherLimits = { maxMessages: number; maxBytes: number };

export class BatchQueue {
  readonly #memory: FetchMemory;
  readonly #batches: RecordBatch[] = [];
  #reader: BatchReader | undefined;
  #messages = 0;
  #sizeBytes = 0;
  /** Of the reader. */
  #openedBytes = 0;
  /** Where batches lie that were taken, and are not stored yet. */
  #takenFrom: ArrayBufferLike[] = [];
  #takenOpenedBytes = 0;

  constructor(memory: FetchMemory) {
    this.#memory = memory;
  }

  /** About how many messages wait: those of the batch that is being read count whole. */
  get messages(): number {
    return this.#messages;
  }

  /** Bytes that are held, as they were fetched. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  get isEmpty(): boolean {
    return this.#batches.length === 0;
  }

  push(batch: RecordBatch): void {
    this.#batches.push(batch);
    this.#messages += batch.count;
    this.#sizeBytes += batch.sizeBytes;
    this.#memory.keep(batch.records.buffer);
  }

  /** What was taken is stored, and holds no memory any more. */
  release(): void {
    const [buffers, openedBytes] = [this.#takenFrom, this.#takenOpenedBytes];
    this.#takenFrom = [];
    this.#takenOpenedBytes = 0;
    this.#memory.drop(buffers, openedBytes);
  }

  clear(): void {
    for (const { records } of this.#batches.splice(0)) this.#takenFrom.push(records.buffer);
    this.#takenOpenedBytes += this.#openedBytes;
    this.#reader = undefined;
    this.#messages = 0;
    this.#sizeBytes = 0;
    this.#openedBytes = 0;
    this.release();
  }

  /** Takes what waits, in order, up to the limits; one message at least. Those before `from` are passed over. */
  async take(from: number, { maxMessages, maxBytes }: GatherLimits): Promise<Gathered> {
    const gathered: Gathered = { messages: [], unreadable: [], tombstones: 0, to: from };
    let sizeBytes = 0;
    let openedBytes = 0;
    for (;;) {
      const [batch] = this.#batches;
      if (batch === undefined || gathered.messages.length >= maxMessages || sizeBytes >= maxBytes) return gathered;
      if (batch.isControl || batch.isAborted || batch.lastOffset < from) {
        this.#shift(batch, gathered);
        continue;
      }
      // A message keeps its whole batch, with the keys and headers that nobody counts.
      if (openedBytes >= MAX_OPENED_BYTES && gathered.messages.length > 0) return gathered;
      if (batch.codec !== 0 && this.#reader === undefined) {
        if (gathered.messages.length === 0) this.release();
        else if (!this.#memory.canOpen) return gathered;
      }
      const read = await this.#read(batch, gathered, { maxMessages, maxBytes: maxBytes - sizeBytes });
      sizeBytes += read.valueBytes;
      openedBytes += read.openedBytes;
    }
  }

  /** Reads from the first batch; returns how many bytes of values that gave, and how large it is unpacked. */
  async #read(
    batch: RecordBatch,
    gathered: Gathered,
    { maxMessages, maxBytes }: GatherLimits,
  ): Promise<{ valueBytes: number; openedBytes: number }> {
    let sizeBytes = 0;
    let openedBytes = 0;
    try {
      const reader = this.#reader ?? (await this.#open(batch));
      openedBytes = reader.sizeBytes;
      // The queue was cleared meanwhile.
      if (this.#batches[0] !== batch) return { valueBytes: 0, openedBytes };
      while (!reader.isDone && gathered.messages.length < maxMessages && sizeBytes < maxBytes) {
        const message = reader.next();
        if (message.offset < gathered.to) continue;
        gathered.to = message.offset + 1;
        if (message.valueEnd === -1) gathered.tombstones++;
        else gathered.messages.push(message);
        sizeBytes += Math.max(0, message.valueEnd - message.valueStart);
      }
      if (reader.isDone) this.#shift(batch, gathered);
    } catch (error) {
      const first = Math.max(gathered.to, batch.baseOffset);
      const what = `offsets ${first} to ${batch.lastOffset} cannot be read: ${messageOf(error)}`;
      gathered.unreadable.push({ first, last: batch.lastOffset, reason: `${what}; they are still in the topic` });
      this.#shift(batch, gathered);
    }
    return { valueBytes: sizeBytes, openedBytes };
  }

  async #open(batch: RecordBatch): Promise<BatchReader> {
    if (batch.codec === 0) return (this.#reader = await openBatch(batch));
    return await this.#memory.open(
      () => openBatch(batch),
      (reader) => {
        // The queue may have been cleared meanwhile.
        if (this.#batches[0] !== batch) return;
        this.#reader = reader;
        this.#openedBytes = reader.sizeBytes;
        this.#memory.keepOpened(reader.sizeBytes);
      },
    );
  }

  #shift(batch: RecordBatch, gathered: Gathered): void {
    this.#batches.shift();
    this.#reader = undefined;
    this.#messages -= batch.count;
    this.#sizeBytes -= batch.sizeBytes;
    this.#takenFrom.push(batch.records.buffer);
    this.#takenOpenedBytes += this.#openedBytes;
    this.#openedBytes = 0;
    gathered.to = Math.max(gathered.to, batch.lastOffset + 1);
  }
}
