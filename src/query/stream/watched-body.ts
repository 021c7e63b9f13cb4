/** The same bytes; `onEnd` is called once, when they are read to the end, fail, or are given up. */
export function watchedBody(body: AsyncIterable<Uint8Array>, onEnd: () => void): AsyncIterable<Uint8Array> {
  return new WatchedBody(body[Symbol.asyncIterator](), onEnd);
}

/** Not a generator: one that was never started would not pass its `return` on. */
class WatchedBody implements AsyncIterableIterator<Uint8Array> {
  readonly #inner: AsyncIterator<Uint8Array>;
  #onEnd: (() => void) | undefined;

  constructor(inner: AsyncIterator<Uint8Array>, onEnd: () => void) {
    this.#inner = inner;
    this.#onEnd = onEnd;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    try {
      const next = await this.#inner.next();
      if (next.done === true) this.#end();
      return next;
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    try {
      await this.#inner.return?.();
    } finally {
      this.#end();
    }
    return { done: true, value: undefined };
  }

  #end(): void {
    const onEnd = this.#onEnd;
    this.#onEnd = undefined;
    onEnd?.();
  }
}
