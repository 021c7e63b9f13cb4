import { backoffMs, type Growth } from "../../../core/backoff.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Random } from "../../../core/random.ts";

const PAUSE: Growth = { firstMs: 5_000, mostMs: 300_000 };

type Failing = { identity: string; failures: number; dueMs: number };

/** Files that failed for the moment, and when each is tried again: the longer, the more often it has failed. */
export class Retries {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #failing = new Map<string, Failing>();

  constructor({ clock, random }: { clock: Clock; random: Random }) {
    this.#clock = clock;
    this.#random = random;
  }

  isDue(key: string, identity: string): boolean {
    const failing = this.#failing.get(key);
    return failing === undefined || failing.identity !== identity || this.#clock.monotonicMs() >= failing.dueMs;
  }

  /** Resolves to how often it has failed, this time included. */
  failed(key: string, identity: string): number {
    const known = this.#failing.get(key);
    const earlier = known?.identity === identity ? known.failures : 0;
    const dueMs = this.#clock.monotonicMs() + backoffMs(PAUSE, earlier, this.#random);
    this.#failing.set(key, { identity, failures: earlier + 1, dueMs });
    return earlier + 1;
  }

  forget(key: string): void {
    this.#failing.delete(key);
  }
}
