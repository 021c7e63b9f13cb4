import { formatPosition, type TailPosition } from "./position.ts";

/** What a reader of a tail gets. */
export type TailItem =
  /** A row as one line of JSON. */
  | { kind: "row"; id: string; text: string }
  /** No row up to there is left out, though none was shown. */
  | { kind: "position"; id: string }
  /** The last item. `reconnect`: whoever comes again with the last id goes on. */
  | { kind: "end"; code: string; message: string; reconnect: boolean };

export type TailEnd = Omit<TailItem & { kind: "end" }, "kind">;

/** A row, and where its reader is when it has it. */
export type ReadRow = { position: TailPosition; text: string };

export type TailOptions = {
  filter: string;
  position: TailPosition;
  /** It has handed over all that it had. */
  onDrained: () => void;
  /** No more comes of it; undefined: its reader gave it up. */
  onEnd: (last: TailEnd | undefined) => void;
};

/**
 * One reader. It holds what one scan found for it, and is not read for until it has handed that over; so a slow reader
 * costs the memory of one scan's rows, and reads later what comes meanwhile.
 *
 * By hand, for a generator that waits cannot be told to end.
 */
export class Tail implements AsyncIterableIterator<TailItem> {
  readonly filter: string;
  readonly #options: TailOptions;
  #position: TailPosition;
  #rows: readonly ReadRow[] = [];
  #taken = 0;
  #last: TailItem | undefined;
  #isEnded = false;
  /** The position that its reader knows. */
  #told: string;
  #next: PromiseWithResolvers<IteratorResult<TailItem>> | undefined;

  constructor(options: TailOptions) {
    this.filter = options.filter;
    this.#options = options;
    this.#position = options.position;
    this.#told = formatPosition(options.position);
  }

  /** Up to where it was read for. */
  get position(): TailPosition {
    return this.#position;
  }

  /** Whether it can be read for. */
  get isReady(): boolean {
    return this.#taken >= this.#rows.length && !this.#isEnded;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<TailItem>> {
    this.#next ??= Promise.withResolvers();
    const { promise } = this.#next;
    this.#hand();
    return promise;
  }

  async return(): Promise<IteratorResult<TailItem>> {
    this.end();
    return { done: true, value: undefined };
  }

  /** What a scan found, and up to where it looked. Only of one that is ready. */
  push(rows: readonly ReadRow[], position: TailPosition): void {
    if (this.#isEnded) return;
    this.#rows = rows;
    this.#taken = 0;
    this.#position = position;
    this.#hand();
  }

  /** Tells a reader that waits where it is, if it does not know. */
  tellPosition(): void {
    const id = formatPosition(this.#position);
    if (this.#next === undefined || !this.isReady || id === this.#told) return;
    this.#told = id;
    this.#resolve({ kind: "position", id });
  }

  /** What was not handed over is left out: whoever comes again is shown it. */
  end(last?: TailEnd): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#rows = [];
    this.#last = last === undefined ? undefined : { kind: "end", ...last };
    this.#options.onEnd(last);
    this.#hand();
  }

  #hand(): void {
    if (this.#next === undefined) return;
    const row = this.#rows[this.#taken];
    if (row !== undefined) {
      this.#taken++;
      const id = formatPosition(row.position);
      this.#told = id;
      this.#resolve({ kind: "row", id, text: row.text });
      if (this.isReady) this.#drained();
      return;
    }
    if (!this.#isEnded) return;
    const last = this.#last;
    this.#last = undefined;
    this.#resolve(last);
  }

  #drained(): void {
    this.#rows = [];
    this.#taken = 0;
    this.#options.onDrained();
  }

  #resolve(item: TailItem | undefined): void {
    const next = this.#next;
    this.#next = undefined;
    next?.resolve(item === undefined ? { done: true, value: undefined } : { done: false, value: item });
  }
}
