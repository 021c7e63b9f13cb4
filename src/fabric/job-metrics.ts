import type { Metrics } from "../core/metrics.ts";
import type { Job } from "./job.ts";
import type { QueueDepth } from "./list.ts";
import { JOB_METRICS } from "./metrics.ts";

/** How an attempt ended, as metrics tell it. */
type AttemptOutcome = "done" | "failed" | "retried" | "cancelled" | "released" | "lease_lost";

/** Counts what the fabric of this process does. */
export class JobMetrics {
  readonly #metrics: ReturnType<typeof JOB_METRICS.of>;

  constructor(metrics: Pick<Metrics, "registry">) {
    this.#metrics = JOB_METRICS.of(metrics);
  }

  enqueued(job: Job): void {
    this.#metrics.jobsEnqueued.inc({ kind: this.#kindOf(job) });
  }

  claimed(job: Job): void {
    const kind = this.#kindOf(job);
    this.#metrics.jobAttempts.inc({ kind });
    const waitedMs = (job.startedAtMs ?? job.runAfterMs) - job.runAfterMs;
    this.#metrics.jobWaitDuration.observe({ kind }, Math.max(0, waitedMs) / 1_000);
  }

  /** The holder said how the attempt ended. */
  ended(job: Job, outcome: AttemptOutcome = outcomeOf(job)): void {
    const kind = this.#kindOf(job);
    this.#metrics.jobAttemptsEnded.inc({ kind, outcome });
    if (job.startedAtMs === undefined) return;
    this.#metrics.jobRunDuration.observe({ kind }, Math.max(0, job.updatedAtMs - job.startedAtMs) / 1_000);
  }

  /** The holder said nothing any more. */
  swept(job: Job): void {
    this.#metrics.jobAttemptsEnded.inc({ kind: this.#kindOf(job), outcome: "lease_lost" });
  }

  /** What waits and runs, all nodes together: depths, and for how long the oldest of a kind has been due. */
  showQueue(depths: readonly QueueDepth[], oldestMs: ReadonlyMap<string, number>): void {
    this.hideQueue();
    const { jobsUnfinished, jobsOldestWaiting, jobKindLabel } = this.#metrics;
    // Kinds past the most share a label: theirs add up, and the oldest of them counts.
    for (const { kind, status, count } of depths) jobsUnfinished.inc({ kind: jobKindLabel.of(kind), status }, count);
    const oldest = new Map<string, number>();
    for (const [kind, ms] of oldestMs) {
      const label = jobKindLabel.of(kind);
      oldest.set(label, Math.max(ms, oldest.get(label) ?? 0));
    }
    for (const [kind, ms] of oldest) jobsOldestWaiting.set({ kind }, ms / 1_000);
  }

  /** Another node tells from here on. */
  hideQueue(): void {
    this.#metrics.jobsUnfinished.reset();
    this.#metrics.jobsOldestWaiting.reset();
  }

  #kindOf({ kind }: Job): string {
    return this.#metrics.jobKindLabel.of(kind);
  }
}

function outcomeOf({ status }: Job): AttemptOutcome {
  return status === "done" || status === "failed" || status === "cancelled" ? status : "retried";
}
