import type { Catalog } from "../catalog/catalog.ts";
import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";

const HOUR_MS = 3_600_000;

/**
 * Keeps the files of loaded tables for as long as clients may read them. They come without saying when they are done, so
 * this node says once in an hour that it reads from the head of then on, for that hour and the time after it: every table
 * that is loaded within the hour is at that head or at a later one.
 */
export class ReaderHolds {
  readonly #catalog: Pick<Catalog, "holdSnapshots">;
  readonly #clock: Clock;
  readonly #node: string;
  readonly #holdMs: number;
  #hour = -1;
  #held: Promise<void> = Promise.resolve();

  constructor(
    { catalog, clock, newId }: { catalog: Pick<Catalog, "holdSnapshots">; clock: Clock; newId: IdSource },
    holdMs: number,
  ) {
    this.#catalog = catalog;
    this.#clock = clock;
    this.#node = `open-tables-${newId()}`;
    this.#holdMs = holdMs;
  }

  /** Resolves once the head is held. */
  async hold(head: number): Promise<void> {
    if (this.#holdMs === 0) return;
    const hour = Math.floor(this.#clock.monotonicMs() / HOUR_MS);
    if (hour !== this.#hour) {
      this.#hour = hour;
      this.#held = this.#catalog.holdSnapshots(`${this.#node}-${hour}`, head, HOUR_MS + this.#holdMs);
    }
    try {
      await this.#held;
    } catch (error) {
      this.#hour = -1;
      // Rows were deleted since, before which nothing can be held: those who read there fail as they should.
      if (!(error instanceof EngineError) || error.code !== "snapshot_expired") throw error;
    }
  }
}
