import { join } from "node:path";

import { createCompactor } from "../src/compaction/compactor.ts";
import { DeletionReports } from "../src/compaction/deletion-reports.ts";
import { createDeletion } from "../src/compaction/deletion.ts";
import { createLeaseLoop, type LeaseLoopOptions } from "../src/compaction/lease-loop.ts";
import { createOrphanSweep } from "../src/compaction/orphans.ts";
import { createRetention } from "../src/compaction/retention.ts";
import type { Service } from "../src/core/lifecycle.ts";
import type { SealPool } from "../src/ingest/seal-pool.ts";
import { createStagedCommitter } from "../src/ingest/staged/staged-committer.ts";
import { sweepKeys } from "../src/ingest/staged/sweep.ts";
import { createExportSweep } from "../src/query/exports/sweep.ts";
import { COMMIT_POLL_MS, idleCommitPollMs } from "./commit-poll.ts";
import type { Parts } from "./parts.ts";
import type { Plan } from "./plan.ts";
import type { Storage } from "./storage.ts";

const LEDGER_SWEEP_MS = 60_000;
const ORPHAN_SWEEP_MS = 86_400_000;
const ORPHAN_LEASE_MS = 300_000;
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
export function backgroundServices({ background, ingest }: Plan, parts: Parts, ports: BackgroundPorts): Service[] {
  const holder = parts.newId();
  const loop: AddLoop = (options) => createLeaseLoop({ ...parts, holder, catalog: ports.catalog, ...options });
  return [
    ...(background.committer && ports.sealPool !== undefined ? [committer(parts, ports, ports.sealPool, loop)] : []),
    ...(background.compaction ? housekeeping(parts, ports, loop) : []),
    ...(background.compaction && parts.config.compactionPollSecs > 0
      ? [compaction(parts, ports, ingest === "nobody" ? ALONE : BESIDE_CLIENTS, loop)]
      : []),
  ];
}

export type BackgroundPorts = Storage & { sealPool: SealPool | undefined; isBusy: () => boolean };
type AddLoop = (options: Pick<LeaseLoopOptions, "name" | "pollMs" | "idlePollMs" | "ttlMs" | "duty">) => Service;

/** Also where ingest is in sync mode: what was staged before that must become visible. It then looks seldom. */
function committer(parts: Parts, { catalog, store }: Storage, { seal }: SealPool, loop: AddLoop): Service {
  const { config } = parts;
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

/** What goes: keys, extents past their retention, bytes that nobody reads. */
function housekeeping(parts: Parts, storage: Storage, loop: AddLoop): Service[] {
  const { config, log, metrics } = parts;
  const { pathPrefix: keyPrefix } = config;
  const ports = { ...storage, log, metrics };
  const graceMs = config.physicalGcGraceSecs * 1000;
  const orphans = createOrphanSweep(ports, { keyPrefix });
  const reports = new DeletionReports(storage.records);
  const exportPorts = { ...ports, nowMs: () => storage.catalog.nowMs() };
  const exports = createExportSweep(exportPorts, { keyPrefix, graceMs: config.artifactGcGraceSecs * 1000 });
  return [
    loop({ name: "ledger sweep", pollMs: LEDGER_SWEEP_MS, duty: () => sweepKeys({ ...ports, keyPrefix }) }),
    loop({ name: "retention", pollMs: config.retentionPollSecs * 1000, duty: createRetention(ports) }),
    loop({
      name: "deletion",
      pollMs: config.physicalGcPollSecs * 1000,
      duty: createDeletion({ ...ports, reports }, { graceMs }),
    }),
    loop({ name: "export sweep", pollMs: config.artifactGcPollSecs * 1000, duty: exports }),
    loop({ name: "orphan sweep", pollMs: ORPHAN_SWEEP_MS, ttlMs: ORPHAN_LEASE_MS, duty: orphans }),
  ];
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
  const duty = createCompactor(
    { ...parts, catalog: ports.catalog, store: ports.store, isBusy: ports.isBusy },
    {
      keyPrefix: config.pathPrefix,
      tempDir: join(config.home, "tmp", "compaction"),
      minExtents: config.compactionMinExtents,
      isTlmPast: config.writeFormat === "parquet",
      restMs: config.compactionIdleSleepMs,
      memoryBytes: MERGE_MEMORY_BYTES,
      threads: 1,
      cpuShare: room.cpuShare,
      ioBytesPerSec: config.compactionIoBytesPerSec ?? room.ioBytesPerSec,
    },
  );
  return loop({ name: "compaction", pollMs: config.compactionPollSecs * 1000, ttlMs: COMPACTION_LEASE_MS, duty });
}
