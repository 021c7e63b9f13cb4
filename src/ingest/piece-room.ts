import { sleep, type Clock } from "../core/clock.ts";
import type { ByteBudget, Reservation } from "./byte-budget.ts";

const RETRY_MS = 20;

/**
 * Room in the bound on bytes in flight for the pieces of inputs that can wait: clients come first. A piece is let in
 * while at most half of the bound is taken; one at a time always is, so that clients cannot keep such inputs out for
 * ever.
 */
export class PieceRoom {
  readonly #budget: ByteBudget;
  readonly #clock: Clock;
  #pieces = 0;

  constructor({ budget, clock }: { budget: ByteBudget; clock: Clock }) {
    this.#budget = budget;
    this.#clock = clock;
  }

  /** Waits for room; rejects with the signal's reason. The piece is over when `release` is called. */
  async take(
    database: string,
    sizeBytes: number,
    signal: AbortSignal,
  ): Promise<Pick<Reservation, "settle" | "release">> {
    while (!this.#fits(sizeBytes)) await sleep(this.#clock, RETRY_MS, signal);
    signal.throwIfAborted();
    this.#pieces++;
    const reservation = this.#budget.reserveAnyway(database, sizeBytes);
    return {
      settle: (bytes) => reservation.settle(bytes),
      release: () => {
        this.#pieces--;
        reservation.release();
      },
    };
  }

  #fits(sizeBytes: number): boolean {
    return this.#pieces === 0 || this.#budget.usedBytes + sizeBytes <= this.#budget.maxBytes / 2;
  }
}
