import type { FeatureDeps } from "../../feature/feature.ts";
import { valuesOf } from "../../config/option.ts";
import { MEMORY_METRICS } from "./metrics.ts";
import { RECALL_OPTIONS } from "./recall/options.ts";
import { RecallClient } from "./recall/recall-client.ts";
import { RecallService } from "./recall/service.ts";
import { MemoryService } from "./service.ts";
import { MemoryStore } from "./store.ts";
import { MemoryWriter } from "./writer.ts";

/** The memories, as one process reads and writes them. */
export function openMemory(
  deps: Pick<FeatureDeps, "catalog" | "records" | "clock" | "random" | "newId" | "metrics" | "audit">,
): MemoryService {
  const { records, newId } = deps;
  const metrics = MEMORY_METRICS.of(deps.metrics);
  const store = new MemoryStore(records);
  const writer = new MemoryWriter({ ...deps, metrics, store, holder: newId() });
  return new MemoryService({ ...deps, metrics, store, writer });
}

/** What finds memories in one process. Its thread reads the catalog by itself. */
export function openRecall(
  deps: Pick<FeatureDeps, "config" | "catalog" | "records" | "clock" | "log" | "metrics">,
): RecallService {
  const { config, records, log } = deps;
  const { memoryPpr: ppr, memoryClassDecay: classDecay } = valuesOf(RECALL_OPTIONS, config);
  const source = { catalog: config.catalogUrl, acquireTimeoutMs: config.catalogAcquireTimeoutSecs * 1_000 };
  const client = new RecallClient({ source, options: { ppr, classDecay }, log });
  return new RecallService({
    ...deps,
    metrics: MEMORY_METRICS.of(deps.metrics),
    store: new MemoryStore(records),
    client,
  });
}
