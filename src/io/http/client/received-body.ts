/** How much of an answer is kept for its reader before the sender is made to wait. */
const HIGH_WATER_BYTES = 128 * 1024;

/** Where a body comes from. */
export type BodyFlow = {
  /** Ask for no more; what is under way may still be pushed. */
  pause(): void;
  resume(): void;
  /** Nobody reads the rest. */
  cancel(): void;
};

/**
 * The body of an answer between the connection, which pushes pieces, and its one reader, who takes them at its own
 * pace. It ends with `end`, or, when something is missing, fails: a reader never takes a part for the whole.
 */
export class ReceivedBody implements AsyncIterable<Uint8Array> {
  readonly #flow: BodyFlow;
  #pieces: Uint8Array[] = [];
  #waitingBytes = 0;
  #paused = false;
  #over: { error?: Error } | undefined;
  #wake: (() => void) | undefined;

  constructor(flow: BodyFlow) {
    this.#flow = flow;
  }

  push(piece: Uint8Array): void {
    this.#pieces.push(piece);
    this.#waitingBytes += piece.length;
    if (this.#waitingBytes >= HIGH_WATER_BYTES && !this.#paused) {
      this.#paused = true;
      this.#flow.pause();
    }
    this.#notify();
  }

  end(): void {
    this.#over ??= {};
    this.#notify();
  }

  fail(error: Error): void {
    this.#over ??= { error };
    this.#notify();
  }

  /** Drops what there is and tells the sender. */
  cancel(): void {
    this.#pieces = [];
    if (this.#over !== undefined) return;
    this.#over = {};
    this.#flow.cancel();
    this.#notify();
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return {
      next: () => this.#next(),
      return: async () => {
        this.cancel();
        return { done: true, value: undefined };
      },
    };
  }

  async #next(): Promise<IteratorResult<Uint8Array>> {
    for (;;) {
      const value = this.#pieces.shift();
      if (value !== undefined) {
        this.#took(value.length);
        return { done: false, value };
      }
      if (this.#over?.error !== undefined) throw this.#over.error;
      if (this.#over !== undefined) return { done: true, value: undefined };
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #took(sizeBytes: number): void {
    this.#waitingBytes -= sizeBytes;
    if (!this.#paused || this.#waitingBytes >= HIGH_WATER_BYTES / 2) return;
    this.#paused = false;
    this.#flow.resume();
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
