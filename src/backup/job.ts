import { join } from "node:path";
import { z } from "zod";
import { EngineError } from "../core/errors.ts";
import { JobFailure, type JobHandler, type RunningJob } from "../fabric/handler.ts";
import { readPayload } from "../fabric/job-payload.ts";
import type { JobKind } from "../fabric/kinds.ts";
import type { FeatureDeps, FeatureDuty } from "../feature/feature.ts";
import { valuesOf } from "../config/option.ts";
import { createBackup, type Created } from "./create.ts";
import { checkAllowed, parseDestination } from "./destination.ts";
import { BACKUP_METRICS } from "./metrics.ts";
import { withRepository } from "./open-destination.ts";
import { BACKUP_OPTIONS } from "./options.ts";
import { pruneBackups, type Pruned } from "./prune.ts";

const payload = z.strictObject({
  destination: z
    .string()
    .max(1_024)
    .refine((text) => parseDestination(text) !== undefined, "must be an absolute folder or s3://BUCKET/PREFIX")
    .describe("An absolute folder or `s3://BUCKET/PREFIX`, at or below one of `ENGINE_BACKUP_DESTINATIONS`."),
  keep: z.int().min(1).max(10_000).optional().describe("How many backups are kept there; older ones are deleted."),
});

/** Makes a backup of everything, so only an admin of all databases may ask for it. */
export const BACKUP: JobKind = {
  name: "backup",
  payload,
  enqueue: "admin",
  claim: "engine",
  // What was copied is there for the next attempt.
  maxAttempts: 5,
  backoffMs: 10_000,
};

export function backupHandler(deps: FeatureDeps): JobHandler {
  return {
    kind: BACKUP.name,
    async run(job) {
      checkOwner(job);
      const { destination: text, keep } = readPayload(payload, job);
      const destination = parseDestination(text);
      if (destination === undefined) throw new JobFailure({ error: `${text} is no destination` });
      await checkAllowed(destination, valuesOf(BACKUP_OPTIONS, deps.config).backupDestinations);
      return await withRepository(destination, "write", deps, async (repository) => {
        const { pathPrefix: keyPrefix, home } = deps.config;
        const tempDir = join(home, "tmp", "backups", deps.newId());
        const onProgress = (progress: unknown): void => job.progress(progress);
        const created = await createBackup(repository, deps, { keyPrefix, tempDir, signal: job.signal, onProgress });
        BACKUP_METRICS.of(deps.metrics).copiedBytes.inc(created.bytes_copied);
        const pruned = keep === undefined ? undefined : await pruneBackups(repository, keep, deps);
        return resultOf(created, pruned);
      });
    },
  };
}

/** A job about one database, or of one who may use only some, would see the others. */
function checkOwner({ owner, database }: RunningJob): void {
  if (database === undefined && owner.databases === undefined) return;
  throw new EngineError("forbidden", "a backup is of all databases: its job names none, and its owner may use all");
}

function resultOf(created: Created, pruned: Pruned | undefined): object {
  return pruned === undefined ? created : { ...created, pruned };
}

const WATCH_POLL_MS = 30_000;

/** Tells when the last backup was made, for an alert: one node of the cluster does. */
export function backupWatch({ records, metrics }: FeatureDeps): FeatureDuty {
  const { lastSuccess } = BACKUP_METRICS.of(metrics);
  return {
    name: "backup watch",
    pollMs: WATCH_POLL_MS,
    duty: async () => {
      const [row] = await records.rows(
        "SELECT (SELECT max(finished_at_ms) FROM jobs WHERE kind = 'backup' AND status = 'done') AS done_at_ms, " +
          "(SELECT count(*) FROM schedules WHERE kind = 'backup' AND enabled = 1) AS schedules",
      );
      const doneAtMs = row?.["done_at_ms"] ?? null;
      if (doneAtMs !== null) lastSuccess.set(Number(doneAtMs) / 1_000);
      else if (Number(row?.["schedules"]) > 0) lastSuccess.set(0);
    },
  };
}
