import * as kinds from "../config/kinds.ts";
import { option, optional } from "../config/option.ts";

const TIB = 2 ** 40;

/** The options of the feature: merging small extents, retention, and the deletion of bytes that nobody reads. */
export const COMPACTION_OPTIONS = {
  compactionMinExtents: option({
    env: "ENGINE_COMPACTION_MIN_EXTENTS",
    toml: "compaction.min_extents",
    kind: kinds.integer({ min: 2, max: 1_000 }),
    default: 24,
    side: "S",
    doc:
      "Extents of similar size that a table must have in a UTC day for them to be merged. Fewer leave less for queries " +
      "to open, and write each row more often: below 20, more than four times.",
  }),
  compactionPollSecs: option({
    env: "ENGINE_COMPACTION_POLL_SECS",
    toml: "compaction.poll_secs",
    kind: kinds.integer({ min: 0, max: 86_400 }),
    default: 10,
    side: "S",
    doc: "Seconds until compaction looks for work again when there was none; 0 turns compaction off.",
  }),
  compactionIdleSleepMs: option({
    env: "ENGINE_COMPACTION_IDLE_SLEEP_MS",
    toml: "compaction.idle_sleep_ms",
    kind: kinds.integer({ min: 0, max: 3_600_000 }),
    default: 250,
    side: "S",
    doc: "Milliseconds that compaction rests after each merge.",
  }),
  compactionIoBytesPerSec: optional({
    env: "ENGINE_COMPACTION_IO_BYTES_PER_SEC",
    toml: "compaction.io_bytes_per_sec",
    kind: kinds.bytes({ min: 0, max: TIB }),
    whenUnset: "128 MiB on a server that takes rows or forwards them, else 0",
    side: "S",
    doc:
      "Bytes that merges may read and write in a second, of the object store and of the local disk together; 0 sets " +
      "no bound.",
  }),
  icebergMaxLagSecs: option({
    env: "ENGINE_ICEBERG_MAX_LAG_SECS",
    toml: "iceberg.max_lag_secs",
    kind: kinds.integer({ min: 0, max: 86_400 }),
    default: 0,
    side: "S",
    doc:
      "Seconds after which rows that Iceberg clients cannot read yet are merged although few extents wait with them; 0 " +
      "leaves it to compaction's own pace. Each row is written about once more.",
  }),
  retentionPollSecs: option({
    env: "ENGINE_RETENTION_POLL_SECS",
    toml: "retention.poll_secs",
    kind: kinds.integer({ min: 1, max: 86_400 }),
    default: 300,
    side: "S",
    doc: "Seconds between two searches for rows that are past the retention of their table.",
  }),
  physicalGcPollSecs: option({
    env: "ENGINE_PHYSICAL_GC_POLL_SECS",
    toml: "retention.gc_poll_secs",
    kind: kinds.integer({ min: 1, max: 86_400 }),
    default: 300,
    side: "S",
    doc: "Seconds between two searches for soft-deleted extents whose bytes may go.",
  }),
  physicalGcGraceSecs: option({
    env: "ENGINE_PHYSICAL_GC_GRACE_SECS",
    toml: "retention.gc_grace_secs",
    kind: kinds.integer({ min: 0, max: 315_360_000 }),
    default: 86_400,
    side: "S",
    doc:
      "Seconds that snapshots stay readable, and so the time until the bytes of soft-deleted extents go. What a running " +
      "query reads stays in any case.",
  }),
} as const;
