/**
 * What all partitions of this process may hold together of what was fetched, and of what was decompressed, until it is
 * stored.
 *
 * Fetches stop when too much is held; what one fetch brings comes on top, since the broker fills it first. A partition
 * that waits to be fetched for gets its turn before those that came later, or had theirs: else the first of many would
 * take all there is. Decompressing waits as well, and is done one batch at a time where little is left, for nothing says
 * how large a batch will be.
 */
export type MemoryLimits = { fetchedBytes: number; openedBytes: number };

/** With one fetch of each broker and one batch that is being opened on top: about 400 MiB with one broker. */
export const MEMORY_LIMITS: MemoryLimits = { fetchedBytes: 128 * 1024 * 1024, openedBytes: 128 * 1024 * 1024 };

/** What a partition is likely to get at a time: so many of those that wait are let go. */
const TURN_BYTES = 4 * 1024 * 1024;

/** A partition, as far as it holds memory. */
export type Holder = {
  /** Is told that there is room again, or none any more. */
  balance(): void;
};

export class FetchMemory {
  readonly #limits: MemoryLimits;
  readonly #holders = new Set<Holder>();
  /** In the order in which they are let go. */
  readonly #waiting = new Set<Holder>();
  /** How many batches lie in each: what a fetch brought stays as long as any of them. */
  readonly #fetched = new Map<ArrayBufferLike, number>();
  #fetchedBytes = 0;
  #openedBytes = 0;
  #opening = 0;
  #turns: Promise<void> = Promise.resolve();
  #wake: (() => void) | undefined;

  constructor(limits: MemoryLimits = MEMORY_LIMITS) {
    this.#limits = limits;
  }

  get held(): MemoryLimits {
    return { fetchedBytes: this.#fetchedBytes, openedBytes: this.#openedBytes };
  }

  /** Has the partition told from now on. */
  join(holder: Holder): void {
    this.#holders.add(holder);
  }

  /** Forgets a partition, which holds nothing any more. */
  leave(holder: Holder): void {
    this.#waiting.delete(holder);
    this.#holders.delete(holder);
  }

  /** Whether a partition that wants it may be fetched for now. One that may not is told when it may. */
  mayFetch(holder: Holder, wants: boolean): boolean {
    if (!wants) this.#waiting.delete(holder);
    else if (this.#isFull) this.#waiting.add(holder);
    return wants && !this.#waiting.has(holder);
  }

  /** Counts a batch that lies in this buffer. */
  keep(buffer: ArrayBufferLike): void {
    const wasFull = this.#isFull;
    const count = this.#fetched.get(buffer) ?? 0;
    if (count === 0) this.#fetchedBytes += buffer.byteLength;
    this.#fetched.set(buffer, count + 1);
    if (this.#isFull && !wasFull) for (const holder of this.#holders) holder.balance();
  }

  /** Counts what was decompressed. */
  keepOpened(bytes: number): void {
    this.#openedBytes += bytes;
  }

  /** Stops counting a batch in each of these buffers, and what was decompressed of them. */
  drop(buffers: readonly ArrayBufferLike[], openedBytes: number): void {
    for (const buffer of buffers) {
      const count = (this.#fetched.get(buffer) ?? 0) - 1;
      this.#fetched.set(buffer, count);
      if (count > 0) continue;
      this.#fetched.delete(buffer);
      this.#fetchedBytes -= buffer.byteLength;
    }
    this.#openedBytes -= openedBytes;
    if (this.#mayOpen) this.#wake?.();
    if (!this.#isFull) this.#letGo();
  }

  /** Whether a batch can be decompressed at once. Who holds what was decompressed must not wait for others. */
  get canOpen(): boolean {
    return this.#mayOpen && this.#opening === 0;
  }

  /**
   * Decompresses when there is room, one batch after the other. Who waits holds nothing that is decompressed, so what is
   * held is stored or dropped meanwhile. `opened` counts the result before the next one's turn.
   */
  async open<T>(decompress: () => Promise<T>, opened: (result: T) => void): Promise<T> {
    this.#opening++;
    const turn = this.#turns.then(async () => {
      while (!this.#mayOpen) await this.#room();
      const result = await decompress();
      opened(result);
      return result;
    });
    const over = (): void => void this.#opening--;
    this.#turns = turn.then(over, over);
    return await turn;
  }

  get #isFull(): boolean {
    return this.#fetchedBytes >= this.#limits.fetchedBytes;
  }

  get #mayOpen(): boolean {
    return this.#openedBytes < this.#limits.openedBytes;
  }

  async #room(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await promise;
    this.#wake = undefined;
  }

  /** Lets some go that wait; all where little is held, so that none waits for partitions where nothing happens. */
  #letGo(): void {
    const leftBytes = this.#limits.fetchedBytes - this.#fetchedBytes;
    let turns = leftBytes > this.#limits.fetchedBytes / 2 ? Infinity : Math.ceil(leftBytes / TURN_BYTES);
    for (const holder of this.#waiting) {
      if (turns-- <= 0) return;
      this.#waiting.delete(holder);
      holder.balance();
    }
  }
}
