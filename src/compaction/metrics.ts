import { Counter, Gauge, Histogram } from "prom-client";
import { LATENCY_SECONDS } from "../core/metric-buckets.ts";
import { metricSet } from "../core/metric-set.ts";

/**
 * Merging small extents into large ones, retention, and deletion. Gauges are of the node's last run: who has the lease,
 * knows.
 */
export const COMPACTION_METRICS = metricSet((registers) => ({
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
  backlogDays: new Gauge({
    name: "engine_compaction_backlog_days",
    help: "Days of tables with so many small extents that they are to be merged, those whose merge failed included.",
    registers,
  }),
  backlogExtents: new Gauge({
    name: "engine_compaction_backlog_extents",
    help: "Small extents of the days that are to be merged.",
    registers,
  }),
  backlogBytes: new Gauge({
    name: "engine_compaction_backlog_bytes",
    help: "Bytes of the small extents of the days that are to be merged.",
    registers,
  }),
  oldestSnapshot: new Gauge({
    name: "engine_deletion_oldest_snapshot",
    help: "The oldest snapshot that can be read, as the last run of the deletion left it.",
    registers,
  }),
  heldSnapshots: new Gauge({
    name: "engine_deletion_held_snapshots",
    help: "Snapshots past the grace that the deletion had to leave because queries read them, at its last run.",
    registers,
  }),
  deletionFailures: new Counter({
    name: "engine_deletion_failed_extents_total",
    help: "Times that the bytes of a dead extent could not be deleted; the next run tries again.",
    registers,
  }),
}));

/** What other programs (Iceberg clients) cannot read before it is merged, as the node that merges saw it last. */
export const PUBLICATION_METRICS = metricSet((registers) => ({
  unpublishedRows: new Gauge({
    name: "engine_compaction_unpublished_rows",
    help: "Rows of all tables that other programs (Iceberg clients) cannot read before they are merged.",
    registers,
  }),
  unpublishedBytes: new Gauge({
    name: "engine_compaction_unpublished_bytes",
    help: "Bytes of the extents that other programs cannot read before they are merged.",
    registers,
  }),
  unpublishedAge: new Gauge({
    name: "engine_compaction_unpublished_age_seconds",
    help: "Age of the oldest extent that other programs cannot read before it is merged; 0 where there is none.",
    registers,
  }),
  unpublishedRowsOfTable: new Gauge({
    name: "engine_compaction_unpublished_table_rows",
    help: "The same rows, of the ten tables that wait for the longest.",
    labelNames: ["table"],
    registers,
  }),
  unpublishedBytesOfTable: new Gauge({
    name: "engine_compaction_unpublished_table_bytes",
    help: "The same bytes, of the ten tables that wait for the longest.",
    labelNames: ["table"],
    registers,
  }),
  unpublishedAgeOfTable: new Gauge({
    name: "engine_compaction_unpublished_table_age_seconds",
    help: "The same age, of the ten tables that wait for the longest.",
    labelNames: ["table"],
    registers,
  }),
}));
