import { PositionMoved } from "../../../catalog/refusals.ts";
import { Backoff } from "../../../core/backoff.ts";
import { pause } from "../../../core/clock.ts";
import { EngineError, messageOf } from "../../../core/errors.ts";
import type { Random } from "../../../core/random.ts";
import { BatchQueue } from "./batch-queue.ts";
import type { FetchMemory, Holder } from "./memory.ts";
import type { TopicMapping } from "./options.ts";
import { PartitionStore, type StoredCounts, type StorePorts } from "./partition-store.ts";
import type { RecordBatch } from "./record-batch.ts";
import { MAX_BODY_BYTES } from "./table-writer.ts";

/**
 * One partition that this process was given, for as long as it has it.
 *
 *     place    where the catalog says that the partition is, within what the topic still has; there it is sought
 *     gather   messages come in as they are fetched, until a batch is full or its first message has waited long enough
 *     store    the batch is committed with the step of the position (`partition-store.ts`)
 *
 * Whatever fails, what was gathered is dropped, and after a pause the partition is placed anew: the catalog knows what
 * took effect. A partition that somebody else has by now stops there, for its steps do not fit any more.
 */
export type LanePorts = StorePorts & {
  random: Random;
  limits: { maxMessages: number; maxAgeMs: number };
  /** Shared by all partitions. */
  memory: FetchMemory;
};

/** What the lane needs of the consumer. */
export type Partition = {
  mapping: TopicMapping;
  partition: number;
  /** The first offset that the topic has, and the one after its last. */
  bounds(): Promise<{ low: number; high: number }>;
  /** Has batches fetched from there on; those that were fetched before and come later are not accepted. */
  seek(offset: number): void;
  pause(): void;
  resume(): void;
  /** Is told what was committed, for tools that show it. */
  onStored(next: number): void;
};

export const LANE_STATES = ["placing", "running", "backing_off", "stalled"] as const;
export type LaneState = (typeof LANE_STATES)[number];

/** What a lane says of itself. */
export type LaneReport = StoredCounts & {
  source: string;
  mapping: TopicMapping;
  partition: number;
  state: LaneState;
  next: number;
  /** The offset after the last one of the topic, as a fetch told it last. */
  logEnd: number | undefined;
  /** Why it does not run. */
  reason: string | undefined;
};

const BACKOFF = { firstMs: 200, mostMs: 30_000 } as const;
/** A lane that holds more, as it was fetched, is not fetched for. */
const QUEUE_BYTES = 8 * 1024 * 1024;
/** How long a topic must seem shorter than what was read of it: a broker that has just started knows less for a while. */
const SHORT_FOR_MS = 10_000;
const SHORT_POLL_MS = 500;
/** How often a lane that only an operator can help looks whether that was done. */
const STALLED_POLL_MS = 1_000;
const LOG_EVERY_MS = 60_000;

/** The partition must be placed anew, and nothing is wrong. */
class PlaceAgain extends Error {}

export class Lane {
  /** Resolves when nothing of it runs any more. */
  readonly done: Promise<void>;
  readonly #ports: LanePorts;
  readonly #partition: Partition;
  readonly #store: PartitionStore;
  readonly #queue: BatchQueue;
  readonly #holder: Holder = { balance: () => this.#balance() };
  readonly #stop = new AbortController();
  readonly #backoff: Backoff;
  #state: LaneState = "placing";
  #reason: string | undefined;
  #loggedAtMs = -Infinity;
  /** What was taken from the queue ends there. */
  #readTo = 0;
  /** The offset that is to be fetched next. */
  #tail = 0;
  #logEnd: number | undefined;
  /** When the first message of the queue came. */
  #oldestMs: number | undefined;
  /** Whether it is fetched for. A partition that was just given is not. */
  #isFetched = false;
  #isDraining = false;
  #refusal: string | undefined;
  #wake: (() => void) | undefined;

  /** `after` ends with the lane that had the partition before, in this process. */
  constructor(ports: LanePorts, partition: Partition, after: Promise<void>) {
    this.#ports = ports;
    this.#partition = partition;
    this.#store = new PartitionStore(ports, partition, (next) => partition.onStored(next));
    this.#queue = new BatchQueue(ports.memory);
    ports.memory.join(this.#holder);
    this.#backoff = new Backoff({ random: ports.random, ...BACKOFF });
    this.done = after.then(() => this.#run());
  }

  get report(): LaneReport {
    const { mapping, partition } = this.#partition;
    const { source, counts, position } = this.#store;
    const own = { source, mapping, partition, state: this.#state, next: position.next };
    return { ...own, ...counts, logEnd: this.#logEnd, reason: this.#reason };
  }

  /** Takes what was fetched from an offset on. False where it is not what comes next: then it is fetched again. */
  accept(fetchedOffset: number, highWatermark: number, batches: readonly RecordBatch[]): boolean {
    if (this.#state !== "running" || this.#isDraining || this.#stop.signal.aborted) return false;
    if (fetchedOffset !== this.#tail) {
      // The broker does not have what was asked for, and the consumer has begun elsewhere.
      this.#become("placing");
      return false;
    }
    this.#logEnd = highWatermark;
    for (const batch of batches) this.#queue.push(batch);
    this.#tail = Math.max(this.#tail, (batches.at(-1)?.lastOffset ?? -1) + 1);
    this.#oldestMs ??= this.#ports.clock.monotonicMs();
    this.#balance();
    this.#wake?.();
    return true;
  }

  /** What comes next cannot be told apart: the partition is placed anew after a while. */
  refuse(problem: string): void {
    this.#refusal = problem;
    this.#balance();
    this.#wake?.();
  }

  /** Stops; a commit that is under way ends first. */
  close(): void {
    this.#stop.abort();
    this.#wake?.();
  }

  /** Stores what it has gathered, if all is well, and stops. */
  drain(): void {
    this.#isDraining = true;
    if (this.#state === "running") this.#wake?.();
    else this.close();
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted && !this.#isDraining) {
      try {
        await this.#place();
        await this.#consume();
      } catch (error) {
        await this.#recover(error);
      }
    }
    this.#queue.clear();
    this.#ports.memory.leave(this.#holder);
  }

  async #recover(error: unknown): Promise<void> {
    this.#queue.clear();
    const { metrics, clock, log } = this.#ports;
    const { topic } = this.#partition.mapping;
    // Also of a lane that is closed: it was somebody else's turn, and this one had something to store.
    if (error instanceof PositionMoved) metrics.fenced.inc({ topic });
    if (error instanceof PlaceAgain || this.#stop.signal.aborted) return;
    this.#become("backing_off", messageOf(error));
    if (error instanceof PositionMoved) {
      log.info(
        { source: this.#store.source, position: error.position },
        "a partition's position was moved by somebody else",
      );
    } else {
      metrics.failures.inc({ topic });
      if (!isBusy(error)) this.#logOften({ err: error }, "could not store messages of Kafka; they are read again");
    }
    if (!this.#isDraining) await pause(clock, this.#backoff.next(), this.#stop.signal);
  }

  /** Looks up where to begin, and has it fetched from there on. */
  async #place(): Promise<void> {
    this.#become("placing");
    this.#queue.clear();
    this.#oldestMs = undefined;
    this.#refusal = undefined;
    const { low, high } = await this.#partition.bounds();
    this.#logEnd = high;
    if (!(await this.#store.load(low))) return await this.#stall("its position in the catalog is none of a partition");
    const { next } = this.#store.position;
    if (next > high && (await this.#staysShort(next))) {
      const lack = `its position is ${next} and the topic ends at ${high}, so it was probably made anew`;
      const help = `\`engine ingest positions --reset ${this.#store.source}\` has it read from its beginning`;
      return await this.#stall(`${lack}; ${help}`);
    }
    await this.#store.settle({ messages: [], unreadable: [], to: low });
    if (next < low && !this.#store.isNew) await this.#store.skipTo(low);
    const { position } = this.#store;
    this.#readTo = position.pending[0]?.first ?? position.next;
    this.#tail = this.#readTo;
    this.#partition.seek(this.#tail);
    this.#become("running");
  }

  /** Whether the topic keeps ending before the offset. */
  async #staysShort(next: number): Promise<boolean> {
    const { clock } = this.#ports;
    const untilMs = clock.monotonicMs() + SHORT_FOR_MS;
    while (clock.monotonicMs() < untilMs) {
      await pause(clock, SHORT_POLL_MS, this.#stop.signal);
      if (this.#stop.signal.aborted) throw new PlaceAgain();
      if ((await this.#partition.bounds()).high >= next) return false;
    }
    return true;
  }

  /** Waits until somebody has changed the position. */
  async #stall(reason: string): Promise<never> {
    this.#become("stalled", reason);
    while (!this.#stop.signal.aborted) {
      this.#logOften({}, `a partition of Kafka is not read: ${reason}`);
      await pause(this.#ports.clock, STALLED_POLL_MS, this.#stop.signal);
      if (await this.#store.hasMoved()) break;
    }
    throw new PlaceAgain();
  }

  async #consume(): Promise<void> {
    const { clock, limits } = this.#ports;
    while (await this.#gathered()) {
      const limit = { maxMessages: limits.maxMessages, maxBytes: MAX_BODY_BYTES };
      const gathered = await this.#queue.take(this.#readTo, limit);
      this.#oldestMs = this.#queue.isEmpty ? undefined : clock.monotonicMs();
      this.#readTo = gathered.to;
      this.#balance();
      await this.#store.store(gathered);
      this.#queue.release();
      this.#backoff.reset();
    }
  }

  /** Waits for a batch. False when none is to come; rejects when the partition must be placed anew. */
  async #gathered(): Promise<boolean> {
    const { clock, limits } = this.#ports;
    for (;;) {
      if (this.#stop.signal.aborted) return false;
      if (this.#state !== "running") throw new PlaceAgain();
      if (this.#refusal !== undefined && this.#queue.isEmpty) throw new Error(this.#refusal);
      if (this.#isDraining) return !this.#queue.isEmpty;
      const leftMs = this.#oldestMs === undefined ? undefined : this.#oldestMs + limits.maxAgeMs - clock.monotonicMs();
      const isFull = this.#queue.messages >= limits.maxMessages || this.#queue.sizeBytes >= MAX_BODY_BYTES;
      if (!this.#queue.isEmpty && (isFull || (leftMs ?? 0) <= 0)) return true;
      await this.#woken(leftMs);
    }
  }

  async #woken(withinMs: number | undefined): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = withinMs === undefined ? undefined : this.#ports.clock.after(Math.max(1, withinMs), resolve);
    await promise;
    timer?.cancel();
    this.#wake = undefined;
  }

  #become(state: LaneState, reason?: string): void {
    this.#state = state;
    this.#reason = reason;
    this.#balance();
    this.#wake?.();
  }

  /** Fetches while it runs and holds not too much, nor all partitions together. */
  #balance(): void {
    const isRunning = this.#state === "running" && this.#refusal === undefined && !this.#stop.signal.aborted;
    const isWanted = this.#ports.memory.mayFetch(this.#holder, isRunning && this.#queue.sizeBytes < QUEUE_BYTES);
    if (isWanted === this.#isFetched || this.#stop.signal.aborted) return;
    this.#isFetched = isWanted;
    if (isWanted) this.#partition.resume();
    else this.#partition.pause();
  }

  #logOften(fields: object, text: string): void {
    const { clock, log } = this.#ports;
    if (clock.monotonicMs() < this.#loggedAtMs + LOG_EVERY_MS) return;
    this.#loggedAtMs = clock.monotonicMs();
    log.error({ source: this.#store.source, ...fields }, text);
  }
}

/** Whether ingest is at one of its bounds, which is no failure. */
function isBusy(error: unknown): boolean {
  return error instanceof EngineError && error.code === "too_many_requests";
}
