import { createCompactor } from "../../src/compaction/compactor.ts";
import { createDeletion } from "../../src/compaction/deletion.ts";
import { createLeaseLoop, type Duty } from "../../src/feature/lease-loop.ts";
import { createOrphanSweep } from "../../src/compaction/orphans.ts";
import { createRetention } from "../../src/compaction/retention.ts";
import type { Service } from "../../src/core/lifecycle.ts";
import type { Metrics } from "../../src/core/metrics.ts";
import { Committer } from "../../src/ingest/committer.ts";
import type { IngestService } from "../../src/ingest/ingest.ts";
import { seal } from "../../src/ingest/seal-thread.ts";
import { createIngestService } from "../../src/ingest/service.ts";
import { createStagedIngestService } from "../../src/ingest/staged/service.ts";
import { createStagedCommitter } from "../../src/ingest/staged/staged-committer.ts";
import { sweepKeys } from "../../src/ingest/staged/sweep.ts";
import type { Parts } from "./machine.ts";
import { inlineMerger } from "./merger.ts";
import { PREFIX } from "./model.ts";

/** The services of the roles, wired as the roles do it, on a machine's parts. */
/** Nobody deletes rows here. */
const NO_REPORTS = { open: () => Promise.resolve([]), settle: () => Promise.resolve() };

export type ServiceParts = Parts & { metrics: Metrics };

const MIB = 1024 * 1024;

const COMMON = { seal, sealThreads: 2, format: "tlm", keyPrefix: PREFIX } as const;
const ADMISSION = {
  batching: { maxRows: 12, maxBytes: 16 * MIB, maxAgeMs: 50, disabled: false },
  maxInflightBytes: 256 * MIB,
  rate: { perSec: 0, burst: 1 },
};

export function ingestService(parts: ServiceParts, mode: "sync" | "staged"): IngestService {
  const common = { ...parts, ...COMMON, ...ADMISSION };
  const options = { ...common, committer: new Committer({ ...common, windowMs: 5, maxExtents: 4 }) };
  if (mode === "staged") return createStagedIngestService({ ...options, node: parts.newId() });
  return createIngestService(options);
}

/** How often duties are done here, and how long their leases last: in proportion as in earnest, but seldom. */
const POLLS = {
  committer: { pollMs: 4_000, ttlMs: 20_000 },
  compaction: { pollMs: 15_000, ttlMs: 45_000 },
  retention: { pollMs: 40_000, ttlMs: 90_000 },
  deletion: { pollMs: 30_000, ttlMs: 90_000 },
  "orphan sweep": { pollMs: 60_000, ttlMs: 90_000 },
  "ledger sweep": { pollMs: 60_000, ttlMs: 90_000 },
} as const;

export type DutyName = keyof typeof POLLS;

/** The duties of one machine, each under its lease; `onRun` hears of every run that ended well. */
export function dutyServices(
  parts: ServiceParts,
  options: { names: readonly DutyName[]; graceMs: number; onRun: (name: DutyName) => void },
): Service[] {
  const holder = parts.newId();
  return options.names.map((name) => {
    const duty = dutyOf(name, parts, options.graceMs);
    return createLeaseLoop({
      ...parts,
      ...POLLS[name],
      holder,
      name,
      duty: async (turn) => {
        await duty(turn);
        options.onRun(name);
      },
    });
  });
}

function dutyOf(name: DutyName, parts: ServiceParts, graceMs: number): Duty {
  switch (name) {
    case "committer": {
      const committer = createStagedCommitter({ ...parts, ...COMMON, maxExtents: 4, maxBytes: MIB });
      return ({ lease, signal }) => committer.commitRound(lease, signal);
    }
    case "compaction":
      return createCompactor(
        { ...parts, merger: inlineMerger(parts), isBusy: () => false },
        { keyPrefix: PREFIX, tempDir: "", minExtents: 3, restMs: 10, memoryBytes: MIB, threads: 1, cpuShare: 1 },
      );
    case "retention":
      return createRetention(parts);
    case "deletion":
      return createDeletion({ ...parts, reports: NO_REPORTS }, { graceMs });
    case "orphan sweep":
      return createOrphanSweep(parts, { keyPrefix: PREFIX });
    case "ledger sweep":
      return () => sweepKeys({ ...parts, keyPrefix: PREFIX });
  }
}
