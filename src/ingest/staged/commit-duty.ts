import { valuesOf } from "../../config/option.ts";
import type { FeatureDuty, StorageDeps } from "../../feature/feature.ts";
import { INGEST_OPTIONS } from "../options.ts";
import type { SealPool } from "../seal-pool.ts";
import { COMMIT_POLL_MS, idleCommitPollMs } from "./commit-poll.ts";
import { createStagedCommitter } from "./staged-committer.ts";

const SELDOM_COMMIT_POLL_MS = 30_000;
const COMMIT_LEASE_MS = 10_000;
/** Of staged objects that one snapshot takes. */
const COMMIT_BYTES = 64 * 1024 * 1024;

/**
 * Makes visible what is staged. Also where ingest is in sync mode: what was staged before that must become visible. It
 * then looks seldom.
 */
export function commitDuty(deps: StorageDeps, { seal }: Pick<SealPool, "seal">): FeatureDuty {
  const config = valuesOf(INGEST_OPTIONS, deps.config);
  const service = createStagedCommitter({
    ...deps,
    seal,
    sealThreads: config.sealThreads,
    format: config.writeFormat,
    keyPrefix: config.pathPrefix,
    maxExtents: config.commitMaxExtents,
    maxBytes: COMMIT_BYTES,
  });
  const often = { pollMs: COMMIT_POLL_MS, idlePollMs: idleCommitPollMs };
  const polls = config.ingestMode === "staged" ? often : { pollMs: SELDOM_COMMIT_POLL_MS };
  return {
    name: "committer",
    ...polls,
    ttlMs: COMMIT_LEASE_MS,
    duty: ({ lease, signal }) => service.commitRound(lease, signal),
  };
}
