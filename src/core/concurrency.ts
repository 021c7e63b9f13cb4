/** Small bounded building blocks for concurrent code. */

/** A promise with its settlers. */
export type Deferred<T> = PromiseWithResolvers<T>;

/** At most `permits` holders at a time; waiters are served in order. */
export class Semaphore {
  #free: number;
  readonly #waiters: (() => void)[] = [];

  constructor(permits: number) {
    this.#free = permits;
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiters.push(resolve));
    try {
      return await task();
    } finally {
      const next = this.#waiters.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}

/** Calls for the same key that overlap share one run. */
export class SingleFlight<K, V> {
  readonly #running = new Map<K, Promise<V>>();

  run(key: K, task: () => Promise<V>): Promise<V> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const started = task().finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }
}
