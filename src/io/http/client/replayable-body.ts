import { releaseShared } from "../../../core/buffer-pool.ts";

/**
 * The body of a request that is passed on while it arrives, and that can be sent once more as long as little of it was
 * sent: what has been is kept, up to `MAX_KEPT_BYTES` of one body and the budget of all.
 *
 * One try reads at a time: `attempt` begins at the start again, and takes the place of the one before.
 *
 * Pieces may lie in buffers of `core/buffer-pool.ts`. A piece is given back when it is not kept any more and every try
 * that sent it has asked for the next one, which says that it is done with it. A try that ends without asking may have
 * left the piece to a socket that still reads it: such a piece is forgotten instead.
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

/** A body as one try sends it. Whoever iterates over it asks for a piece when the one before is read to its end. */
export type BodyAttempt = AsyncIterable<Uint8Array> & {
  /** What was given to the other side so far. */
  readonly sentBytes: number;
  /** Nothing more is sent, nor is the body ended: an answer has begun, and the other side wants no more of it. */
  hold(): void;
  /** Ends the try; whoever waits for more of the body gets an error. */
  stop(): void;
};

/** Gets the next piece, or learns why there is none. */
type Waiter = { resolve(piece: Uint8Array | undefined): void; reject(error: unknown): void };

export class ReplayableBody {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #budget: ReplayBudget;
  /** From Content-Length; undefined for a chunked body. */
  readonly #announcedBytes: number | undefined;
  /** How many need a piece: what is kept is one, each try that has it another. */
  readonly #users = new Map<Uint8Array, number>();
  #kept: Uint8Array[] = [];
  /** Of the budget. */
  #takenBytes = 0;
  #keeping = true;
  #pulledPieces = 0;
  #pulledBytes = 0;
  #ended: boolean;
  #reading = false;
  #waiter: Waiter | undefined;
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
    for (const piece of this.#kept.splice(0)) this.#letGo(piece);
    this.#budget.give(this.#takenBytes);
    this.#takenBytes = 0;
  }

  attempt(): BodyAttempt {
    return new Attempt({
      take: (at, waiter) => this.#take(at, waiter),
      use: (piece) => this.#use(piece),
      letGo: (piece) => this.#letGo(piece),
    });
  }

  /** The piece of that index, for whoever asked last. */
  #take(at: number, waiter: Waiter): void {
    this.#waiter = undefined;
    const kept = this.#kept[at];
    if (kept !== undefined) waiter.resolve(kept);
    else if (at < this.#pulledPieces) waiter.reject(new Error("the beginning of the body is not kept any more"));
    else if (this.#failure !== undefined) waiter.reject(this.#failure.error);
    else if (this.#ended) waiter.resolve(undefined);
    else {
      this.#waiter = waiter;
      if (!this.#reading) void this.#read();
    }
  }

  async #read(): Promise<void> {
    this.#reading = true;
    try {
      const step = await this.#source.next();
      this.#reading = false;
      if (step.done === true) this.#ended = true;
      this.#arrived(step.done === true ? undefined : step.value);
    } catch (error) {
      this.#reading = false;
      this.#failure = { error };
      this.#waiter?.reject(error);
    }
  }

  #arrived(piece: Uint8Array | undefined): void {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    if (piece === undefined) {
      waiter?.resolve(undefined);
      return;
    }
    this.#use(piece);
    this.#keep(piece);
    waiter?.resolve(piece);
    this.#letGo(piece);
  }

  #keep(piece: Uint8Array): void {
    this.#pulledPieces++;
    this.#pulledBytes += piece.length;
    if (this.#announcedBytes !== undefined && this.#pulledBytes >= this.#announcedBytes) this.#ended = true;
    if (!this.#keeping) return;
    const sizeBytes = memoryOf(piece);
    if (this.#pulledBytes > MAX_KEPT_BYTES || !this.#budget.take(sizeBytes)) {
      this.settle();
      return;
    }
    this.#takenBytes += sizeBytes;
    this.#use(piece);
    this.#kept.push(piece);
  }

  #use(piece: Uint8Array): void {
    this.#users.set(piece, (this.#users.get(piece) ?? 0) + 1);
  }

  #letGo(piece: Uint8Array): void {
    const others = (this.#users.get(piece) ?? 0) - 1;
    if (others > 0) {
      this.#users.set(piece, others);
      return;
    }
    this.#users.delete(piece);
    releaseShared(piece);
  }
}

/** What a try needs of its body. */
type AttemptPorts = {
  take(at: number, waiter: Waiter): void;
  use(piece: Uint8Array): void;
  letGo(piece: Uint8Array): void;
};

class Attempt implements BodyAttempt {
  readonly #body: AttemptPorts;
  #at = 0;
  #sentBytes = 0;
  #held = false;
  #isStopped = false;
  #waiting: ((reason: Error) => void) | undefined;
  /** With whoever iterates, who may still read it. */
  #handedOut: Uint8Array | undefined;

  constructor(body: AttemptPorts) {
    this.#body = body;
  }

  get sentBytes(): number {
    return this.#sentBytes;
  }

  hold(): void {
    this.#held = true;
  }

  stop(): void {
    this.#isStopped = true;
    this.#waiting?.(overError());
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return {
      next: () => this.#next(),
      return: async () => {
        this.stop();
        return { done: true, value: undefined };
      },
    };
  }

  #next(): Promise<IteratorResult<Uint8Array>> {
    const done = this.#handedOut;
    this.#handedOut = undefined;
    if (done !== undefined) this.#body.letGo(done);
    return new Promise((resolve, reject) => {
      if (this.#isStopped) {
        reject(overError());
        return;
      }
      this.#waiting = reject;
      // A try that is held waits until it is stopped.
      if (this.#held) return;
      this.#body.take(this.#at, {
        reject: (error) => {
          if (!this.#held) reject(error);
        },
        resolve: (piece) => {
          if (this.#held || this.#isStopped) return;
          this.#waiting = undefined;
          resolve(
            piece === undefined ? { done: true, value: undefined } : { done: false, value: this.#handOut(piece) },
          );
        },
      });
    });
  }

  #handOut(piece: Uint8Array): Uint8Array {
    this.#body.use(piece);
    this.#handedOut = piece;
    this.#at++;
    this.#sentBytes += piece.length;
    return piece;
  }
}

function overError(): Error {
  return new Error("this try to send the body is over");
}

/** What a kept piece takes; one in a buffer of the pool has all of that buffer. */
function memoryOf(piece: Uint8Array): number {
  return piece.buffer instanceof SharedArrayBuffer ? piece.buffer.byteLength : piece.length;
}
