import { readInputPosition, type SourceStep } from "../../../catalog/input-positions.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Log } from "../../../core/log.ts";
import type { RecordStore } from "../../../db/records.ts";
import type { Gathered } from "./batch-queue.ts";
import { letterLine, type DeadLetter } from "./dead-letters.ts";
import type { KafkaMetrics } from "./metrics.ts";
import { obviousProblem } from "./message-body.ts";
import type { TopicMapping } from "./options.ts";
import { covers, formatPosition, joinRanges, parsePosition, rangesFrom, type KafkaPosition } from "./position.ts";
import type { KafkaMessage } from "./record-batch.ts";
import { isRefused, TableWriter, type WriterPorts } from "./table-writer.ts";

/**
 * What one partition has in the catalog: its position, and the batches that move it.
 *
 * A batch is committed whole. Only one that is refused is gone through message by message: those that cannot be rows
 * become dead letters. Rows and letters go to two tables, and so in two commits; the first leaves in the position which
 * letters are still to come.
 */
export type StorePorts = WriterPorts & {
  records: Pick<RecordStore, "rows">;
  clock: Clock;
  log: Log;
  metrics: KafkaMetrics;
};

export type StoredCounts = { rows: number; deadLetters: number; tombstones: number };

/** Letters are sent this many bytes of JSON at a time, or one where it is larger. */
const LETTERS_BYTES = 4 * 1024 * 1024;
/** Ranges of offsets that a position may name: its text is bounded. */
const MAX_RANGES = 500;
/** How often the position moves over messages without rows. */
const MOVE_EVERY_MS = 10_000;

/** Of a message that its table would take now: its columns have changed. */
const REFUSED_BEFORE = "its table refused it when it was read first, and has been changed since";

/** What is to be stored up to an offset. */
type Batch = { messages: readonly KafkaMessage[]; letters: readonly DeadLetter[]; to: number };

export class PartitionStore {
  readonly source: string;
  readonly counts: StoredCounts = { rows: 0, deadLetters: 0, tombstones: 0 };
  readonly #ports: StorePorts;
  readonly #mapping: TopicMapping;
  readonly #partition: number;
  readonly #writer: TableWriter;
  readonly #onStored: (next: number) => void;
  #stored: string | undefined;
  #position: KafkaPosition = { next: 0, pending: [] };
  #movedAtMs = -Infinity;

  /** `onStored` is told of every position that was committed. */
  constructor(
    ports: StorePorts,
    place: { mapping: TopicMapping; partition: number },
    onStored: (next: number) => void,
  ) {
    this.#ports = ports;
    this.#mapping = place.mapping;
    this.#partition = place.partition;
    this.#onStored = onStored;
    this.#writer = new TableWriter(ports, place.mapping);
    this.source = `kafka:${place.mapping.topic}:${place.partition}`;
  }

  get position(): KafkaPosition {
    return this.#position;
  }

  /** Whether anything was ever stored of the partition. */
  get isNew(): boolean {
    return this.#stored === undefined;
  }

  /** Reads the position; of a partition without one it is `low`. False where the catalog has a text that is none. */
  async load(low: number): Promise<boolean> {
    this.#stored = await this.#read();
    const position = this.#stored === undefined ? { next: low, pending: [] } : parsePosition(this.#stored);
    if (position === undefined) return false;
    this.#position = position;
    return true;
  }

  /** Whether the position has moved since it was read here, by somebody else. */
  async hasMoved(): Promise<boolean> {
    return (await this.#read()) !== this.#stored;
  }

  async #read(): Promise<string | undefined> {
    return (await readInputPosition(this.#ports.records, this.source))?.position;
  }

  /** Stores what was gathered; rejects with `PositionMoved` when somebody else has. */
  async store(gathered: Gathered): Promise<void> {
    await this.settle(gathered);
    const { next } = this.#position;
    const isAllNew = (gathered.messages[0]?.offset ?? next) >= next;
    const messages = isAllNew ? gathered.messages : gathered.messages.filter(({ offset }) => offset >= next);
    const unreadable = gathered.unreadable.filter(({ last }) => last >= next);
    const letters = unreadable.map(({ first, reason }) => ({ offset: first, reason }));
    if (messages.length + letters.length > 0)
      await this.#storeBatch(withoutObvious({ messages, letters, to: gathered.to }));
    else if (gathered.to > next) await this.#moveOn(gathered.to);
    this.counts.tombstones += gathered.tombstones;
    this.#ports.metrics.tombstones.inc({ topic: this.#mapping.topic }, gathered.tombstones);
  }

  /** Stores the dead letters of a batch whose rows were stored before, as far as its messages were read again. */
  async settle({ messages, unreadable, to }: Pick<Gathered, "messages" | "unreadable" | "to">): Promise<void> {
    const { next, pending } = this.#position;
    if (pending.length === 0 || (pending[0]?.first ?? 0) >= to) return;
    const old = messages.filter(({ offset }) => offset < next && covers(pending, offset));
    const found = new Map<number, DeadLetter>(
      unreadable.map(({ first, reason }) => [first, { offset: first, reason }] as const),
    );
    for (const letter of await this.#lettersOf(old)) found.set(letter.offset, letter);
    const letters: DeadLetter[] = [];
    for (const { first, last } of pending) {
      for (let offset = first; offset <= Math.min(last, to - 1); offset++) {
        letters.push(found.get(offset) ?? { offset, reason: "it was refused, and has gone from the topic since" });
      }
    }
    await this.#storeLetters(letters, { next, pending: rangesFrom(pending, to) });
  }

  /** What is wrong with messages that were refused before this process, or an earlier call, lost their letters. */
  async #lettersOf(messages: readonly KafkaMessage[]): Promise<DeadLetter[]> {
    const unclear = messages.filter((message) => obviousProblem(message) === undefined);
    const problems = unclear.length === 0 ? new Map<number, string>() : await this.#writer.problems(unclear);
    return messages.map((message) => {
      const { offset } = message;
      const reason = obviousProblem(message) ?? problems.get(offset) ?? REFUSED_BEFORE;
      return { offset, message, reason };
    });
  }

  /** Goes on at `low`, with a dead letter for what was deleted from the topic before it was read. */
  async skipTo(low: number): Promise<void> {
    const { next } = this.#position;
    const reason = `offsets ${next} to ${low - 1} were deleted from the topic before they were read`;
    this.#ports.log.error({ source: this.source, first: next, last: low - 1 }, "messages of Kafka are lost");
    await this.#storeLetters([{ offset: next, reason }], { next: low, pending: [] });
    this.#ports.metrics.missing.inc({ topic: this.#mapping.topic }, low - next);
  }

  /** Each refusal takes messages out, or halves what is tried, so this ends. */
  async #storeBatch(batch: Batch): Promise<void> {
    const { messages, letters, to } = batch;
    const pending = joinRanges(letters.map(({ offset }) => ({ first: offset, last: offset })));
    if (messages.length > 0 && pending.length > MAX_RANGES) return await this.#storeHalves(batch);
    try {
      if (messages.length > 0) await this.#storeRows(messages, { next: to, pending });
    } catch (error) {
      if (!isRefused(error)) throw error;
      const problems = await this.#writer.problems(messages);
      const [only] = messages;
      // What cannot be a row and yet can be read by itself does not go with others, or was let off meanwhile.
      if (problems.size === 0 && messages.length > 1) return await this.#storeHalves(batch);
      if (problems.size === 0 && only !== undefined) problems.set(only.offset, error.message);
      return await this.#storeBatch(withProblems(batch, ({ offset }) => problems.get(offset)));
    }
    if (letters.length > 0) await this.#storeLetters(letters, { next: to, pending: [] });
  }

  async #storeHalves({ messages, letters, to }: Batch): Promise<void> {
    // Of all that there is, so that both halves have some of it.
    const offsets = [...messages, ...letters].map(({ offset }) => offset).toSorted((a, b) => a - b);
    const middle = offsets[offsets.length >> 1] ?? to;
    const isBefore = ({ offset }: { offset: number }): boolean => offset < middle;
    const isAfter = (one: { offset: number }): boolean => !isBefore(one);
    await this.#storeBatch({ messages: messages.filter(isBefore), letters: letters.filter(isBefore), to: middle });
    await this.#storeBatch({ messages: messages.filter(isAfter), letters: letters.filter(isAfter), to });
  }

  async #storeRows(messages: readonly KafkaMessage[], position: KafkaPosition): Promise<void> {
    const rows = await this.#writer.rows(messages, this.#stepTo(position));
    this.#advance(position);
    this.counts.rows += rows;
    this.#ports.metrics.rows.inc({ topic: this.#mapping.topic }, rows);
  }

  /** Stores letters in as many commits as their size takes; after the last the position is `after`. */
  async #storeLetters(letters: readonly DeadLetter[], after: KafkaPosition): Promise<void> {
    const hasRows = this.#position.next === after.next;
    let lines: string[] = [];
    let sizeBytes = 0;
    for (const [i, letter] of letters.entries()) {
      const line = letterLine(this.#mapping.topic, this.#partition, letter);
      lines.push(line);
      sizeBytes += line.length;
      const isLast = i === letters.length - 1;
      if (!isLast && sizeBytes < LETTERS_BYTES) continue;
      // Where the rows are stored already, what is left is pending; else there is nothing between letters.
      const left = { next: after.next, pending: rangesFrom(this.#position.pending, letter.offset + 1) };
      const position = isLast ? after : hasRows ? left : { next: letter.offset + 1, pending: [] };
      await this.#writer.letters(lines, this.#stepTo(position));
      this.#advance(position);
      this.#countLetters(lines.length, letter);
      lines = [];
      sizeBytes = 0;
    }
  }

  #countLetters(count: number, { offset, reason }: DeadLetter): void {
    const { log, metrics } = this.#ports;
    this.counts.deadLetters += count;
    metrics.deadLetters.inc({ topic: this.#mapping.topic }, count);
    log.warn({ source: this.source, letters: count, offset, reason }, "messages of Kafka became dead letters");
  }

  /** Moves over messages without rows, now and then: a commit makes a snapshot. */
  async #moveOn(to: number): Promise<void> {
    const nowMs = this.#ports.clock.monotonicMs();
    if (nowMs < this.#movedAtMs + MOVE_EVERY_MS) return;
    this.#movedAtMs = nowMs;
    const position = { next: to, pending: [] };
    if (await this.#writer.nothing(this.#stepTo(position))) this.#advance(position);
  }

  #stepTo(position: KafkaPosition): SourceStep {
    const from = this.#stored === undefined ? {} : { from: this.#stored };
    return { name: this.source, ...from, to: formatPosition(position) };
  }

  #advance(position: KafkaPosition): void {
    this.#stored = formatPosition(position);
    this.#position = position;
    this.#movedAtMs = this.#ports.clock.monotonicMs();
    this.#onStored(position.next);
  }
}

function withoutObvious(batch: Batch): Batch {
  return batch.messages.some((message) => obviousProblem(message) !== undefined)
    ? withProblems(batch, obviousProblem)
    : batch;
}

/** The batch with those messages among its letters that have a problem. */
function withProblems(
  { messages, letters, to }: Batch,
  problemOf: (message: KafkaMessage) => string | undefined,
): Batch {
  const all = [...letters];
  const fine = messages.filter((message) => {
    const reason = problemOf(message);
    if (reason !== undefined) all.push({ offset: message.offset, message, reason });
    return reason === undefined;
  });
  return { messages: fine, letters: all.toSorted((a, b) => a.offset - b.offset), to };
}
