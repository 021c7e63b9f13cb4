import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";

/**
 * Requests per second and database: a token bucket each (Turner, "New directions in communications"). A bucket holds at
 * most `burst` tokens, starts full and fills at `ratePerSec`; every request takes one, replays of a key too, and one that
 * finds none is turned away without taking any.
 *
 * A bucket is a time: that at which it will be full again. One whose time has passed is as good as none, so those of
 * databases that are quiet need not be kept.
 */
export type RateLimitOptions = {
  /** Tokens per second; 0 lets everything pass. */
  ratePerSec: number;
  /** At least 1. */
  burst: number;
  clock: Clock;
  onRefused?: () => void;
};

/** Buckets kept; past this the one that was used longest ago goes, which is full again at any rate worth limiting. */
const MAX_BUCKETS = 10_000;

export class RateLimit {
  readonly #options: RateLimitOptions;
  /** By database, in order of last use: when its bucket is full again, milliseconds of the monotonic clock. */
  readonly #fullAtMs = new Map<string, number>();

  constructor(options: RateLimitOptions) {
    this.#options = options;
  }

  /** Buckets in memory. */
  get size(): number {
    return this.#fullAtMs.size;
  }

  /** Takes a token of the database (its folded name); throws `too_many_requests`, with `Retry-After`, if there is none. */
  take(database: string): void {
    const { ratePerSec, burst, clock, onRefused } = this.#options;
    if (ratePerSec === 0) return;
    const nowMs = clock.monotonicMs();
    const tokenMs = 1000 / ratePerSec;
    const fullAtMs = Math.max(this.#fullAtMs.get(database) ?? nowMs, nowMs) + tokenMs;
    // A nanosecond for the rounding of many additions: a token that is due must not be missed.
    const waitMs = fullAtMs - nowMs - burst * tokenMs;
    if (waitMs > 1e-6) {
      onRefused?.();
      throw new EngineError(
        "too_many_requests",
        `this database takes ${ratePerSec} ingest requests per second, with bursts of ${burst}; retry`,
        { headers: { "Retry-After": String(Math.max(1, Math.ceil((waitMs - 1e-6) / 1000))) } },
      );
    }
    this.#keep(database, fullAtMs);
  }

  #keep(database: string, fullAtMs: number): void {
    this.#fullAtMs.delete(database);
    this.#fullAtMs.set(database, fullAtMs);
    if (this.#fullAtMs.size <= MAX_BUCKETS) return;
    const [oldest] = this.#fullAtMs.keys();
    if (oldest !== undefined) this.#fullAtMs.delete(oldest);
  }
}
