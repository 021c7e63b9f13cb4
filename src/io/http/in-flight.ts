import type { Clock } from "../../core/clock.ts";

/** Counts requests that are being answered, and tells when there are none. */
export class InFlight {
  #count = 0;
  #waiters: (() => void)[] = [];

  get count(): number {
    return this.#count;
  }

  begin(): void {
    this.#count++;
  }

  end(): void {
    this.#count--;
    if (this.#count > 0) return;
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }

  /** Resolves when nothing is in flight, or after `timeoutMs`. */
  none(clock: Clock, timeoutMs: number): Promise<void> {
    if (this.#count === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = clock.after(timeoutMs, resolve);
      this.#waiters.push(() => {
        timer.cancel();
        resolve();
      });
    });
  }
}
