import { LRUCache } from "lru-cache";
import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { TokenBackend } from "./authenticator.ts";
import type { Caller } from "./caller.ts";
import { hashToken } from "./tokens.ts";

/** Called when tokens may have lost what they granted. */
export type OnRevoked = () => void;

export type TokenCacheOptions = { clock: Clock; freshMs?: number; staleMs?: number; maxTokens?: number };

type Entry = { caller: Caller; atMs: number };

/**
 * Remembers who a token's bearer is, where asking means a round trip to the catalog. A revocation takes effect at once
 * on the node that made it and within `freshMs` on the others. While the catalog is away, who was known stays known
 * until `staleMs`: staged ingest goes on without a catalog, and its clients show tokens too. That a token is wrong is
 * never remembered. Kept are hashes of tokens.
 */
export class TokenCache {
  readonly #clock: Clock;
  readonly #freshMs: number;
  readonly #staleMs: number;
  readonly #entries: LRUCache<string, Entry>;

  constructor({ clock, freshMs = 10_000, staleMs = 300_000, maxTokens = 10_000 }: TokenCacheOptions) {
    this.#clock = clock;
    this.#freshMs = freshMs;
    this.#staleMs = staleMs;
    this.#entries = new LRUCache({ max: maxTokens });
  }

  /** Forgets everyone: somebody's rights have changed. */
  clear(): void {
    this.#entries.clear();
  }

  /** The backend, asked through the cache. */
  before(backend: TokenBackend): TokenBackend {
    return {
      recognizes: (token) => backend.recognizes(token),
      authenticate: (token, from) => this.through(token, () => backend.authenticate(token, from)),
    };
  }

  /** What `ask` says of the bearer, remembered by a token or by whatever else nobody but that bearer can show. */
  async through(secret: string, ask: () => Promise<Caller | undefined>): Promise<Caller | undefined> {
    const key = hashToken(secret);
    const known = this.#entries.get(key);
    const ageMs = known === undefined ? Infinity : this.#clock.monotonicMs() - known.atMs;
    if (known !== undefined && ageMs < this.#freshMs) return known.caller;
    try {
      const caller = await ask();
      if (caller === undefined) this.#entries.delete(key);
      else this.#entries.set(key, { caller, atMs: this.#clock.monotonicMs() });
      return caller;
    } catch (error) {
      const isAway = error instanceof EngineError && error.code === "unavailable";
      if (isAway && known !== undefined && ageMs < this.#staleMs) return known.caller;
      throw error;
    }
  }
}
