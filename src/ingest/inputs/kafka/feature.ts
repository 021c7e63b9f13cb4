import type { FeatureParts } from "../../../feature/feature.ts";

/** Topics of Kafka in: see `kafka.ts`. Processes with the role `ingest` run it (`roles/inputs.ts`). */
export const KAFKA: FeatureParts = {
  name: "kafka",
  title: "Kafka",
  options: async () => (await import("./options.ts")).KAFKA_OPTIONS,
  metrics: async () => (await import("./metrics.ts")).KAFKA_METRICS,
  systemTables: async () => [(await import("./system-table.ts")).KAFKA_TABLE],
};
