import type { Catalog, FlushCommit, FlushOutcome } from "../catalog/catalog.ts";
import type { Clock, TimerHandle } from "../core/clock.ts";
import type { Metrics } from "../core/metrics.ts";
import { INGEST_METRICS, countCommitted } from "./metrics.ts";

/**
 * Group commit: flushes that finish together share one snapshot, and so one fsync of the catalog.
 *
 * A commit starts at once when no other flush is on its way to join it; else it waits for them, at most `windowMs`.
 * While a commit runs, the next one gathers. At most `maxExtents` extents go into one snapshot.
 */
export type CommitterPorts = {
  catalog: Pick<Catalog, "commit">;
  clock: Clock;
  metrics: Metrics;
  windowMs: number;
  maxExtents: number;
};

type Waiting = { flush: FlushCommit; settle: PromiseWithResolvers<FlushOutcome> };

export class Committer {
  readonly #ports: CommitterPorts;
  #waiting: Waiting[] = [];
  #approaching = 0;
  #committing = false;
  #timer: TimerHandle | undefined;

  constructor(ports: CommitterPorts) {
    this.#ports = ports;
  }

  /** Announces a flush that will commit soon; every call is followed by exactly one `leave`. */
  approach(): void {
    this.#approaching++;
  }

  /** The announced flush has been handed to `commit`, or will not come. */
  leave(): void {
    this.#approaching--;
    this.#consider();
  }

  commit(flush: FlushCommit): Promise<FlushOutcome> {
    const settle = Promise.withResolvers<FlushOutcome>();
    this.#waiting.push({ flush, settle });
    this.#consider();
    return settle.promise;
  }

  #consider(): void {
    if (this.#committing || this.#waiting.length === 0) return;
    if (this.#approaching === 0 || this.#waitingExtents() >= this.#ports.maxExtents) this.#start();
    else this.#timer ??= this.#ports.clock.after(this.#ports.windowMs, () => this.#start());
  }

  #waitingExtents(): number {
    return this.#waiting.reduce((sum, { flush }) => sum + flush.extents.length, 0);
  }

  #start(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#committing || this.#waiting.length === 0) return;
    this.#committing = true;
    void this.#run(this.#nextBatch()).finally(() => {
      this.#committing = false;
      this.#consider();
    });
  }

  #nextBatch(): Waiting[] {
    let extents = 0;
    let count = 0;
    for (const { flush } of this.#waiting) {
      extents += flush.extents.length;
      if (count > 0 && extents > this.#ports.maxExtents) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  async #run(batch: Waiting[]): Promise<void> {
    const { catalog, clock, metrics } = this.#ports;
    const startedMs = clock.monotonicMs();
    try {
      const outcomes = await catalog.commit(batch.map(({ flush }) => flush));
      batch.forEach(({ flush, settle }, i) => {
        const outcome = outcomes[i];
        if (outcome === undefined) settle.reject(new Error("the catalog gave no outcome for a flush"));
        else settle.resolve(outcome);
        if (outcome?.kind !== "committed") return;
        INGEST_METRICS.of(metrics).extentsCommitted.inc(flush.extents.length);
        INGEST_METRICS.of(metrics).extentBytesCommitted.inc(
          flush.extents.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
        );
        countCommitted(metrics, flush);
      });
    } catch (error) {
      for (const { settle } of batch) settle.reject(error);
    } finally {
      INGEST_METRICS.of(metrics).commitDuration.observe((clock.monotonicMs() - startedMs) / 1000);
    }
  }
}
