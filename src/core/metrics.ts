import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";
import { catalogMetrics } from "./catalog-metrics.ts";
import { LATENCY_SECONDS } from "./metric-buckets.ts";
import {
  backgroundMetrics,
  BoundedLabel,
  nodeMetrics,
  objectStoreEffortMetrics,
  writePathMetrics,
} from "./node-metrics.ts";
import { queryMetrics } from "./query-metrics.ts";
import { WatchedGauge } from "./watched-gauge.ts";

/**
 * The metrics of one process, made once by the role and passed down; features add theirs by `metricSet`.
 * Names and labels are part of the contract.
 */
export type Metrics = ReturnType<typeof createMetrics>;

/** Databases that have a label of their own. */
const MOST_DATABASES = 200;

export function createMetrics(options: { process: boolean } = { process: false }) {
  const registry = new Registry();
  if (options.process) collectDefaultMetrics({ register: registry, prefix: "engine_" });
  const registers = [registry];
  return {
    registry,
    /** The label `database`. */
    databaseLabel: new BoundedLabel(MOST_DATABASES),
    httpDuration: new Histogram({
      name: "engine_http_request_duration_seconds",
      help: "Time from the request's headers to the end of the response.",
      labelNames: ["method", "route", "status"],
      buckets: LATENCY_SECONDS,
      registers,
    }),
    ingestRows: new Counter({
      name: "engine_ingest_rows_total",
      help: "Rows acknowledged, those of replayed requests left out. From the 200th database on it is `_other`.",
      labelNames: ["database"],
      registers,
    }),
    ingestBytes: new Counter({
      name: "engine_ingest_bytes_total",
      help: "Decoded NDJSON bytes of acknowledged requests, those of replayed ones left out.",
      labelNames: ["database"],
      registers,
    }),
    ingestRequests: new Counter({
      name: "engine_ingest_requests_total",
      help: "Ingest requests by outcome: `committed`, `staged`, `replayed`, or an error code.",
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
      help: "Flushes that a commit sent back, by reason (`schema`, `idempotency`, `position`).",
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
    sealQueue: new WatchedGauge({
      name: "engine_seal_queue_depth",
      help: "Flushes that wait for a sealing thread.",
      registers,
    }),
    ...stagedMetrics(registers),
    ...queryCacheMetrics(registers),
    ...dutyMetrics(registers),
    ...objectStoreMetrics(registers),
    ...edgeMetrics(registers),
    ...compactionMetrics(registers),
    ...nodeMetrics(registers),
    ...writePathMetrics(registers),
    ...catalogMetrics(registers),
    ...queryMetrics(registers),
    ...backgroundMetrics(registers),
    ...objectStoreEffortMetrics(registers),
    queriesRunning: new Gauge({ name: "engine_queries_running", help: "Queries running now.", registers }),
  };
}

/** What an edge forwards. `upstream` is the kind of peers (`query`, `ingest`), `peer` one address of them. */
function edgeMetrics(registers: Registry[]) {
  const labelNames = ["upstream", "peer"] as const;
  return {
    edgeRequests: new Counter({
      name: "engine_edge_requests_total",
      help:
        "Requests sent to peers by outcome: `answered`, `cut` (in the middle of the answer), `unreachable` (nothing " +
        "was sent), `broken` (before the answer), `cancelled` (by the client, or for another peer).",
      labelNames: [...labelNames, "outcome"],
      registers,
    }),
    edgeRetries: new Counter({
      name: "engine_edge_retries_total",
      help: "Requests sent again, to another peer, by the outcome of the try before.",
      labelNames: ["upstream", "after"],
      registers,
    }),
    edgeNoPeer: new Counter({
      name: "engine_edge_no_peer_total",
      help: "Requests answered with 503 because no peer could take them.",
      labelNames: ["upstream"],
      registers,
    }),
    edgeEjections: new Counter({
      name: "engine_edge_ejections_total",
      help: "Times that a peer was taken out because it could not be reached or was not healthy.",
      labelNames,
      registers,
    }),
    edgeBytes: new Counter({
      name: "engine_edge_bytes_total",
      help: "Bytes of bodies sent to peers (`out`, those sent again included) and of their answers (`in`).",
      labelNames: ["upstream", "direction"],
      registers,
    }),
    edgeInFlight: new Gauge({
      name: "engine_edge_in_flight",
      help: "Requests that a peer is answering.",
      labelNames,
      registers,
    }),
    edgePeerUsable: new Gauge({
      name: "engine_edge_peer_usable",
      help: "1 while new requests go to the peer, 0 while it is draining or ejected.",
      labelNames,
      registers,
    }),
  };
}

/** Requests to a remote object store: they are what it is paid for. */
function objectStoreMetrics(registers: Registry[]) {
  return {
    objstoreRequests: new Counter({
      name: "engine_objstore_requests_total",
      help: "Requests to the object store, each attempt counted, by kind (`put`, `get`, `head`, `list`, `delete`, `multipart`) and outcome.",
      labelNames: ["kind", "outcome"],
      registers,
    }),
    objstoreBytes: new Counter({
      name: "engine_objstore_bytes_total",
      help: "Bytes of objects received from (`in`) and sent to (`out`) the object store.",
      labelNames: ["direction"],
      registers,
    }),
    objstoreDuration: new Histogram({
      name: "engine_objstore_request_duration_seconds",
      help: "Time of one request to the object store, body included, waiting for a connection not.",
      labelNames: ["kind"],
      buckets: LATENCY_SECONDS,
      registers,
    }),
  };
}

/** Merging small extents into large ones. */
function compactionMetrics(registers: Registry[]) {
  return {
    compactionMerges: new Counter({
      name: "engine_compaction_merges_total",
      help: "Merges by outcome: `published`, `lost` (an input was gone by then), `failed`.",
      labelNames: ["outcome"],
      registers,
    }),
    compactionDuration: new Histogram({
      name: "engine_compaction_merge_duration_seconds",
      help: "Time of one merge from its first input to its snapshot, rests included.",
      buckets: LATENCY_SECONDS,
      registers,
    }),
    compactionInputExtents: new Counter({
      name: "engine_compaction_input_extents_total",
      help: "Extents that published merges have replaced.",
      registers,
    }),
    compactionInputBytes: new Counter({
      name: "engine_compaction_input_bytes_total",
      help: "Bytes of the extents that published merges have replaced.",
      registers,
    }),
    compactionOutputBytes: new Counter({
      name: "engine_compaction_output_bytes_total",
      help: "Bytes of the extents that published merges have written.",
      registers,
    }),
    compactionIoBytes: new Counter({
      name: "engine_compaction_io_bytes_total",
      help: "Bytes that merges have moved: `download` and `upload` from and to the object store, `merge` and `verify` what the process has read and written that merges, or verifies extents (Linux only).",
      labelNames: ["kind"],
      registers,
    }),
    compactionIoWait: new Counter({
      name: "engine_compaction_io_wait_seconds_total",
      help: "Time in which merges stood still for their budget of bytes, `ENGINE_COMPACTION_IO_BYTES_PER_SEC`.",
      registers,
    }),
  };
}

/** What one node of a cluster does at a time, by a lease. */
function dutyMetrics(registers: Registry[]) {
  return {
    dutyHeld: new Gauge({
      name: "engine_duty_held",
      help: "1 while this node holds the lease of a background duty, by duty.",
      labelNames: ["duty"],
      registers,
    }),
    dutyRuns: new Counter({
      name: "engine_duty_runs_total",
      help: "Runs of background duties by outcome: `ok`, `error`, `stopped` (the lease was lost, or the server stopped).",
      labelNames: ["duty", "outcome"],
      registers,
    }),
    retentionExtents: new Counter({
      name: "engine_retention_extents_total",
      help: "Extents that were soft-deleted because they were past their retention.",
      registers,
    }),
    deletedExtents: new Counter({
      name: "engine_deleted_extents_total",
      help: "Extents that were deleted for good in the background.",
      registers,
    }),
    deletedBytes: new Counter({
      name: "engine_deleted_bytes_total",
      help: "Bytes of extents that were deleted for good in the background.",
      registers,
    }),
    orphansDeleted: new Counter({
      name: "engine_orphans_deleted_total",
      help: "Objects of uploads that never committed which were deleted.",
      registers,
    }),
  };
}

/** Staged ingest: what waits for its commit, as the node that commits sees it. */
function stagedMetrics(registers: Registry[]) {
  return {
    stagedObjects: new Gauge({
      name: "engine_staged_objects",
      help: "Staged objects that are not committed yet.",
      registers,
    }),
    stagedBytes: new Gauge({ name: "engine_staged_bytes", help: "Bytes of those objects.", registers }),
    stagedOldestAge: new WatchedGauge({
      name: "engine_staged_oldest_age_seconds",
      help: "Age of the oldest staged object that is not committed yet; 0 without any.",
      registers,
    }),
    stagedFreshness: new Histogram({
      name: "engine_staged_freshness_seconds",
      help: "Time from the acknowledgement of a staged request until its rows were visible.",
      buckets: LATENCY_SECONDS,
      registers,
    }),
    stagedPostponed: new Counter({
      name: "engine_staged_postponed_total",
      help: "Times that a staged object could not be committed and was left for later.",
      registers,
    }),
    stagedDamaged: new Counter({
      name: "engine_staged_damaged_total",
      help: "Staged objects that were found damaged and set aside.",
      registers,
    }),
    stagedDamagedObjects: new Gauge({
      name: "engine_staged_damaged_objects",
      help: "Damaged staged objects that are still there.",
      registers,
    }),
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
