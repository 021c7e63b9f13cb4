import type { Clock } from "../../core/clock.ts";
import type { Permit } from "./admission.ts";
import { budgetError, budgetOf, type QueryBudget } from "./budget.ts";
import type { Watchdog, Watched } from "./watchdog.ts";

/** The process that works for the query. */
export type Supervised = Watched & { cancel(reason: Error): void; lowerPriority(): void };

/**
 * What stands over a process while it works for one query: the query is cancelled when it is stopped (its time is up, its
 * client left), and when it turns out to be a large one and no permit for those is free. The process is killed when it
 * takes too much memory. A query that may stay becomes one of low priority: small queries pass it on the processor.
 */
export type Supervision = {
  /** What a failure of the process means. */
  reasonOf(error: unknown): unknown;
  /** Whether the process failed because the query was cancelled: it is large, and must wait for the permit of such. */
  isOutgrown(error: unknown): boolean;
  /** Whether the query has taken so long that it is large. */
  isLong(): boolean;
  /** The most that the process has grown by, as far as it was seen. */
  peakBytes(): number;
  /** Nothing happens to the process any more. Harmless when repeated. */
  end(): void;
};

/** A query that has its process for so long is large, whatever it reads. */
const DEFAULT_LARGE_AFTER_MS = 1_000;

export function supervise(options: {
  child: Supervised;
  stop: AbortSignal;
  permit: Permit;
  budget: QueryBudget;
  clock: Clock;
  watchdog: Watchdog;
  largeAfterMs?: number;
}): Supervision {
  const { child, stop, permit, budget, clock, largeAfterMs = DEFAULT_LARGE_AFTER_MS } = options;
  const onStop = (): void => child.cancel(stop.reason as Error);
  stop.addEventListener("abort", onStop, { once: true });
  if (stop.aborted) onStop();
  const watch = options.watchdog.watch(child, budget.memoryBytes);
  let long = false;
  let outgrown: Error | undefined;
  const timer = clock.after(largeAfterMs, () => {
    long = true;
    if (permit.grow()) {
      child.lowerPriority();
      return;
    }
    outgrown = new Error("the query is larger than it was taken for");
    child.cancel(outgrown);
  });
  return {
    reasonOf(error) {
      if (stop.aborted) return stop.reason;
      const breach = budgetOf(error);
      if (breach?.name !== "memory_bytes") return error;
      // Who noticed knew neither the most that was taken, nor, from outside, what this query was allowed.
      return budgetError("memory_bytes", Math.max(watch.peakBytes(), breach.used), budget.memoryBytes);
    },
    isOutgrown: (error) => outgrown !== undefined && error === outgrown,
    isLong: () => long,
    peakBytes: () => watch.peakBytes(),
    end() {
      timer.cancel();
      watch.stop();
      stop.removeEventListener("abort", onStop);
    },
  };
}
