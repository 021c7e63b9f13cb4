import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { FlushCommit, TableRecord } from "../catalog/catalog.ts";
import { BoundedLabel } from "../core/bounded-label.ts";
import { LATENCY_SECONDS } from "../core/metric-buckets.ts";
import { metricSet } from "../core/metric-set.ts";
import { WatchedGauge } from "../core/watched-gauge.ts";
import { formatColumnType, sameColumnType } from "../format/types.ts";

/** Databases that have a label of their own. */
const MOST_DATABASES = 200;

/** Taking rows: requests, the way of a write, staged objects, and types that come from data. */
export const INGEST_METRICS = metricSet((registers) => ({
  /** The label `database`. */
  databaseLabel: new BoundedLabel(MOST_DATABASES),
  ...requestMetrics(registers),
  ...writePathMetrics(registers),
  ...stagedMetrics(registers),
  ...typeMetrics(registers),
}));

type Registered = Parameters<typeof INGEST_METRICS.of>[0];

/** Counts the columns that became wider when this node asked for it. */
export function countWidened(metrics: Registered, before: TableRecord, after: TableRecord): void {
  const types = new Map(before.columns.map(({ id, type }) => [id, type]));
  for (const { id, type } of after.columns) {
    const earlier = types.get(id);
    if (earlier !== undefined && !sameColumnType(earlier, type)) INGEST_METRICS.of(metrics).widened.inc();
  }
}

/** Counts what a flush has brought, once it is committed. */
export function countCommitted(metrics: Registered, flush: FlushCommit): void {
  const { misfits, inferredColumns } = INGEST_METRICS.of(metrics);
  for (const { stats } of flush.extents) {
    for (const { misfits: own = 0 } of stats) if (own > 0) misfits.inc(own);
  }
  for (const { type, inferred } of flush.newColumns) {
    if (inferred === true) inferredColumns.inc({ type: formatColumnType(type) });
  }
}

/** What clients send, and what they are answered. */
function requestMetrics(registers: Registry[]) {
  return {
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
    ingestQueuedLimit: new WatchedGauge({
      name: "engine_ingest_queued_bytes_limit",
      help: "Bytes of bodies from which on this node answers 429: `ENGINE_INGEST_MAX_INFLIGHT_BYTES`.",
      registers,
    }),
    ingestQueuedRequests: new Gauge({
      name: "engine_ingest_queued_requests",
      help: "Requests accepted and not yet acknowledged.",
      registers,
    }),
  };
}

/** How a write gets from its request into the catalog. */
function writePathMetrics(registers: Registry[]) {
  return {
    sealQueue: new WatchedGauge({
      name: "engine_seal_queue_depth",
      help: "Flushes that wait for a sealing thread.",
      registers,
    }),
    sealDuration: new Histogram({
      name: "engine_ingest_seal_duration_seconds",
      help: "Time to scan and seal one flush into an extent, waiting for a thread included.",
      buckets: LATENCY_SECONDS,
      registers,
    }),
    flushDuration: new Histogram({
      name: "engine_ingest_flush_duration_seconds",
      help: "Time of one flush from its start until all its requests are answered: seal, upload and, in sync mode, commit.",
      buckets: LATENCY_SECONDS,
      registers,
    }),
    uploadDuration: new Histogram({
      name: "engine_ingest_upload_duration_seconds",
      help: "Time to write the extents of one flush, or its staged object, to the object store.",
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
    extentBytesCommitted: new Counter({
      name: "engine_extents_committed_bytes_total",
      help: "Bytes of extents that ingest has committed.",
      registers,
    }),
    ledgerSwept: new Counter({
      name: "engine_ledger_swept_total",
      help: "Expired idempotency keys that were taken out of the catalog.",
      registers,
    }),
    ledgerSweepFailures: new Counter({
      name: "engine_ledger_sweep_failures_total",
      help: "Sweeps of expired idempotency keys that failed.",
      registers,
    }),
    ledgerSweptAt: new Gauge({
      name: "engine_ledger_last_sweep_timestamp_seconds",
      help: "When this node has last swept expired idempotency keys; 0 before.",
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
    stagedWrittenObjects: new Counter({
      name: "engine_staged_written_objects_total",
      help: "Staged objects that this node has written and acknowledged.",
      registers,
    }),
    stagedWrittenBytes: new Counter({
      name: "engine_staged_written_bytes_total",
      help: "Bytes of the staged objects that this node has written and acknowledged.",
      registers,
    }),
  };
}

/** Types that come from data, and what did not fit them. Each is counted by the node that commits. */
function typeMetrics(registers: Registry[]) {
  return {
    misfits: new Counter({
      name: "engine_ingest_misfits_total",
      help: "Values that were kept in `props` because they did not fit their column, as they were committed.",
      registers,
    }),
    inferredColumns: new Counter({
      name: "engine_ingest_inferred_columns_total",
      help: "New columns whose type was taken from values, by type; flushes that bring one at a time each count it.",
      labelNames: ["type"],
      registers,
    }),
    widened: new Counter({
      name: "engine_ingest_widened_total",
      help: "Columns that became `real` because a fraction came to what was inferred as `long`; nodes that ask at once each count.",
      registers,
    }),
  };
}
