import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";

/**
 * Requests per second and database: a token bucket each (Turner, "New directions in communications"). A bucket holds at
 * most `burst` tokens, starts full and fills at `ratePerSec`; every request takes one, replays of a key too, and one that
 * finds none is turned away without taking any.
 *
 * A full bucket is as good as none, so those of databases that are quiet need not be kept.
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

type Bucket = {
  tokens: number;
  /** When there were so many, on the monotonic clock. */
  atMs: number;
};

/** Less than this of a token is a matter of rounding: one that is due must not be missed. */
const ROUNDING = 1e-6;

export class RateLimit {
  readonly #options: RateLimitOptions;
  /** By database, in order of last use. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(options: RateLimitOptions) {
    this.#options = options;
  }

  /** Buckets in memory. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes a token of the database (its folded name); throws `too_many_requests`, with `Retry-After`, if there is none. */
  take(database: string): void {
    const { ratePerSec, burst, clock, onRefused } = this.#options;
    if (ratePerSec === 0) return;
    const nowMs = clock.monotonicMs();
    const bucket = this.#buckets.get(database) ?? { tokens: burst, atMs: nowMs };
    const tokens = Math.min(burst, bucket.tokens + ((nowMs - bucket.atMs) * ratePerSec) / 1000);
    const missing = 1 - tokens;
    if (missing > ROUNDING) {
      onRefused?.();
      throw new EngineError(
        "too_many_requests",
        `this database takes ${ratePerSec} ingest requests per second, with bursts of ${burst}; retry`,
        { headers: { "Retry-After": String(Math.max(1, Math.ceil((missing - ROUNDING) / ratePerSec))) } },
      );
    }
    this.#keep(database, { tokens: tokens - 1, atMs: nowMs });
  }

  #keep(database: string, bucket: Bucket): void {
    this.#buckets.delete(database);
    this.#buckets.set(database, bucket);
    if (this.#buckets.size <= MAX_BUCKETS) return;
    const [oldest] = this.#buckets.keys();
    if (oldest !== undefined) this.#buckets.delete(oldest);
  }
}
