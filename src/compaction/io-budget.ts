import { sleep, type Clock } from "../core/clock.ts";
import type { Metrics } from "../core/metrics.ts";
import { COMPACTION_METRICS } from "./metrics.ts";

/**
 * How many bytes merges may move in a second: a token bucket that may be overdrawn. Bytes are moved in pieces, some of
 * which are only known when they have been moved; each is charged whole, and whoever comes next waits until all that was
 * charged before is paid. Over any longer time the rate holds, and nobody needs to cut pieces to size.
 *
 * | kind     | what                                                                                            |
 * |----------|-------------------------------------------------------------------------------------------------|
 * | download | inputs that are read from the object store to this machine's disk                               |
 * | merge    | what the merging process reads and writes, from the page cache or not: inputs, spills, outputs  |
 * | upload   | outputs that are written to the object store                                                    |
 * | verify   | what the process reads that verifies extents                                                    |
 */
export type IoKind = "download" | "merge" | "upload" | "verify";

export type IoBudgetOptions = {
  clock: Clock;
  /** 0 lets everything pass; it is counted all the same. */
  bytesPerSec: number;
  metrics: Pick<Metrics, "registry">;
};

/** Of the rate, what may be moved at once after a rest. */
const BURST_MS = 250;
/** Timers are not made for weeks. */
const MAX_SLEEP_MS = 60_000;

export class IoBudget {
  readonly #options: IoBudgetOptions;
  /** When all that was charged is paid, on the monotonic clock. */
  #paidAtMs = -Infinity;

  constructor(options: IoBudgetOptions) {
    this.#options = options;
  }

  /** For how long nothing should be moved: 0 when all that was charged is paid. */
  get owedMs(): number {
    return Math.max(0, this.#paidAtMs - this.#options.clock.monotonicMs());
  }

  /** Charges bytes that have been moved. */
  charge(kind: IoKind, sizeBytes: number): void {
    const { clock, bytesPerSec, metrics } = this.#options;
    COMPACTION_METRICS.of(metrics).compactionIoBytes.inc({ kind }, sizeBytes);
    if (bytesPerSec === 0) return;
    const fromMs = Math.max(this.#paidAtMs, clock.monotonicMs() - BURST_MS);
    this.#paidAtMs = fromMs + (sizeBytes * 1000) / bytesPerSec;
  }

  /** Charges bytes that are to be moved, and resolves when they may be. Rejects with the signal's reason. */
  async take(kind: IoKind, sizeBytes: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const fromMs = this.#paidAtMs;
    this.charge(kind, sizeBytes);
    const askedAtMs = clock.monotonicMs();
    if (fromMs <= askedAtMs) return;
    try {
      for (let leftMs = fromMs - askedAtMs; leftMs > 0; leftMs = fromMs - clock.monotonicMs()) {
        await sleep(clock, Math.min(leftMs, MAX_SLEEP_MS), signal);
      }
    } finally {
      this.countWait(clock.monotonicMs() - askedAtMs);
    }
  }

  /** Counts time in which nothing was moved because of the budget alone. */
  countWait(waitedMs: number): void {
    if (waitedMs > 0) COMPACTION_METRICS.of(this.#options.metrics).compactionIoWait.inc(waitedMs / 1000);
  }
}
