import { EngineError } from "../core/errors.ts";

/** The bound on bytes that are accepted and not yet answered: past it the answer is 429, never a longer queue. */
export class ByteBudget {
  readonly #maxBytes: number;
  #usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Reserves bytes; throws `too_many_requests` when they do not fit. A request that finds nothing in flight always fits. */
  reserve(sizeBytes: number): Reservation {
    if (this.#usedBytes > 0 && this.#usedBytes + sizeBytes > this.#maxBytes) {
      throw new EngineError(
        "too_many_requests",
        `${this.#usedBytes} bytes of ingest are in flight, and at most ${this.#maxBytes} may be; retry`,
        { headers: { "Retry-After": "1" } },
      );
    }
    this.#usedBytes += sizeBytes;
    return new Reservation(sizeBytes, (byBytes) => {
      this.#usedBytes += byBytes;
    });
  }
}

export class Reservation {
  #sizeBytes: number;
  readonly #change: (byBytes: number) => void;

  constructor(sizeBytes: number, change: (byBytes: number) => void) {
    this.#sizeBytes = sizeBytes;
    this.#change = change;
  }

  /** The real size, once it is known. */
  resize(sizeBytes: number): void {
    this.#change(sizeBytes - this.#sizeBytes);
    this.#sizeBytes = sizeBytes;
  }

  release(): void {
    this.resize(0);
  }
}

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
