import { Counter, Gauge, Histogram } from "prom-client";
import { LATENCY_SECONDS } from "../../core/metric-buckets.ts";
import { metricSet } from "../../core/metric-set.ts";
import { WatchedGauge } from "../../core/watched-gauge.ts";

/** Of this process. */
export const MEMORY_METRICS = metricSet((registers) => ({
  changes: new Counter({
    name: "engine_memory_changes_total",
    help: "Records of memories that were saved, imported, invalidated, restored or erased, by what came of it.",
    labelNames: ["outcome"],
    registers,
  }),
  commits: new Counter({
    name: "engine_memory_commits_total",
    help: "Commits of memories. Writes that come together share one.",
    registers,
  }),
  conflicts: new Counter({
    name: "engine_memory_commit_conflicts_total",
    help: "Commits of memories that were planned again, because another process committed first.",
    registers,
  }),
  commitDuration: new Histogram({
    name: "engine_memory_commit_duration_seconds",
    help: "From when a commit of memories was begun until it was durable.",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30],
    registers,
  }),
  waiting: new Gauge({
    name: "engine_memory_waiting_items",
    help: "Records of memories that wait to be written.",
    registers,
  }),
  recallDuration: new Histogram({
    name: "engine_memory_recall_duration_seconds",
    help: "How long a question to memory took, with its wait for the index.",
    buckets: LATENCY_SECONDS,
    registers,
  }),
  recallsWaiting: new WatchedGauge({
    name: "engine_memory_recalls_waiting",
    help: "Questions to memory that have no answer yet.",
    registers,
  }),
  indexBytes: new WatchedGauge({
    name: "engine_memory_index_bytes",
    help: "What the indexes of memories take, of all databases; missing where nobody has asked yet.",
    registers,
  }),
  embeddings: new Counter({
    name: "engine_memory_embeddings_total",
    help: "Texts of memories that were embedded: their vectors were stored, or the provider refused the text.",
    labelNames: ["outcome"],
    registers,
  }),
  embedFailures: new Counter({
    name: "engine_memory_embed_failures_total",
    help: "Requests to the embedding provider that gave no vectors.",
    registers,
  }),
  embedDuration: new Histogram({
    name: "engine_memory_embed_duration_seconds",
    help: "How long requests to the embedding provider took, for memories (document) and questions (query).",
    labelNames: ["kind"],
    buckets: LATENCY_SECONDS,
    registers,
  }),
  reranks: new Counter({
    name: "engine_memory_reranks_total",
    help:
      "Questions to memory for which the reranking model was to rate memories, by what came of it: reranked; busy (no " +
      "session was free in time), failed, and paused (it has failed lately) keep the order that they had.",
    labelNames: ["outcome"],
    registers,
  }),
}));

export type MemoryMetrics = ReturnType<typeof MEMORY_METRICS.of>;
