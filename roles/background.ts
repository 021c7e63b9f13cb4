import { INGEST_OPTIONS } from "../src/ingest/options.ts";
import { join } from "node:path";

import { createCompactor } from "../src/compaction/compactor.ts";
import { COMPACTION_OPTIONS } from "../src/compaction/options.ts";
import { valuesOf } from "../src/config/option.ts";
import { contributed } from "../src/feature/collect.ts";
import type { FeatureDuty } from "../src/feature/feature.ts";
import { createLeaseLoop } from "../src/feature/lease-loop.ts";
import type { Service } from "../src/core/lifecycle.ts";
import type { SealPool } from "../src/ingest/seal-pool.ts";
import { createStagedCommitter } from "../src/ingest/staged/staged-committer.ts";
import { COMMIT_POLL_MS, idleCommitPollMs } from "./commit-poll.ts";
import type { Parts } from "./parts.ts";
import type { Plan } from "./plan.ts";
import type { Storage } from "./storage.ts";

/** A merge ends early when its lease is lost, so that the next node need not wait for long. */
const COMPACTION_LEASE_MS = 30_000;
const MERGE_MEMORY_BYTES = 512 * 1024 * 1024;
/** Of a core. */
const SHARE_BESIDE_CLIENTS = 0.5;
/** About what a link of 1 Gbit/s carries. */
const IO_BESIDE_CLIENTS_BYTES_PER_SEC = 128 * 1024 * 1024;
const SELDOM_COMMIT_POLL_MS = 30_000;
const COMMIT_LEASE_MS = 10_000;
/** Of staged objects that one snapshot takes. */
const COMMIT_BYTES = 64 * 1024 * 1024;

/**
 * The services that work without being asked: what the roles `committer`, `worker` and `compaction` are made of.
 * `isBusy` says whether this process has clients to serve first.
 */
export async function backgroundServices(
  { background, ingest }: Plan,
  parts: Parts,
  ports: BackgroundPorts,
): Promise<Service[]> {
  const holder = parts.newId();
  const loop: AddLoop = (options) => createLeaseLoop({ ...parts, holder, catalog: ports.catalog, ...options });
  return [
    ...(background.committer && ports.sealPool !== undefined ? [committer(parts, ports, ports.sealPool, loop)] : []),
    ...(background.compaction ? await housekeeping(parts, ports, loop) : []),
    ...(background.compaction && valuesOf(COMPACTION_OPTIONS, parts.config).compactionPollSecs > 0
      ? [compaction(parts, ports, ingest === "nobody" ? ALONE : BESIDE_CLIENTS, loop)]
      : []),
  ];
}

export type BackgroundPorts = Storage & { sealPool: SealPool | undefined; isBusy: () => boolean };
type AddLoop = (duty: FeatureDuty) => Service;

/** Also where ingest is in sync mode: what was staged before that must become visible. It then looks seldom. */
function committer(parts: Parts, { catalog, store }: Storage, { seal }: SealPool, loop: AddLoop): Service {
  const config = valuesOf(INGEST_OPTIONS, parts.config);
  const service = createStagedCommitter({
    ...parts,
    catalog,
    store,
    seal,
    sealThreads: config.sealThreads,
    format: config.writeFormat,
    keyPrefix: config.pathPrefix,
    maxExtents: config.commitMaxExtents,
    maxBytes: COMMIT_BYTES,
  });
  const often = { pollMs: COMMIT_POLL_MS, idlePollMs: idleCommitPollMs };
  const polls = config.ingestMode === "staged" ? often : { pollMs: SELDOM_COMMIT_POLL_MS };
  return loop({
    name: "committer",
    ...polls,
    ttlMs: COMMIT_LEASE_MS,
    duty: ({ lease, signal }) => service.commitRound(lease, signal),
  });
}

/** What goes, by the duties of the features: keys, extents past their retention, bytes that nobody reads. */
async function housekeeping(parts: Parts, storage: Storage, loop: AddLoop): Promise<Service[]> {
  const deps = { ...parts, ...storage };
  return (await contributed(parts.features, ({ duties }) => duties?.compaction?.(deps))).map(loop);
}

/** What merges may take of the machine. */
type Room = { cpuShare: number; ioBytesPerSec: number };
const ALONE: Room = { cpuShare: 1, ioBytesPerSec: 0 };
const BESIDE_CLIENTS: Room = {
  cpuShare: SHARE_BESIDE_CLIENTS,
  ioBytesPerSec: IO_BESIDE_CLIENTS_BYTES_PER_SEC,
};

function compaction(parts: Parts, ports: BackgroundPorts, room: Room, loop: AddLoop): Service {
  const { config } = parts;
  const own = valuesOf(COMPACTION_OPTIONS, config);
  const duty = createCompactor(
    { ...parts, catalog: ports.catalog, store: ports.store, isBusy: ports.isBusy },
    {
      keyPrefix: config.pathPrefix,
      tempDir: join(config.home, "tmp", "compaction"),
      minExtents: own.compactionMinExtents,
      isTlmPast: config.writeFormat === "parquet",
      restMs: own.compactionIdleSleepMs,
      memoryBytes: MERGE_MEMORY_BYTES,
      threads: 1,
      cpuShare: room.cpuShare,
      ioBytesPerSec: own.compactionIoBytesPerSec ?? room.ioBytesPerSec,
    },
  );
  return loop({ name: "compaction", pollMs: own.compactionPollSecs * 1000, ttlMs: COMPACTION_LEASE_MS, duty });
}
