import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";

/** The metrics of one process, made once by the role and passed down. Names and labels are part of the contract. */
export type Metrics = ReturnType<typeof createMetrics>;

const LATENCY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

export function createMetrics(options: { process: boolean } = { process: false }) {
  const registry = new Registry();
  if (options.process) collectDefaultMetrics({ register: registry, prefix: "engine_" });
  const registers = [registry];
  return {
    registry,
    httpDuration: new Histogram({
      name: "engine_http_request_duration_seconds",
      help: "Time from the request's headers to the end of the response.",
      labelNames: ["method", "route", "status"],
      buckets: LATENCY_SECONDS,
      registers,
    }),
    ingestRows: new Counter({
      name: "engine_ingest_rows_total",
      help: "Rows committed.",
      labelNames: ["database"],
      registers,
    }),
    ingestBytes: new Counter({
      name: "engine_ingest_bytes_total",
      help: "Decoded NDJSON bytes of committed requests.",
      labelNames: ["database"],
      registers,
    }),
    ingestRequests: new Counter({
      name: "engine_ingest_requests_total",
      help: "Ingest requests by outcome: `committed`, `replayed`, or an error code.",
      labelNames: ["outcome"],
      registers,
    }),
    ingestRefused: new Counter({
      name: "engine_ingest_refused_total",
      help: "Ingest requests turned away with 429 by an admission limit: `rate`, `bytes` in flight, `database_bytes` in flight.",
      labelNames: ["reason"],
      registers,
    }),
    ingestQueuedBytes: new Gauge({
      name: "engine_ingest_queued_bytes",
      help: "Bytes of bodies accepted and not yet acknowledged.",
      registers,
    }),
    ingestQueuedRequests: new Gauge({
      name: "engine_ingest_queued_requests",
      help: "Requests accepted and not yet acknowledged.",
      registers,
    }),
    sealDuration: new Histogram({
      name: "engine_ingest_seal_duration_seconds",
      help: "Time to scan and seal one flush into an extent, waiting for a thread included.",
      buckets: LATENCY_SECONDS,
      registers,
    }),
    commitDuration: new Histogram({
      name: "engine_catalog_commit_duration_seconds",
      help: "Time of one catalog commit.",
      buckets: LATENCY_SECONDS,
      registers,
    }),
    commitConflicts: new Counter({
      name: "engine_catalog_commit_conflicts_total",
      help: "Flushes that a commit sent back, by reason (`schema`, `idempotency`).",
      labelNames: ["reason"],
      registers,
    }),
    extentsCommitted: new Counter({
      name: "engine_extents_committed_total",
      help: "Extents committed.",
      registers,
    }),
    queryDuration: new Histogram({
      name: "engine_query_duration_seconds",
      help: "Time of one query by outcome: `ok` or an error code.",
      labelNames: ["outcome"],
      buckets: LATENCY_SECONDS,
      registers,
    }),
    queryRefused: new Counter({
      name: "engine_query_refused_total",
      help: "Queries turned away with 429 by an admission limit: `concurrent`, `tenant`, `memory`, `large`.",
      labelNames: ["reason"],
      registers,
    }),
    queryBudgetKills: new Counter({
      name: "engine_query_budget_kills_total",
      help: "Queries ended by a budget, by budget.",
      labelNames: ["budget"],
      registers,
    }),
    /** The depth of the sealing queue, asked for when metrics are read. */
    watchSealQueue(depth: () => number): void {
      const gauge: Gauge = new Gauge({
        name: "engine_seal_queue_depth",
        help: "Flushes that wait for a sealing thread.",
        registers,
        collect: (): void => gauge.set(depth()),
      });
    },
    ...queryCacheMetrics(registers),
    queriesRunning: new Gauge({ name: "engine_queries_running", help: "Queries running now.", registers }),
  };
}

/** The local cache of extents. */
function queryCacheMetrics(registers: Registry[]) {
  return {
    queryCacheHits: new Counter({
      name: "engine_query_cache_hits_total",
      help: "Extents that queries found in the local cache, or that another query was fetching.",
      registers,
    }),
    queryCacheMisses: new Counter({
      name: "engine_query_cache_misses_total",
      help: "Extents that were fetched from the object store for a query, whole or in part.",
      registers,
    }),
    queryCacheFetchedBytes: new Counter({
      name: "engine_query_cache_fetched_bytes_total",
      help: "Bytes that queries requested from the object store.",
      registers,
    }),
    queryCacheEvictions: new Counter({
      name: "engine_query_cache_evictions_total",
      help: "Files evicted from the local cache of extents.",
      registers,
    }),
    queryCacheBytes: new Gauge({
      name: "engine_query_cache_bytes",
      help: "Bytes on disk of the local cache of extents.",
      registers,
    }),
  };
}
