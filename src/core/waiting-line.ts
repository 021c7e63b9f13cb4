import type { Clock } from "./clock.ts";

/** How long one waits, and what it is told when that was too long. */
export type Patience = { signal: AbortSignal; timeoutMs: number; onTimeout: () => Error };

/** Those who wait for something, in the order in which they came, each with what tells it from the others. */
export class WaitingLine<K, T> {
  readonly #clock: Clock;
  readonly #waiters = new Map<K, PromiseWithResolvers<T>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#waiters.size;
  }

  /** First come, first. One may be served while they are gone through. */
  keys(): IterableIterator<K> {
    return this.#waiters.keys();
  }

  /**
   * Waits at the end of the line until `serve` or `refuse` names the key. Rejects with the signal's reason, or after a
   * time. One that gives up is out of the line in the same moment: what it were served then would be lost.
   */
  async wait(key: K, { signal, timeoutMs, onTimeout }: Patience): Promise<T> {
    const waiter = Promise.withResolvers<T>();
    const onAbort = (): void => this.refuse(key, signal.reason as Error);
    const timer = this.#clock.after(timeoutMs, () => this.refuse(key, onTimeout()));
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiters.set(key, waiter);
    if (signal.aborted) onAbort();
    try {
      return await waiter.promise;
    } finally {
      timer.cancel();
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Gives the waiter what it waits for. */
  serve(key: K, value: T): void {
    const waiter = this.#waiters.get(key);
    this.#waiters.delete(key);
    waiter?.resolve(value);
  }

  /** Sends the waiter away. */
  refuse(key: K, error: Error): void {
    const waiter = this.#waiters.get(key);
    this.#waiters.delete(key);
    waiter?.reject(error);
  }
}
