import { join } from "node:path";
import { valuesOf } from "../config/option.ts";
import type { CompactionDeps, FeatureDuty } from "../feature/feature.ts";
import { createCompactor } from "./compactor.ts";
import { COMPACTION_OPTIONS } from "./options.ts";
import { onPublishRequests, PublishRequests } from "./publish-requests.ts";

/** A merge ends early when its lease is lost, so that the next node need not wait for long. */
const MERGE_LEASE_MS = 30_000;
const MERGE_MEMORY_BYTES = 512 * 1024 * 1024;

/** What merges may take of the machine; beside clients half a core, and what a link of 1 Gbit/s carries. */
const ALONE = { cpuShare: 1, ioBytesPerSec: 0 };
const BESIDE_CLIENTS = { cpuShare: 0.5, ioBytesPerSec: 128 * 1024 * 1024 };

/** Merging small extents; nothing where the poll is off. */
export function mergeDuties(deps: CompactionDeps): FeatureDuty[] {
  const config = valuesOf(COMPACTION_OPTIONS, deps.config);
  if (config.compactionPollSecs === 0) return [];
  const { cpuShare, ioBytesPerSec } = deps.hasClients ? BESIDE_CLIENTS : ALONE;
  const duty = createCompactor(
    { ...deps, requests: new PublishRequests(deps) },
    {
      keyPrefix: config.pathPrefix,
      tempDir: join(config.home, "tmp", "compaction"),
      minExtents: config.compactionMinExtents,
      isTlmPast: config.writeFormat === "parquet",
      maxLagMs: config.icebergMaxLagSecs * 1_000,
      restMs: config.compactionIdleSleepMs,
      memoryBytes: MERGE_MEMORY_BYTES,
      threads: 1,
      encodings: config.parquetEncodings,
      cpuShare,
      ioBytesPerSec: config.compactionIoBytesPerSec ?? ioBytesPerSec,
    },
  );
  const wakes = (wake: () => void) => onPublishRequests(deps.signals, wake);
  return [{ name: "compaction", pollMs: config.compactionPollSecs * 1_000, ttlMs: MERGE_LEASE_MS, wakes, duty }];
}
