/**
 * Bounds how many run at a time: a dashboard of fifty panels would otherwise ask everything at once, and take all that one
 * caller may have running. They begin in the order in which they came.
 */
export class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#free = most;
  }

  /** Runs `action` once there is room. One whose signal is aborted before that does not begin. */
  async run<T>(signal: AbortSignal, action: () => Promise<T>): Promise<T | undefined> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return signal.aborted ? undefined : await action();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
