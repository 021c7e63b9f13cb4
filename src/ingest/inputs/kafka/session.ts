import type { Admin, Consumer, ConsumerGroupJoinEvent, EachBatchPayload, Kafka } from "kafkajs";
import { pause, type Clock } from "../../../core/clock.ts";
import { assignerOf } from "./assigner.ts";
import { fetchedOf, fetchedOffsetOf } from "./kafkajs.ts";
import { Lane, type LanePorts, type LaneReport, type Partition } from "./lane.ts";
import type { TopicMapping } from "./options.ts";

/**
 * One membership in the consumer group, from joining it until it breaks or ends.
 *
 * kafkajs sees to the group, heartbeats and fetches; each partition that it is given gets a lane. A partition is not
 * fetched until its lane has looked up its position, so nothing is read that the catalog has already.
 */
export type SessionOptions = {
  kafka: Kafka;
  group: string;
  topics: readonly TopicMapping[];
  lanePorts: LanePorts;
  clock: Clock;
};

const SESSION_TIMEOUT_MS = 30_000;
const HEARTBEAT_MS = 3_000;
const REBALANCE_TIMEOUT_MS = 60_000;
/** Also how long a partition waits at most until it is fetched again after a pause. */
const FETCH_WAIT_MS = 250;
const FETCH_BYTES = 16 * 1024 * 1024;
const FETCH_BYTES_PER_PARTITION = 4 * 1024 * 1024;
/** How often offsets are committed to Kafka, for tools that show the lag. */
const OFFSETS_EVERY_MS = 1_000;
/** How often it is looked for topics that were missing, and for new partitions. */
const TOPICS_EVERY_MS = 30_000;
const MISSING_TOPICS_EVERY_MS = 5_000;
/** Bounds of a topic are asked for once for all its partitions. */
const BOUNDS_LIVE_MS = 200;
const DISCONNECT_WITHIN_MS = 5_000;

type Bounds = Map<number, { low: number; high: number }>;

export class Session {
  readonly #options: SessionOptions;
  readonly #consumer: Consumer;
  readonly #admin: Admin;
  readonly #lanes = new Map<string, Lane>();
  readonly #stored = new Map<string, { topic: string; partition: number; next: number }>();
  readonly #bounds = new Map<string, { untilMs: number; asked: Promise<Bounds> }>();
  readonly #ended = Promise.withResolvers<void>();
  #hasJoined = false;
  #isOver = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    const { kafka, group } = options;
    this.#admin = kafka.admin();
    this.#consumer = kafka.consumer({
      groupId: group,
      partitionAssigners: [assignerOf((wanted) => this.#sizesOf(wanted))],
      sessionTimeout: SESSION_TIMEOUT_MS,
      heartbeatInterval: HEARTBEAT_MS,
      rebalanceTimeout: REBALANCE_TIMEOUT_MS,
      maxWaitTimeInMs: FETCH_WAIT_MS,
      maxBytes: FETCH_BYTES,
      maxBytesPerPartition: FETCH_BYTES_PER_PARTITION,
      allowAutoTopicCreation: false,
      // Whoever runs the session begins a new one.
      retry: { restartOnFailure: () => Promise.resolve(false) },
    });
    const { GROUP_JOIN, CRASH } = this.#consumer.events;
    this.#consumer.on(GROUP_JOIN, (event) => this.#assign(event));
    this.#consumer.on(CRASH, ({ payload }) => this.#ended.reject(payload.error));
  }

  /** What the lanes say; undefined before the group has given out its partitions. */
  get reports(): LaneReport[] | undefined {
    if (!this.#hasJoined) return undefined;
    return [...this.#lanes.values()].map((lane) => lane.report);
  }

  /**
   * Reads until the topics have changed or the signal is aborted; rejects when the connection breaks for good. `onMissing`
   * is told of topics that do not exist.
   */
  async run(signal: AbortSignal, onMissing: (topics: readonly string[]) => void): Promise<void> {
    this.#ended.promise.catch(() => undefined);
    const stop = (): void => this.#ended.resolve();
    signal.addEventListener("abort", stop, { once: true });
    try {
      await this.#admin.connect();
      const found = await this.#ownSizes();
      onMissing(this.#missingOf(found));
      if (found.size > 0) await this.#read(found, signal);
      else await pause(this.#options.clock, MISSING_TOPICS_EVERY_MS, signal);
    } finally {
      signal.removeEventListener("abort", stop);
      await this.#end();
    }
  }

  async #read(found: ReadonlyMap<string, number>, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    await this.#consumer.connect();
    await this.#consumer.subscribe({ topics: [...found.keys()], fromBeginning: true });
    const everyMs = this.#missingOf(found).length > 0 ? MISSING_TOPICS_EVERY_MS : TOPICS_EVERY_MS;
    const offsets = clock.every(OFFSETS_EVERY_MS, () => void this.#commitOffsets());
    const topics = clock.every(everyMs, () => void this.#lookAtTopics(found));
    try {
      await this.#consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        eachBatch: (payload) => this.#take(payload),
      });
      if (!signal.aborted) await this.#ended.promise;
    } finally {
      offsets.cancel();
      topics.cancel();
    }
  }

  // Runs at once when kafkajs has its partitions, before it fetches any.
  #assign({ payload }: ConsumerGroupJoinEvent): void {
    if (this.#isOver) return;
    this.#hasJoined = true;
    this.#options.lanePorts.metrics.rebalances.inc();
    const before = new Map(this.#lanes);
    for (const lane of before.values()) lane.close();
    this.#lanes.clear();
    for (const [topic, partitions] of Object.entries(payload.memberAssignment)) {
      const mapping = this.#options.topics.find((one) => one.topic === topic);
      if (mapping === undefined) continue;
      this.#consumer.pause([{ topic, partitions }]);
      for (const partition of partitions) {
        const key = `${topic} ${partition}`;
        const last = before.get(key)?.done ?? Promise.resolve();
        this.#lanes.set(key, new Lane(this.#options.lanePorts, this.#partition(mapping, partition), last));
      }
    }
  }

  #partition(mapping: TopicMapping, partition: number): Partition {
    const { topic } = mapping;
    const place = [{ topic, partitions: [partition] }];
    return {
      mapping,
      partition,
      bounds: () => this.#boundsOf(topic, partition),
      seek: (offset) => this.#consumer.seek({ topic, partition, offset: String(offset) }),
      pause: () => this.#consumer.pause(place),
      resume: () => this.#consumer.resume(place),
      onStored: (next) => void this.#stored.set(`${topic} ${partition}`, { topic, partition, next }),
    };
  }

  // What is not accepted is not resolved, and so fetched again.
  async #take(payload: EachBatchPayload): Promise<void> {
    const { batch } = payload;
    const lane = this.#lanes.get(`${batch.topic} ${batch.partition}`);
    const { batches, problem } = fetchedOf(batch);
    // The others go on; this one is asked for again after a while, and says why it stands still.
    if (batches.length === 0 && problem !== undefined) return lane?.refuse(problem);
    const isAccepted = lane?.accept(fetchedOffsetOf(batch), Number(batch.highWatermark), batches);
    const last = batches.at(-1)?.lastOffset.toString() ?? batch.lastOffset();
    if (isAccepted === true) payload.resolveOffset(last);
  }

  async #boundsOf(topic: string, partition: number): Promise<{ low: number; high: number }> {
    const nowMs = this.#options.clock.monotonicMs();
    const known = this.#bounds.get(topic);
    const asked = known !== undefined && nowMs < known.untilMs ? known.asked : this.#askBounds(topic);
    if (asked !== known?.asked) this.#bounds.set(topic, { untilMs: nowMs + BOUNDS_LIVE_MS, asked });
    const found = (await asked).get(partition);
    if (found === undefined) throw new Error(`the broker did not tell where partition ${partition} of ${topic} ends`);
    return found;
  }

  async #askBounds(topic: string): Promise<Bounds> {
    const offsets = await this.#admin.fetchTopicOffsets(topic);
    return new Map(offsets.map(({ partition, low, high }) => [partition, { low: Number(low), high: Number(high) }]));
  }

  #ownSizes(): Promise<Map<string, number>> {
    return this.#sizesOf(this.#options.topics.map(({ topic }) => topic));
  }

  /** Those of the topics that exist, with their numbers of partitions. */
  async #sizesOf(wanted: readonly string[]): Promise<Map<string, number>> {
    const listed = new Set(await this.#admin.listTopics());
    const existing = wanted.filter((topic) => listed.has(topic));
    if (existing.length === 0) return new Map();
    const { topics } = await this.#admin.fetchTopicMetadata({ topics: existing });
    return new Map(topics.map(({ name, partitions }) => [name, partitions.length]));
  }

  #missingOf(found: ReadonlyMap<string, number>): string[] {
    return this.#options.topics.map(({ topic }) => topic).filter((topic) => !found.has(topic));
  }

  /** Ends the session when topics came or got partitions. */
  async #lookAtTopics(found: ReadonlyMap<string, number>): Promise<void> {
    try {
      const now = await this.#ownSizes();
      if ([...now].some(([topic, size]) => found.get(topic) !== size)) this.#ended.resolve();
    } catch {
      // Brokers that are away are noticed by whoever fetches from them.
    }
  }

  /** Only tools read these: the catalog knows where to go on. */
  async #commitOffsets(): Promise<void> {
    const stored = [...this.#stored.values()];
    this.#stored.clear();
    if (stored.length === 0) return;
    const offsets = stored.map(({ topic, partition, next }) => ({ topic, partition, offset: String(next) }));
    await this.#consumer.commitOffsets(offsets).catch((error: unknown) => {
      this.#options.lanePorts.log.debug({ err: error }, "could not tell Kafka what was stored");
    });
  }

  async #end(): Promise<void> {
    this.#isOver = true;
    const lanes = [...this.#lanes.values()];
    for (const lane of lanes) lane.drain();
    await Promise.all(lanes.map(({ done }) => done));
    const { clock } = this.#options;
    const late = new AbortController();
    const leave = this.#commitOffsets()
      .then(() => Promise.allSettled([this.#consumer.disconnect(), this.#admin.disconnect()]))
      .then(() => late.abort());
    // A broker that is away does not say goodbye.
    await Promise.race([leave, pause(clock, DISCONNECT_WITHIN_MS, late.signal)]);
    late.abort();
  }
}
