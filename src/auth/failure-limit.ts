import { LRUCache } from "lru-cache";
import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";

/**
 * Failures by key (a network, an account, a token from a network): after a burst of them the key must wait. What is kept
 * is bounded: at the bound the key that failed longest ago is forgotten.
 */
export type FailureLimitOptions = {
  clock: Clock;
  /** Failures that a key has at once. */
  burst?: number;
  /** Time in which one more is granted. */
  refillMs?: number;
  maxKeys?: number;
};

type Bucket = { failures: number; atMs: number };

export class FailureLimit {
  readonly #clock: Clock;
  readonly #burst: number;
  readonly #refillMs: number;
  /** Only a failure counts as a use. */
  readonly #buckets: LRUCache<string, Bucket>;

  constructor({ clock, burst = 50, refillMs = 1_000, maxKeys = 10_000 }: FailureLimitOptions) {
    this.#clock = clock;
    this.#burst = burst;
    this.#refillMs = refillMs;
    this.#buckets = new LRUCache({ max: maxKeys });
  }

  /** Whether the key has failures that still count. */
  hasFailed(key: string): boolean {
    return this.#failuresOf(key) > 0;
  }

  /** Whether the key has no attempt left. */
  isReached(key: string): boolean {
    return this.#failuresOf(key) > this.#burst - 1;
  }

  /** Throws `too_many_requests`, with that message, while the key has no attempt left. */
  check(key: string, message: string): void {
    if (!this.isReached(key)) return;
    const waitSecs = Math.ceil(((this.#failuresOf(key) - this.#burst + 1) * this.#refillMs) / 1_000);
    throw new EngineError("too_many_requests", message, { headers: { "Retry-After": String(waitSecs) } });
  }

  count(key: string): void {
    this.#add(key, 1);
  }

  /** Takes back one that was counted before it was known whether it is a failure, and was none. */
  giveBack(key: string): void {
    if (this.#buckets.has(key)) this.#add(key, -1);
  }

  #add(key: string, failures: number): void {
    const sum = this.#failuresOf(key) + failures;
    if (sum <= 0) this.#buckets.delete(key);
    else this.#buckets.set(key, { failures: sum, atMs: this.#clock.monotonicMs() });
  }

  #failuresOf(key: string): number {
    const bucket = this.#buckets.peek(key);
    if (bucket === undefined) return 0;
    return Math.max(0, bucket.failures - (this.#clock.monotonicMs() - bucket.atMs) / this.#refillMs);
  }
}
