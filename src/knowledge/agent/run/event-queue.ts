/** What a run tells, for the one who reads it. It holds what is not read yet, which the limits of a run bound. */
export class EventQueue<T> implements AsyncIterator<T, undefined> {
  readonly #items: T[] = [];
  readonly #onLeave: () => void;
  #isOver = false;
  #waiting: ((step: IteratorResult<T, undefined>) => void) | undefined;

  /** `onLeave`: the reader gave up before the end. */
  constructor(onLeave: () => void) {
    this.#onLeave = onLeave;
  }

  push(item: T): void {
    if (this.#isOver) return;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) this.#items.push(item);
    else waiting({ done: false, value: item });
  }

  /** No more comes; what is there is read first. */
  end(): void {
    this.#isOver = true;
    this.#waiting?.({ done: true, value: undefined });
    this.#waiting = undefined;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const item = this.#items.shift();
    if (item !== undefined) return Promise.resolve({ done: false, value: item });
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => (this.#waiting = resolve));
  }

  return(): Promise<IteratorResult<T, undefined>> {
    if (!this.#isOver) this.#onLeave();
    this.#items.length = 0;
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }
}
