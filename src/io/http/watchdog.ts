import type { Clock, TimerHandle } from "../../core/clock.ts";

/** Something that waits for its client and must not do so for ever. */
export interface Watched {
  /** Called about once a second while watched. */
  check(nowMs: number): void;
}

const PERIOD_MS = 1_000;

/** One timer for all that wait: cheaper than one each, and most are gone before it first runs. */
export class Watchdog {
  readonly #watched = new Set<Watched>();
  readonly #timer: TimerHandle;

  constructor(clock: Clock, shortestTimeoutMs: number) {
    const periodMs = Math.max(10, Math.min(PERIOD_MS, shortestTimeoutMs / 4));
    this.#timer = clock.every(periodMs, () => {
      const nowMs = clock.monotonicMs();
      for (const watched of this.#watched) watched.check(nowMs);
    });
  }

  watch(watched: Watched): void {
    this.#watched.add(watched);
  }

  release(watched: Watched): void {
    this.#watched.delete(watched);
  }

  stop(): void {
    this.#timer.cancel();
    this.#watched.clear();
  }
}
