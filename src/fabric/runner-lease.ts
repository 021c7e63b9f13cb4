import { sleep, type Clock, type TimerHandle } from "../core/clock.ts";
import { untilAborted } from "../core/concurrency.ts";
import { messageOf, type EngineError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Random } from "../core/random.ts";
import type { JobPort, RunningLease } from "./handler.ts";
import { holdOf, type LeasedJob, type Hold } from "./job.ts";
import { FABRIC_LIMITS } from "./limits.ts";
import { isLeaseLost, leaseLost } from "./refusals.ts";
import { Backoff } from "../core/backoff.ts";
import { isPassing, NodeRefused } from "./runner-failure.ts";

export type HeldLeaseOptions = {
  port: JobPort;
  clock: Clock;
  random: Random;
  log: Log;
  /** The fabric said, in whatever answer, that the job is to be cancelled. May be called more than once. */
  onCancelRequested: () => void;
  /** The fabric refuses this node as a whole. */
  onRefused: (error: NodeRefused) => void;
};

/** Writes that failed are repeated after this long, doubled each time, up to the most. */
const RETRY = { firstMs: 200, mostMs: 5_000 } as const;

/**
 * The lease of one job as long as this node has it. It is renewed at a third of its length. When an answer says that it
 * is gone, or no renewal got through until it must have ended (by this node's clock that never goes back, counted from
 * before the last renewal was asked for), it is lost: `lost` is aborted, and nothing more is sent for this hold.
 */
export class HeldLease implements RunningLease {
  readonly hold: Hold;
  readonly #options: HeldLeaseOptions;
  readonly #leaseMs: number;
  readonly #lost = new AbortController();
  readonly #renewed = new Set<(untilMs: number) => void>();
  #untilMs: number;
  #renewal: TimerHandle | undefined;
  #deadline: TimerHandle | undefined;
  #isOver = false;

  /** `askedAtMs`: on the monotonic clock, before the job was claimed. */
  constructor(options: HeldLeaseOptions, job: LeasedJob, askedAtMs: number) {
    const { min, max } = FABRIC_LIMITS.leaseMs;
    this.#options = options;
    this.hold = holdOf(job);
    this.#leaseMs = Math.min(max, Math.max(min, job.leaseMs));
    this.#untilMs = askedAtMs + job.leaseMs;
    // A claim may have waited for long, for longer than a lease too, and the lease begun at any time of that: then it is
    // renewed at once, and not lost before that had its time.
    const nowMs = options.clock.monotonicMs();
    this.#deadline = this.#endAt(Math.max(this.#untilMs, nowMs + this.#leaseMs / 3));
    this.#renewAfter(Math.max(0, this.#leaseMs / 3 - (nowMs - askedAtMs)));
  }

  /** Aborted when the lease is lost or given up; the reason says which. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  get untilMs(): number {
    return this.#untilMs;
  }

  onRenewed(listener: (untilMs: number) => void): void {
    this.#renewed.add(listener);
  }

  /** One try. Rejects as the write does, and with the reason of `lost`. */
  async write<T>(write: () => Promise<T>): Promise<T> {
    this.lost.throwIfAborted();
    try {
      return await untilAborted(write(), this.lost);
    } catch (error) {
      if (isLeaseLost(error)) this.lose(messageOf(error));
      if (error instanceof NodeRefused) {
        this.lose(error.message);
        this.#options.onRefused(error);
      }
      throw error;
    }
  }

  /** Tries until it succeeds, the fabric refuses it for good, or the lease is lost. */
  async persist<T>(write: () => Promise<T>): Promise<T> {
    const { clock, random, log } = this.#options;
    const backoff = new Backoff({ random, ...RETRY });
    for (;;) {
      try {
        return await this.write(write);
      } catch (error) {
        if (this.lost.aborted || !isPassing(error)) throw error;
        log.debug({ jobId: this.hold.jobId, reason: messageOf(error) }, "a write for a job failed; trying again");
        await sleep(clock, backoff.next(), this.lost);
      }
    }
  }

  lose(reason: string): void {
    if (this.lost.aborted || this.#isOver) return;
    const { jobId, fence } = this.hold;
    this.#options.log.warn({ jobId, fence, reason }, "the lease of a job is lost");
    this.giveUp(leaseLost(this.hold));
  }

  /** Nothing more is sent. */
  giveUp(reason: EngineError): void {
    this.end();
    this.#lost.abort(reason);
  }

  /** The job is finished, or somebody else's: nothing is renewed any more. */
  end(): void {
    this.#isOver = true;
    this.#renewal?.cancel();
    this.#deadline?.cancel();
  }

  /** Resolves once the lease is certain to last for some time. Rejects when it is lost before. */
  async confirm(): Promise<void> {
    const isCertain = this.#untilMs - this.#options.clock.monotonicMs() > this.#leaseMs / 2;
    if (!isCertain) await this.persist(() => this.#extend());
  }

  #renewAfter(delayMs: number): void {
    this.#renewal?.cancel();
    this.#renewal = this.#options.clock.after(delayMs, () => void this.#renew());
  }

  #endAt(untilMs: number): TimerHandle {
    const { clock } = this.#options;
    return clock.after(Math.max(0, untilMs - clock.monotonicMs()), () => this.lose("no renewal got through"));
  }

  async #renew(): Promise<void> {
    try {
      await this.write(() => this.#extend());
      if (!this.#isOver) this.#renewAfter(this.#leaseMs / 3);
    } catch (error) {
      if (this.#isOver) return;
      const { jobId } = this.hold;
      this.#options.log.warn({ jobId, reason: messageOf(error) }, "the lease of a job could not be renewed");
      this.#renewAfter(this.#leaseMs / 12);
    }
  }

  async #extend(): Promise<void> {
    const { port, clock, onCancelRequested } = this.#options;
    const askedAtMs = clock.monotonicMs();
    const { cancelRequested } = await port.extend(this.hold, this.#leaseMs);
    if (this.#isOver) return;
    this.#deadline?.cancel();
    this.#untilMs = Math.max(this.#untilMs, askedAtMs + this.#leaseMs);
    this.#deadline = this.#endAt(this.#untilMs);
    for (const listener of this.#renewed) listener(this.#untilMs);
    if (cancelRequested) onCancelRequested();
  }
}
