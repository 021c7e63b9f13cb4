import { LRUCache } from "lru-cache";
import type { Clock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";

export type CreateRateOptions = { clock: Pick<Clock, "monotonicMs">; perMinute: number; burst: number };

/** Tenants that are remembered; of more, those that were here longest ago have all their tokens back. */
const MAX_TENANTS = 10_000;

type Bucket = { tokens: number; atMs: number };

/** How fast each tenant may create sandboxes in this process: a bucket of `burst` tokens, refilled evenly. */
export class CreateRate {
  readonly #options: CreateRateOptions;
  readonly #buckets = new LRUCache<string, Bucket>({ max: MAX_TENANTS });

  constructor(options: CreateRateOptions) {
    this.#options = options;
  }

  /** Takes a token. Throws `rate_limited` where there is none. */
  take(tenant: string): void {
    const { clock, perMinute, burst } = this.#options;
    const nowMs = clock.monotonicMs();
    const { tokens, atMs } = this.#buckets.peek(tenant) ?? { tokens: burst, atMs: nowMs };
    const perMs = perMinute / 60_000;
    const filled = Math.min(burst, tokens + (nowMs - atMs) * perMs);
    if (filled < 1) {
      const waitSecs = Math.ceil((1 - filled) / perMs / 1_000);
      const message = `more than ${perMinute} sandboxes a minute: retry in ${waitSecs} s`;
      throw new EngineError("rate_limited", message, { headers: { "Retry-After": String(waitSecs) } });
    }
    this.#buckets.set(tenant, { tokens: filled - 1, atMs: nowMs });
  }
}
