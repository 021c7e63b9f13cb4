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

export type Held = { fetchedBytes: number; openedBytes: number };

const NOTHING: Held = { fetchedBytes: 0, openedBytes: 0 };

export class FetchMemory {
  readonly #limits: MemoryLimits;
  readonly #holders = new Map<Holder, Held>();
  /** In the order in which they are let go. */
  readonly #waiting = new Set<Holder>();
  #held: Held = NOTHING;
  #opening = 0;
  #turns: Promise<void> = Promise.resolve();
  #wake: (() => void) | undefined;

  constructor(limits: MemoryLimits = MEMORY_LIMITS) {
    this.#limits = limits;
  }

  get held(): Held {
    return this.#held;
  }

  /** Whether a partition that wants it may be fetched for now. One that may not is told when it may. */
  mayFetch(holder: Holder, wants: boolean): boolean {
    if (!wants) this.#waiting.delete(holder);
    else if (this.#isFull) this.#waiting.add(holder);
    return wants && !this.#waiting.has(holder);
  }

  /** Says what a partition holds now. */
  hold(holder: Holder, now: Held): void {
    const before = this.#holders.get(holder) ?? NOTHING;
    const wasFull = this.#isFull;
    this.#holders.set(holder, now);
    this.#held = {
      fetchedBytes: this.#held.fetchedBytes + now.fetchedBytes - before.fetchedBytes,
      openedBytes: this.#held.openedBytes + now.openedBytes - before.openedBytes,
    };
    if (this.#mayOpen) this.#wake?.();
    if (!this.#isFull) this.#letGo();
    else if (!wasFull) for (const one of this.#holders.keys()) one.balance();
  }

  /** Forgets a partition. */
  leave(holder: Holder): void {
    this.#waiting.delete(holder);
    this.hold(holder, NOTHING);
    this.#holders.delete(holder);
  }

  /** Whether a batch can be decompressed at once. Who holds what was decompressed must not wait for others. */
  get canOpen(): boolean {
    return this.#mayOpen && this.#opening === 0;
  }

  /**
   * Decompresses when there is room, one batch after the other. Who waits holds nothing that is decompressed, so what is
   * held is stored or dropped meanwhile. `opened` says before the next one's turn what is held then.
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
    return this.#held.fetchedBytes >= this.#limits.fetchedBytes;
  }

  get #mayOpen(): boolean {
    return this.#held.openedBytes < this.#limits.openedBytes;
  }

  async #room(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await promise;
    this.#wake = undefined;
  }

  /** Lets some go that wait; all where little is held, so that none waits for partitions where nothing happens. */
  #letGo(): void {
    const leftBytes = this.#limits.fetchedBytes - this.#held.fetchedBytes;
    let turns = leftBytes > this.#limits.fetchedBytes / 2 ? Infinity : Math.ceil(leftBytes / TURN_BYTES);
    for (const holder of this.#waiting) {
      if (turns-- <= 0) return;
      this.#waiting.delete(holder);
      holder.balance();
    }
  }
}
