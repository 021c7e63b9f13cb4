/**
 * Requests under way by idempotency key. A request whose key is under way waits for the first and takes its answer; if
 * the first failed, nothing was stored and the next one tries for itself.
 */
export class KeysUnderWay<T> {
  readonly #running = new Map<string, Promise<T>>();

  /** Runs `task` unless a task of that key is running: then its result is passed to `asReplay`. */
  async run(key: string, task: () => Promise<T>, asReplay: (first: T) => T): Promise<T> {
    for (let first = this.#running.get(key); first !== undefined; first = this.#running.get(key)) {
      const outcome = await first.then(
        (value) => ({ value }),
        () => undefined,
      );
      if (outcome !== undefined) return asReplay(outcome.value);
    }
    const running = task().finally(() => this.#running.delete(key));
    this.#running.set(key, running);
    return running;
  }
}
