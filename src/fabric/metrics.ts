import { Counter, Gauge, Histogram } from "prom-client";
import { LATENCY_SECONDS } from "../core/metric-buckets.ts";
import { metricSet } from "../core/metric-set.ts";
import { BoundedLabel } from "../core/bounded-label.ts";
import { WatchedGauge } from "../core/watched-gauge.ts";

/** Kinds of jobs that have a label of their own: users make up kinds, too. */
const MOST_KINDS = 100;

/** Jobs. What is told of the queue as a whole comes from the node that sweeps it, and from no other. */
export const JOB_METRICS = metricSet((registers) => {
  const labelNames = ["kind"] as const;
  return {
    /** The label `kind`. */
    jobKindLabel: new BoundedLabel(MOST_KINDS),
    jobsUnfinished: new Gauge({
      name: "engine_jobs_unfinished",
      help:
        "Jobs that are `queued` or `leased`, all nodes together, as the node that sweeps them counted last; of a kind and " +
        "status at most 100,000 are counted. From the 100th kind on it is `_other`.",
      labelNames: ["kind", "status"],
      registers,
    }),
    jobsOldestWaiting: new Gauge({
      name: "engine_jobs_oldest_waiting_seconds",
      help: "For how long the oldest queued job of a kind has been due, as the node that sweeps them saw last.",
      labelNames,
      registers,
    }),
    jobClaimsWaiting: new WatchedGauge({
      name: "engine_job_claims_waiting",
      help: "Claims that wait for a job in this process.",
      registers,
    }),
    jobSlots: new WatchedGauge({
      name: "engine_job_slots",
      help: "Jobs that this node runs at once at most: `ENGINE_FABRIC_WORKERS`.",
      registers,
    }),
    jobSlotsBusy: new WatchedGauge({
      name: "engine_job_slots_busy",
      help: "Slots of this node that are taken, by handlers that run or do not stop.",
      registers,
    }),
    jobsEnqueued: new Counter({
      name: "engine_jobs_enqueued_total",
      help: "Jobs that were enqueued through this node; one that its key kept out is not counted.",
      labelNames,
      registers,
    }),
    jobAttempts: new Counter({
      name: "engine_job_attempts_total",
      help: "Claims of jobs through this node: each is an attempt.",
      labelNames,
      registers,
    }),
    jobAttemptsEnded: new Counter({
      name: "engine_job_attempts_ended_total",
      help:
        "Attempts that ended through this node by outcome: `done`, `failed` (for good), `retried` (there will be " +
        "another), `cancelled`, `released` (the holder stopped), `lease_lost` (the holder was silent; counted by the sweep).",
      labelNames: ["kind", "outcome"],
      registers,
    }),
    jobRunDuration: new Histogram({
      name: "engine_job_run_duration_seconds",
      help: "Time from the claim of a job until its holder said how it ended.",
      labelNames,
      buckets: LATENCY_SECONDS,
      registers,
    }),
    jobWaitDuration: new Histogram({
      name: "engine_job_wait_duration_seconds",
      help: "Time from when a job was due until it was claimed.",
      labelNames,
      buckets: LATENCY_SECONDS,
      registers,
    }),
  };
});
