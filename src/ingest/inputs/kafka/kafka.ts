import { hostname } from "node:os";
import { Backoff } from "../../../core/backoff.ts";
import { pause } from "../../../core/clock.ts";
import type { Service } from "../../../core/lifecycle.ts";
import type { RecordStore } from "../../../db/records.ts";
import { openKafka, problemOf, topicsOf, type KafkaConfig } from "./client.ts";
import { LANE_STATES, type LanePorts, type LaneReport } from "./lane.ts";
import { FetchMemory } from "./memory.ts";
import { Session } from "./session.ts";
import { States } from "./states.ts";

/**
 * Topics of Kafka as an input.
 *
 *     kafkajs.ts           group, heartbeats, fetches: what kafkajs does, and what it is kept from doing
 *     session.ts           one membership in the group; a lane for each partition that it is given
 *     assigner.ts          which member of the group reads which partition
 *     lane.ts              one partition: place, gather, store; back off when something is away
 *     memory.ts            what all partitions may hold together
 *     partition-store.ts   a batch into its table, what cannot be a row into `kafka_dead_letters`
 *     record-batch.ts      batches and messages as bytes, of old formats in `message-set.ts`; `decompress.ts` and codecs
 *
 * Every message is stored exactly once: its row is committed with the partition's position, and only from where the
 * reader believes that to be (`catalog/input-positions.ts`). Offsets in Kafka are for tools only.
 */
export type KafkaPorts = Omit<LanePorts, "limits" | "memory" | "records"> & {
  config: KafkaConfig;
  records: Pick<RecordStore, "rows" | "transact">;
};

const BACKOFF = { firstMs: 250, mostMs: 10_000 } as const;
const LOG_EVERY_MS = 60_000;
const STATES_EVERY_MS = 2_000;

/**
 * Reads topics from `run` until `drain`.
 * @throws StartupError (exit code 2) where options that belong together do not.
 */
export function createKafkaInput(ports: KafkaPorts): Service {
  return new KafkaInput(ports);
}

class KafkaInput implements Service {
  readonly name = "kafka";
  readonly #ports: KafkaPorts;
  readonly #topics: ReturnType<typeof topicsOf>;
  readonly #states: States;
  readonly #memory = new FetchMemory();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #session: Session | undefined;
  /** What the lanes said last: a session that cannot begin has none. */
  #reports: readonly LaneReport[] = [];
  /** Why the brokers cannot be read. */
  #outage: string | undefined;
  #loggedAtMs = -Infinity;
  #missing = "";

  constructor(ports: KafkaPorts) {
    this.#ports = ports;
    this.#topics = topicsOf(ports.config);
    this.#states = new States(ports.records, hostname(), this.#topics);
  }

  run(): Promise<void> {
    const { config, log } = this.#ports;
    if (config.kafkaSaslMechanism === "plain" && !config.kafkaTls) {
      log.warn("ENGINE_KAFKA_SASL_MECHANISM is plain without ENGINE_KAFKA_TLS: the password is sent as it is");
    }
    log.info({ topics: this.#topics.map(({ topic }) => topic), group: config.kafkaGroup }, "reading topics of Kafka");
    this.#running = this.#supervise();
    return Promise.resolve();
  }

  /** Stores what was gathered, and leaves the group. */
  async drain(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #supervise(): Promise<void> {
    const { clock, random } = this.#ports;
    const backoff = new Backoff({ random, ...BACKOFF });
    const told = clock.every(STATES_EVERY_MS, () => void this.#tell());
    while (!this.#stop.signal.aborted) {
      const startedMs = clock.monotonicMs();
      try {
        await this.#runSession();
        this.#outage = undefined;
        backoff.reset();
      } catch (error) {
        this.#failed(error);
        if (clock.monotonicMs() > startedMs + LOG_EVERY_MS) backoff.reset();
        await pause(clock, backoff.next(), this.#stop.signal);
      }
    }
    told.cancel();
    await this.#tell();
  }

  async #runSession(): Promise<void> {
    const { config, log, clock, ...rest } = this.#ports;
    const limits = { maxMessages: config.kafkaBatchSize, maxAgeMs: config.kafkaBatchTimeoutMs };
    const lanePorts = { ...rest, log, clock, limits, memory: this.#memory };
    const kafka = openKafka(config, log);
    this.#session = new Session({ kafka, group: config.kafkaGroup, topics: this.#topics, lanePorts, clock });
    await this.#session.run(this.#stop.signal, (missing) => this.#tellMissing(missing));
  }

  #failed(error: unknown): void {
    const { clock, log, metrics } = this.#ports;
    metrics.sessionFailures.inc();
    const reason = problemOf(error);
    const last = this.#session?.reports ?? this.#reports;
    this.#session = undefined;
    this.#reports = last.map((report) => Object.assign(report, { state: "backing_off" as const, reason }));
    this.#outage = reason;
    if (clock.monotonicMs() < this.#loggedAtMs + LOG_EVERY_MS) return;
    this.#loggedAtMs = clock.monotonicMs();
    log.error({ err: error, reason }, "Kafka cannot be read now; trying again");
  }

  #tellMissing(topics: readonly string[]): void {
    const missing = topics.join(", ");
    if (missing !== "" && missing !== this.#missing) this.#ports.log.warn({ topics }, "Kafka has no such topics yet");
    this.#missing = missing;
  }

  /** Metrics, and what `system.kafka` shows. */
  async #tell(): Promise<void> {
    const reports = this.#session?.reports;
    if (reports !== undefined) {
      this.#reports = reports;
      this.#outage = undefined;
    }
    setGauges(this.#ports.metrics, this.#reports);
    try {
      await this.#states.write(this.#reports, this.#outage);
    } catch (error) {
      this.#ports.log.debug({ err: error }, "could not write the states of partitions");
    }
  }
}

function setGauges(metrics: KafkaPorts["metrics"], reports: readonly LaneReport[]): void {
  metrics.lag.reset();
  metrics.position.reset();
  for (const state of LANE_STATES) {
    metrics.partitions.set({ state }, reports.filter((report) => report.state === state).length);
  }
  for (const { mapping, partition, next, logEnd } of reports) {
    const labels = { topic: mapping.topic, partition };
    metrics.position.set(labels, next);
    if (logEnd !== undefined) metrics.lag.set(labels, Math.max(0, logEnd - next));
  }
}
