import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";

/**
 * The bound on bytes that are accepted and not yet answered: past it the answer is 429, never a longer queue.
 *
 * All databases share it. One that is alone may use all of it: a loader that nobody else waits for is not to be slowed
 * down. As soon as another one has bytes in flight, or was turned away in the last two seconds (twice what it was told
 * to wait), it may hold at most half, so that none can lock the others out by being there first. What it holds beyond
 * that already stays, and drains.
 *
 * So that every body that the product takes is admissible, a database that has nothing in flight is held only to the
 * bound as a whole, and a request that finds nothing in flight at all always fits.
 */
export type ByteBudgetOptions = {
  maxBytes: number;
  clock: Clock;
  /** Told of every refusal: the server as a whole was full, or the database had its share. */
  onRefused?: (reason: "bytes" | "database_bytes") => void;
  /** Told whenever the bytes in flight change. */
  onChange?: (usedBytes: number) => void;
};

const RETRY_AFTER_SECS = 1;
/** How long a database that was turned away counts as one that waits. */
const CLAIM_MS = 2_000;

export class ByteBudget {
  readonly #options: ByteBudgetOptions;
  /** Of databases that have bytes in flight. */
  readonly #usedByDatabase = new Map<string, number>();
  #usedBytes = 0;
  /** The database that was last turned away while it had less than its half. */
  #claim: { database: string; untilMs: number } | undefined;

  constructor(options: ByteBudgetOptions) {
    this.#options = options;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get maxBytes(): number {
    return this.#options.maxBytes;
  }

  /** Reserves bytes of one database (its folded name). Throws `too_many_requests`, with `Retry-After`. */
  reserve(database: string, sizeBytes: number): Reservation {
    this.#admit(database, sizeBytes, 0);
    this.#change(database, sizeBytes);
    return new Reservation(sizeBytes, {
      admit: (byBytes, heldBytes) => this.#admit(database, byBytes, heldBytes),
      change: (byBytes) => this.#change(database, byBytes),
    });
  }

  /**
   * Reserves bytes whatever is in flight: for inputs that wait by themselves (`piece-room.ts`). Clients are then turned
   * away by what is left.
   */
  reserveAnyway(database: string, sizeBytes: number): Reservation {
    this.#change(database, sizeBytes);
    return new Reservation(sizeBytes, { admit: () => undefined, change: (byBytes) => this.#change(database, byBytes) });
  }

  /** Throws unless `moreBytes` fit beside everything but the `heldBytes` that they are to join. */
  #admit(database: string, moreBytes: number, heldBytes: number): void {
    const { maxBytes, onRefused } = this.#options;
    if (this.#usedBytes === heldBytes) return;
    const ownBytes = this.#usedByDatabase.get(database) ?? 0;
    if (this.#usedBytes + moreBytes > maxBytes) {
      if (ownBytes + moreBytes <= maxBytes / 2 || ownBytes === heldBytes) this.#noteClaim(database);
      onRefused?.("bytes");
      throw refusal(`${this.#usedBytes} bytes of ingest are in flight, and at most ${maxBytes} may be`);
    }
    if (ownBytes === heldBytes || ownBytes + moreBytes <= maxBytes / 2 || !this.#othersWait(database)) return;
    onRefused?.("database_bytes");
    throw refusal(
      `${ownBytes} bytes of this database's ingest are in flight, and while others wait at most ${maxBytes / 2} may be`,
    );
  }

  #othersWait(database: string): boolean {
    if ((this.#usedByDatabase.get(database) ?? 0) < this.#usedBytes) return true;
    const claim = this.#claim;
    return claim !== undefined && claim.database !== database && this.#options.clock.monotonicMs() < claim.untilMs;
  }

  #noteClaim(database: string): void {
    this.#claim = { database, untilMs: this.#options.clock.monotonicMs() + CLAIM_MS };
  }

  #change(database: string, byBytes: number): void {
    if (byBytes === 0) return;
    const ownBytes = (this.#usedByDatabase.get(database) ?? 0) + byBytes;
    if (ownBytes > 0) this.#usedByDatabase.set(database, ownBytes);
    else this.#usedByDatabase.delete(database);
    this.#usedBytes += byBytes;
    this.#options.onChange?.(this.#usedBytes);
  }
}

type Held = {
  admit: (byBytes: number, heldBytes: number) => void;
  change: (byBytes: number) => void;
};

export class Reservation {
  #sizeBytes: number;
  readonly #held: Held;

  constructor(sizeBytes: number, held: Held) {
    this.#sizeBytes = sizeBytes;
    this.#held = held;
  }

  /**
   * Makes the reservation at least so large, as far as the bound allows: throws `too_many_requests` otherwise, and
   * keeps what it has.
   */
  growTo(sizeBytes: number): void {
    const byBytes = sizeBytes - this.#sizeBytes;
    if (byBytes <= 0) return;
    this.#held.admit(byBytes, this.#sizeBytes);
    this.#set(sizeBytes);
  }

  /** The real size, once it is known: what is there cannot be refused any more. */
  settle(sizeBytes: number): void {
    this.#set(sizeBytes);
  }

  release(): void {
    this.#set(0);
  }

  #set(sizeBytes: number): void {
    this.#held.change(sizeBytes - this.#sizeBytes);
    this.#sizeBytes = sizeBytes;
  }
}

function refusal(reason: string): EngineError {
  return new EngineError("too_many_requests", `${reason}; retry`, {
    headers: { "Retry-After": String(RETRY_AFTER_SECS) },
  });
}
