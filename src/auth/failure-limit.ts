import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import { dropOldest } from "./oldest.ts";

/**
 * Wrong tokens and passwords by address: after a burst of them an address must wait, however right its next one is.
 * Only the address pays; nobody can lock out anyone who comes from elsewhere. What is kept is bounded: at the bound the
 * address that failed longest ago is forgotten.
 */
export type FailureLimitOptions = {
  clock: Clock;
  /** Failures that an address has at once. */
  burst?: number;
  /** Time in which one more is granted. */
  refillMs?: number;
  maxAddresses?: number;
};

type Bucket = { failures: number; atMs: number };

export class FailureLimit {
  readonly #clock: Clock;
  readonly #burst: number;
  readonly #refillMs: number;
  readonly #maxAddresses: number;
  /** In the order of the last failure. */
  readonly #buckets = new Map<string, Bucket>();

  constructor({ clock, burst = 50, refillMs = 1_000, maxAddresses = 10_000 }: FailureLimitOptions) {
    this.#clock = clock;
    this.#burst = burst;
    this.#refillMs = refillMs;
    this.#maxAddresses = maxAddresses;
  }

  /** Throws `too_many_requests` while the address has no attempt left. */
  check(address: string): void {
    const failures = this.#failuresOf(address);
    if (failures <= this.#burst - 1) return;
    const waitSecs = Math.ceil(((failures - this.#burst + 1) * this.#refillMs) / 1_000);
    throw new EngineError("too_many_requests", "too many failed sign-ins from this address; wait", {
      headers: { "Retry-After": String(waitSecs) },
    });
  }

  count(address: string): void {
    const failures = this.#failuresOf(address) + 1;
    this.#buckets.delete(address);
    this.#buckets.set(address, { failures, atMs: this.#clock.monotonicMs() });
    dropOldest(this.#buckets, this.#maxAddresses);
  }

  #failuresOf(address: string): number {
    const bucket = this.#buckets.get(address);
    if (bucket === undefined) return 0;
    return Math.max(0, bucket.failures - (this.#clock.monotonicMs() - bucket.atMs) / this.#refillMs);
  }
}
