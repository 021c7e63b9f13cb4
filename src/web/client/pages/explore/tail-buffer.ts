import type { Row } from "./paging.ts";

/** A row of the tail, or a mark where rows are missing. `place` grows, and is one entry's for ever. */
export type TailEntry = { place: number } & ({ row: Row } | { gap: string });

/** Rows that are held, shown or waiting. */
export const HELD_ROWS = 5_000;

/**
 * The newest rows of a live tail, at most 5,000. While it is paused nothing moves: what comes waits, at most as many again,
 * and where more came than can wait a mark stands in their place.
 */
export class TailBuffer {
  #shown: TailEntry[] = [];
  #waiting: TailEntry[] = [];
  #places = 0;
  #lost = 0;
  isPaused = false;
  /** Rows that have come since the tail began. */
  received = 0;
  readonly #most: number;

  constructor(most = HELD_ROWS) {
    this.#most = most;
  }

  /** Oldest first; the same value for as long as nothing has changed. */
  get shown(): readonly TailEntry[] {
    return this.#shown;
  }

  get waiting(): number {
    return this.#waiting.length + this.#lost;
  }

  add(rows: readonly Row[]): void {
    this.received += rows.length;
    this.#put(rows.map((row) => ({ row, place: ++this.#places })));
  }

  /** Rows are missing here, and why. */
  gap(reason: string): void {
    this.#put([{ gap: reason, place: ++this.#places }]);
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    // The mark has the place of the last one that was let go.
    const place = (this.#waiting[0]?.place ?? this.#places + 1) - 1;
    const gap = `${this.#lost.toLocaleString("en-US")} rows arrived during the pause and were dropped`;
    const marks: TailEntry[] = this.#lost === 0 ? [] : [{ gap, place }];
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#lost = 0;
    this.#show(waiting);
    // Beside the rows that are held, not one of them: they are as many as there may be.
    if (marks.length > 0) this.#shown = [...marks, ...this.#shown];
  }

  clear(): void {
    this.#shown = [];
    this.#waiting = [];
    this.#lost = 0;
  }

  #put(entries: readonly TailEntry[]): void {
    if (!this.isPaused) {
      this.#show(entries);
      return;
    }
    const all = [...this.#waiting, ...entries];
    this.#lost += Math.max(0, all.length - this.#most);
    this.#waiting = all.slice(-this.#most);
  }

  #show(entries: readonly TailEntry[]): void {
    if (entries.length === 0) return;
    this.#shown = [...this.#shown, ...entries].slice(-this.#most);
  }
}
