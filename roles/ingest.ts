import { INGEST_OPTIONS } from "../src/ingest/options.ts";
import { valuesOf } from "../src/config/option.ts";
import type { ByteBudget } from "../src/ingest/byte-budget.ts";
import { Committer } from "../src/ingest/committer.ts";
import type { IngestService } from "../src/ingest/ingest.ts";
import { createIngestBudget } from "../src/ingest/receiver.ts";
import type { SealPool } from "../src/ingest/seal-pool.ts";
import { createIngestService } from "../src/ingest/service.ts";
import { createStagedIngestService } from "../src/ingest/staged/service.ts";
import type { Parts } from "./parts.ts";
import type { Storage } from "./storage.ts";

/** What the role `ingest` is made of, whether it has requests in hand, and the bound that other inputs share. */
export function createIngest(
  parts: Parts,
  storage: Storage,
  sealPool: SealPool,
): { service: IngestService; isBusy: () => boolean; budget: ByteBudget } {
  const { log, metrics, clock, random, newId } = parts;
  const config = valuesOf(INGEST_OPTIONS, parts.config);
  const common = {
    ...storage,
    metrics,
    log,
    clock,
    random,
    newId,
    seal: sealPool.seal,
    sealThreads: config.sealThreads,
    format: config.writeFormat,
    keyPrefix: config.pathPrefix,
    inferTypes: config.ingestInferTypes,
    batching: {
      maxRows: config.flushMaxRows,
      maxBytes: config.flushMaxBytes,
      maxAgeMs: config.flushMaxAgeMs,
      disabled: config.stagingDisabled,
    },
    maxInflightBytes: config.ingestMaxInflightBytes,
    rate: { perSec: config.ingestRateRps, burst: config.ingestRateBurst },
  };
  const { commitWindowMs: windowMs, commitMaxExtents: maxExtents } = config;
  const budget = createIngestBudget(common);
  const options = { ...common, budget, committer: new Committer({ ...common, windowMs, maxExtents }) };
  const service =
    config.ingestMode === "staged"
      ? createStagedIngestService({ ...options, node: newId() })
      : createIngestService(options);
  return { ...counted(service), budget };
}

function counted(service: IngestService): { service: IngestService; isBusy: () => boolean } {
  let requests = 0;
  const ingest: IngestService["ingest"] = async (request) => {
    requests++;
    try {
      return await service.ingest(request);
    } finally {
      requests--;
    }
  };
  return { service: { ingest, drain: () => service.drain() }, isBusy: () => requests > 0 };
}
