import { CallEndedError } from "../../io/grpc/grpc.ts";

type Observer = {
  /** What to fail with instead. */
  failed: (error: unknown) => unknown;
  /** Called once: `error` is undefined when all messages were taken. */
  ended: (bytes: number, error: unknown) => void;
};

/**
 * The same messages, watched to their end. Not a generator: one that was never started would not pass its `return` on.
 */
export class ObservedMessages implements AsyncIterableIterator<Uint8Array> {
  readonly #inner: AsyncIterator<Uint8Array>;
  readonly #observer: Observer;
  #bytes = 0;
  #isOver = false;

  constructor(messages: AsyncIterable<Uint8Array>, observer: Observer) {
    this.#inner = messages[Symbol.asyncIterator]();
    this.#observer = observer;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    try {
      const step = await this.#inner.next();
      if (step.done === true) this.#end(undefined);
      else this.#bytes += step.value.byteLength;
      return step;
    } catch (error) {
      const failure = this.#observer.failed(error);
      this.#end(failure);
      throw failure;
    }
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    try {
      await this.#inner.return?.();
    } finally {
      this.#end(new CallEndedError("cancelled"));
    }
    return { done: true, value: undefined };
  }

  #end(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#observer.ended(this.#bytes, error);
  }
}
