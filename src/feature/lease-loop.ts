import type { Catalog, Lease } from "../catalog/catalog.ts";
import { LeaseLost } from "../catalog/refusals.ts";
import { pause, type Clock, type TimerHandle } from "../core/clock.ts";
import { untilAborted } from "../core/concurrency.ts";
import { EngineError } from "../core/errors.ts";
import type { Service } from "../core/lifecycle.ts";
import type { Log } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Random } from "../core/random.ts";

/**
 * A background duty that one node of a cluster does at a time, by a lease in the catalog.
 *
 * Whoever has the lease does the duty every `pollMs` (less often while it is idle, where that is wished) and renews the
 * lease at a third of its time to live. When a renewal says that the lease is gone, or none got through until it must
 * have ended (by this node's clock that never goes back, counted from before the last renewal was asked for), the duty
 * is told to stop. It need not obey in time: its writes carry the lease, and the catalog refuses those of an old one.
 * The next node takes over after the time to live at most, or at once when this one stops in order.
 */
export type LeaseLoopOptions = {
  /** The name of the lease, of the service, and of the duty in logs and metrics. */
  name: string;
  /** Tells processes apart: no other one may have it, nor this one after a restart. */
  holder: string;
  duty: Duty;
  /** From the end of a run to the start of the next. */
  pollMs: number;
  /** The same after a run that was idle, when all runs have been for `idleMs`; by default `pollMs`. */
  idlePollMs?: (idleMs: number) => number;
  /** Hands over what has the next run begin at once; returns how to stop that. */
  wakes?: (wake: () => void) => () => void;
  /** By default `pollMs`, for a duty that comes seldom can be late by as much; 30 s at least. */
  ttlMs?: number;
  catalog: Pick<Catalog, "acquireLease" | "releaseLease">;
  clock: Clock;
  random: Random;
  log: Log;
  metrics: Metrics;
};

/**
 * One run of a duty; it may last as long as it likes. What it throws is logged and counted, and it is run again after
 * `pollMs`. Of several runs of this process none overlap.
 */
export type Duty = (turn: DutyTurn) => Promise<DutyResult | void>;

/** `isIdle`: there was nothing to do. */
export type DutyResult = { isIdle: boolean };

export type DutyTurn = {
  /** For the writes of the duty. */
  lease: Lease;
  /** Aborted when the lease is lost or the service drains: the duty should end soon, in a state that can be resumed. */
  signal: AbortSignal;
};

const MIN_TTL_MS = 30_000;

export function createLeaseLoop(options: LeaseLoopOptions): Service {
  return new LeaseLoop({ ...options, ttlMs: options.ttlMs ?? Math.max(MIN_TTL_MS, options.pollMs) });
}

type LoopOptions = LeaseLoopOptions & { ttlMs: number };

class LeaseLoop implements Service {
  readonly #options: LoopOptions;
  readonly #stop = new AbortController();
  #working: Promise<void> | undefined;

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  async run(): Promise<void> {
    this.#working ??= this.#work();
  }

  /** Resolves when the duty has ended and the lease is given back. */
  async drain(): Promise<void> {
    this.#stop.abort(new EngineError("unavailable", "the server is draining"));
    await this.#working;
  }

  async stop(): Promise<void> {
    await this.drain();
  }

  async #work(): Promise<void> {
    const { clock, random, ttlMs } = this.#options;
    const { signal } = this.#stop;
    this.#options.metrics.dutyHeld.set({ duty: this.name }, 0);
    while (!signal.aborted) {
      const tenure = await this.#acquire();
      if (tenure !== undefined) await this.#serve(tenure);
      // Not all at once: nodes that were started together would ask together for ever.
      await pause(clock, (ttlMs / 3) * (0.5 + random.next()), signal);
    }
  }

  async #acquire(): Promise<Tenure | undefined> {
    const { catalog, clock, name, holder, ttlMs, log } = this.#options;
    const { signal } = this.#stop;
    const askedAtMs = clock.monotonicMs();
    try {
      const lease = await untilAborted(catalog.acquireLease(name, holder, ttlMs), signal);
      return lease === undefined ? undefined : new Tenure(this.#options, lease, askedAtMs + ttlMs, signal);
    } catch (error) {
      if (!signal.aborted)
        log.warn({ err: error, duty: name }, "the lease of a background duty could not be asked for");
      return undefined;
    }
  }

  async #serve(tenure: Tenure): Promise<void> {
    const { catalog, clock, name, pollMs, idlePollMs, wakes, log, metrics } = this.#options;
    metrics.dutyHeld.set({ duty: name }, 1);
    metrics.dutyFence.set({ duty: name }, tenure.lease.fence);
    let idleSinceMs: number | undefined;
    let rest = new AbortController();
    const sleepOn = wakes?.(() => rest.abort());
    while (!tenure.signal.aborted) {
      // Who wakes it during the run may be too late for that one.
      rest = new AbortController();
      const isIdle = await this.#runOnce(tenure);
      const nowMs = clock.monotonicMs();
      idleSinceMs = isIdle ? (idleSinceMs ?? nowMs) : undefined;
      const restMs = idleSinceMs === undefined ? pollMs : (idlePollMs?.(nowMs - idleSinceMs) ?? pollMs);
      await pause(clock, restMs, AbortSignal.any([tenure.signal, rest.signal]));
    }
    sleepOn?.();
    await tenure.end();
    metrics.dutyHeld.set({ duty: name }, 0);
    if (tenure.isLost) return;
    await catalog.releaseLease(tenure.lease).catch((error: unknown) => {
      log.warn({ err: error, duty: name }, "the lease of a background duty could not be given back; it will end");
    });
  }

  /** Whether there was nothing to do, and that is certain. */
  async #runOnce(tenure: Tenure): Promise<boolean> {
    const { name, duty, log, metrics, clock } = this.#options;
    const { lease, signal } = tenure;
    const startedMs = clock.monotonicMs();
    let outcome = "ok";
    let isIdle = false;
    try {
      isIdle = (await duty({ lease, signal }))?.isIdle ?? false;
    } catch (error) {
      outcome = "error";
      if (error instanceof LeaseLost) tenure.lose(error.message);
      if (!signal.aborted) log.error({ err: error, duty: name }, "a background duty failed; it will be tried again");
    }
    if (signal.aborted) outcome = "stopped";
    metrics.dutyRuns.inc({ duty: name, outcome });
    metrics.dutyDuration.observe({ duty: name }, (clock.monotonicMs() - startedMs) / 1000);
    if (outcome === "ok") metrics.dutySucceededAt.set({ duty: name }, clock.nowMs() / 1000);
    return isIdle;
  }
}

/** A lease as long as it is held: renewed in time, or lost. */
class Tenure {
  readonly lease: Lease;
  /** Aborted when the lease is lost or `stop` is. */
  readonly signal: AbortSignal;
  readonly #options: LoopOptions;
  readonly #lost = new AbortController();
  #renewal: TimerHandle;
  #deadline: TimerHandle;
  #renewing: Promise<void> = Promise.resolve();

  /** Up to `untilMs` (monotonic) the lease is certainly held. */
  constructor(options: LoopOptions, lease: Lease, untilMs: number, stop: AbortSignal) {
    this.#options = options;
    this.lease = lease;
    this.signal = AbortSignal.any([stop, this.#lost.signal]);
    this.#deadline = this.#endAt(untilMs);
    this.#renewal = this.#renewAfter(options.ttlMs / 3);
  }

  get isLost(): boolean {
    return this.#lost.signal.aborted;
  }

  lose(reason: string): void {
    if (this.isLost) return;
    const { name, log } = this.#options;
    this.#cancel();
    log.warn({ duty: name, fence: this.lease.fence, reason }, "the lease of a background duty is lost");
    this.#lost.abort(new LeaseLost(this.lease.name));
  }

  /** Resolves when nothing is renewed any more: a late renewal would take the lease again after it was given back. */
  async end(): Promise<void> {
    this.#cancel();
    await this.#renewing;
    this.#cancel();
  }

  #cancel(): void {
    this.#renewal.cancel();
    this.#deadline.cancel();
  }

  #renewAfter(delayMs: number): TimerHandle {
    return this.#options.clock.after(delayMs, () => void (this.#renewing = this.#renew()));
  }

  #endAt(untilMs: number): TimerHandle {
    const { clock } = this.#options;
    return clock.after(Math.max(0, untilMs - clock.monotonicMs()), () => this.lose("no renewal got through"));
  }

  async #renew(): Promise<void> {
    const { catalog, clock, name, holder, ttlMs, log } = this.#options;
    const askedAtMs = clock.monotonicMs();
    try {
      const renewed = await catalog.acquireLease(name, holder, ttlMs);
      if (this.signal.aborted) return;
      if (renewed?.fence !== this.lease.fence) {
        this.lose("somebody else had it");
        return;
      }
      this.#deadline.cancel();
      this.#deadline = this.#endAt(askedAtMs + ttlMs);
      this.#renewal = this.#renewAfter(ttlMs / 3);
    } catch (error) {
      if (this.signal.aborted) return;
      log.warn({ err: error, duty: name }, "the lease of a background duty could not be renewed");
      this.#renewal = this.#renewAfter(ttlMs / 12);
    }
  }
}
