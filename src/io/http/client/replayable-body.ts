/**
 * The body of a request that is passed on while it arrives, and that can be sent once more as long as little of it was
 * sent: what has been is kept, up to `MAX_KEPT_BYTES` of one body and the budget of all.
 *
 * One try reads at a time: `attempt` begins at the start again, and takes the place of the one before.
 */
export const MAX_KEPT_BYTES = 1024 * 1024;

/** Bytes that all bodies together may keep; past them a body keeps nothing and can be sent only once. */
export class ReplayBudget {
  #freeBytes: number;

  constructor(bytes: number) {
    this.#freeBytes = bytes;
  }

  take(sizeBytes: number): boolean {
    if (sizeBytes > this.#freeBytes) return false;
    this.#freeBytes -= sizeBytes;
    return true;
  }

  give(sizeBytes: number): void {
    this.#freeBytes += sizeBytes;
  }
}

/** A body as one try sends it. */
export type BodyAttempt = AsyncIterable<Uint8Array> & {
  /** What was given to the other side so far. */
  readonly sentBytes: number;
  /** Nothing more is sent, nor is the body ended: an answer has begun, and the other side wants no more of it. */
  hold(): void;
  /** Ends the try; whoever waits for more of the body gets an error. */
  stop(): void;
};

export class ReplayableBody {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #budget: ReplayBudget;
  /** From Content-Length; undefined for a chunked body. */
  readonly #announcedBytes: number | undefined;
  #kept: Uint8Array[] = [];
  #keptBytes = 0;
  #keeping = true;
  #pulledBytes = 0;
  #ended: boolean;
  #pending: Promise<IteratorResult<Uint8Array>> | undefined;
  #failure: { error: unknown } | undefined;

  constructor(source: AsyncIterable<Uint8Array>, budget: ReplayBudget, announcedBytes: number | undefined) {
    this.#source = source[Symbol.asyncIterator]();
    this.#budget = budget;
    this.#announcedBytes = announcedBytes;
    this.#ended = announcedBytes === 0;
  }

  /** Whether another try could send all of it. */
  get replayable(): boolean {
    return this.#keeping && this.#failure === undefined;
  }

  /** Why the body could not be read, when that is so: the client left or was too slow. */
  get failure(): { error: unknown } | undefined {
    return this.#failure;
  }

  /** Gives up what is kept; there will be no other try. */
  settle(): void {
    this.#keeping = false;
    this.#kept = [];
    this.#budget.give(this.#keptBytes);
    this.#keptBytes = 0;
  }

  attempt(): BodyAttempt {
    let at = 0;
    let sentBytes = 0;
    let held = false;
    let stopped: Error | undefined;
    let wake: ((reason: Error) => void) | undefined;
    const next = async (): Promise<IteratorResult<Uint8Array>> => {
      if (stopped !== undefined) throw stopped;
      const kept = held ? undefined : this.#kept[at];
      if (kept !== undefined) {
        at++;
        sentBytes += kept.length;
        return { done: false, value: kept };
      }
      const step = await new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
        wake = reject;
        // A try that is held waits until it is stopped.
        const deliver = (step: IteratorResult<Uint8Array>): void => {
          if (!held) resolve(step);
        };
        if (!held) this.#pull().then(deliver, reject);
      });
      at++;
      sentBytes += step.value?.length ?? 0;
      return step;
    };
    const stop = (): void => {
      stopped ??= new Error("this try to send the body is over");
      wake?.(stopped);
    };
    return {
      get sentBytes() {
        return sentBytes;
      },
      hold: () => {
        held = true;
      },
      stop,
      [Symbol.asyncIterator]: () => ({
        next,
        return: async () => {
          stop();
          return { done: true, value: undefined };
        },
      }),
    };
  }

  /** The next piece of the source, once for all who ask before it is there. */
  #pull(): Promise<IteratorResult<Uint8Array>> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error);
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    this.#pending ??= this.#read();
    return this.#pending;
  }

  async #read(): Promise<IteratorResult<Uint8Array>> {
    try {
      const step = await this.#source.next();
      if (step.done === true) this.#ended = true;
      else this.#keep(step.value);
      return step;
    } catch (error) {
      this.#failure = { error };
      throw error;
    } finally {
      this.#pending = undefined;
    }
  }

  #keep(piece: Uint8Array): void {
    this.#pulledBytes += piece.length;
    if (this.#announcedBytes !== undefined && this.#pulledBytes >= this.#announcedBytes) this.#ended = true;
    if (!this.#keeping) return;
    if (this.#keptBytes + piece.length > MAX_KEPT_BYTES || !this.#budget.take(piece.length)) {
      this.settle();
      return;
    }
    this.#kept.push(piece);
    this.#keptBytes += piece.length;
  }
}
