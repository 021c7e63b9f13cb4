import { INGEST_OPTIONS } from "../src/ingest/options.ts";
import { valuesOf } from "../src/config/option.ts";
import { rolesOf } from "../src/config/kinds.ts";
import type { Service } from "../src/core/lifecycle.ts";
import type { IngestService } from "../src/ingest/ingest.ts";
import { KAFKA_METRICS } from "../src/ingest/inputs/kafka/metrics.ts";
import { KAFKA_OPTIONS } from "../src/ingest/inputs/kafka/options.ts";
import type { SealPool } from "../src/ingest/seal-pool.ts";
import type { Parts } from "./parts.ts";
import type { Storage } from "./storage.ts";

/** What brings rows in without a request: inputs that a process with the role `ingest` reads by itself. */
export async function inputServices(
  parts: Parts,
  storage: Storage,
  { ingest, sealPool }: { ingest: IngestService; sealPool: SealPool },
): Promise<Service[]> {
  const { config, log, metrics, clock, random } = parts;
  const roles = rolesOf(config.roles);
  // An edge without peers answers requests itself, and yet is no ingest node.
  if (!roles.has("all_in_one") && !roles.has("ingest")) return [];
  const kafka = valuesOf(KAFKA_OPTIONS, config);
  if (!kafka.kafkaEnabled) return [];
  const { createKafkaInput } = await import("../src/ingest/inputs/kafka/kafka.ts");
  return [
    createKafkaInput({
      config: kafka,
      catalog: storage.catalog,
      records: storage.records,
      ingest,
      seal: sealPool.seal,
      inferTypes: valuesOf(INGEST_OPTIONS, config).ingestInferTypes,
      metrics: KAFKA_METRICS.of(metrics),
      log,
      clock,
      random,
    }),
  ];
}
