import { Counter, Gauge } from "prom-client";
import { metricSet } from "../../../core/metric-set.ts";

/** The input from Kafka, of this process. */
export const KAFKA_METRICS = metricSet((registers) => {
  const labelNames = ["topic"] as const;
  return {
    partitions: new Gauge({
      name: "engine_kafka_partitions",
      help:
        "Partitions that this process reads, by state: `placing` (looks up where to begin), `running`, `backing_off` " +
        "(something is away; it tries again), `stalled` (only `engine ingest positions --reset` helps).",
      labelNames: ["state"],
      registers,
    }),
    lag: new Gauge({
      name: "engine_kafka_lag_messages",
      help: "Offsets between the end of a partition, as the last fetch told it, and the position in the catalog.",
      labelNames: ["topic", "partition"],
      registers,
    }),
    position: new Gauge({
      name: "engine_kafka_position",
      help: "Offset of the next message of a partition to be stored, as this process committed it last.",
      labelNames: ["topic", "partition"],
      registers,
    }),
    rows: new Counter({ name: "engine_kafka_rows_total", help: "Rows committed.", labelNames, registers }),
    deadLetters: new Counter({
      name: "engine_kafka_dead_letters_total",
      help: "Messages that could not be rows and went to `kafka_dead_letters`.",
      labelNames,
      registers,
    }),
    tombstones: new Counter({
      name: "engine_kafka_tombstones_total",
      help: "Messages without a value, which are passed over.",
      labelNames,
      registers,
    }),
    missing: new Counter({
      name: "engine_kafka_missing_messages_total",
      help: "Offsets that the broker had deleted before they were read.",
      labelNames,
      registers,
    }),
    fenced: new Counter({
      name: "engine_kafka_fenced_total",
      help: "Batches that were not stored because the partition's position had moved: somebody else reads it.",
      labelNames,
      registers,
    }),
    failures: new Counter({
      name: "engine_kafka_failures_total",
      help: "Batches that failed for another reason and are read again.",
      labelNames,
      registers,
    }),
    rebalances: new Counter({
      name: "engine_kafka_rebalances_total",
      help: "Times that this process joined its group and was given partitions.",
      registers,
    }),
    sessionFailures: new Counter({
      name: "engine_kafka_session_failures_total",
      help: "Times that the connection to the brokers was given up and begun anew.",
      registers,
    }),
  };
});

export type KafkaMetrics = ReturnType<(typeof KAFKA_METRICS)["of"]>;
