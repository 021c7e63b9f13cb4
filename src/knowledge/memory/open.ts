import type { FeatureDeps } from "../../feature/feature.ts";
import { valuesOf } from "../../config/option.ts";
import { Embedding } from "./embed/embedding.ts";
import { EMBED_OPTIONS } from "./embed/options.ts";
import { embedSetup } from "./embed/setup.ts";
import { MEMORY_METRICS } from "./metrics.ts";
import { RECALL_OPTIONS } from "./recall/options.ts";
import { RecallClient } from "./recall/recall-client.ts";
import { RecallService } from "./recall/service.ts";
import { RERANK_OPTIONS } from "./rerank/options.ts";
import { rerankSetup } from "./rerank/setup.ts";
import { MemoryService } from "./service.ts";
import { MemoryStore } from "./store.ts";
import { MemoryWriter } from "./writer.ts";

/** What embeds memories in one process. */
export function openEmbedding(
  deps: Pick<FeatureDeps, "config" | "records" | "clock" | "random" | "newId" | "log" | "metrics">,
): Embedding {
  const { config, records, newId } = deps;
  const options = valuesOf(EMBED_OPTIONS, config);
  return new Embedding({
    ...deps,
    setup: embedSetup(options, process.env),
    writesWait: !options.memoryAsync,
    store: new MemoryStore(records),
    metrics: MEMORY_METRICS.of(deps.metrics),
    holder: newId(),
  });
}

/** The memories, as one process reads and writes them. */
export function openMemory(
  deps: Pick<FeatureDeps, "catalog" | "records" | "clock" | "random" | "newId" | "metrics" | "audit">,
  embedding?: Pick<Embedding, "noteCommit" | "afterWrite">,
): MemoryService {
  const { records, newId } = deps;
  const metrics = MEMORY_METRICS.of(deps.metrics);
  const store = new MemoryStore(records);
  const onCommit = (databaseId: number): void => embedding?.noteCommit(databaseId);
  const writer = new MemoryWriter({ ...deps, metrics, store, holder: newId(), onCommit });
  return new MemoryService({ ...deps, metrics, store, writer, embedding });
}

/** What finds memories in one process. Its thread reads the catalog by itself. */
export function openRecall(
  deps: Pick<FeatureDeps, "config" | "catalog" | "records" | "clock" | "log" | "metrics">,
  embedding: Embedding,
): RecallService {
  const { config, records, log, clock } = deps;
  const { memoryPpr: ppr, memoryClassDecay: classDecay } = valuesOf(RECALL_OPTIONS, config);
  const source = { catalog: config.catalogUrl, acquireTimeoutMs: config.catalogAcquireTimeoutSecs * 1_000 };
  const rerank = rerankSetup(valuesOf(RERANK_OPTIONS, config));
  const client = new RecallClient({ source, options: { ppr, classDecay }, model: embedding.model, rerank, log, clock });
  return new RecallService({
    ...deps,
    metrics: MEMORY_METRICS.of(deps.metrics),
    store: new MemoryStore(records),
    client,
    embedding,
  });
}
