import { valuesOf } from "../config/option.ts";
import type { Config } from "../config/options.ts";
import type { Clock } from "../core/clock.ts";
import type { IdSource } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Random } from "../core/random.ts";
import type { RecordStore } from "../db/records.ts";
import type { Fabric } from "./fabric.ts";
import { JobMetrics } from "./job-metrics.ts";
import { FABRIC_OPTIONS } from "./options.ts";
import { Schedules } from "./schedules.ts";

const SCHEDULES_POLL_MS = 1_000;
/** What a dead node held is found soon, also when that node was the one that swept: shorter than the shortest lease. */
const SWEEP_LEASE_MS = 6_000;
const FORGOTTEN_AT_ONCE = 10_000;

export type JobDutyDeps = {
  config: Config;
  log: Log;
  metrics: Metrics;
  clock: Clock;
  random: Random;
  newId: IdSource;
  records: RecordStore;
  fabric: Fabric;
};

type Turn = { signal: AbortSignal };

/** What one process of many does for all jobs: finds lost ones, forgets old ones, makes those of schedules. */
export function jobDuties(deps: JobDutyDeps) {
  const { fabric } = deps;
  const { fabricSweepSecs, fabricRetentionSecs, artifactGcGraceSecs, artifactGcPollSecs } = valuesOf(
    FABRIC_OPTIONS,
    deps.config,
  );
  const metrics = new JobMetrics(deps.metrics);
  const schedules = new Schedules(deps);
  const keepMs = (fabricRetentionSecs + artifactGcGraceSecs) * 1_000;
  let tenure: AbortSignal | undefined;
  return [
    {
      name: "job sweep",
      pollMs: fabricSweepSecs * 1_000,
      ttlMs: SWEEP_LEASE_MS,
      duty: async ({ signal }: Turn) => {
        // Once for each lease: it lasts for many turns.
        if (signal !== tenure) signal.addEventListener("abort", () => metrics.hideQueue(), { once: true });
        tenure = signal;
        await fabric.sweep();
        metrics.showQueue(await fabric.countUnfinished(), await fabric.oldestWaiting());
      },
    },
    {
      name: "job retention",
      pollMs: artifactGcPollSecs * 1_000,
      duty: async ({ signal }: Turn) => {
        while ((await fabric.forgetFinished(keepMs, FORGOTTEN_AT_ONCE)) === FORGOTTEN_AT_ONCE) signal.throwIfAborted();
      },
    },
    { name: "schedules", pollMs: SCHEDULES_POLL_MS, duty: async () => void (await schedules.fireDue()) },
  ];
}
