import { createLocalJWKSet, errors, type JWTVerifyGetKey } from "jose";
import { LRUCache } from "lru-cache";
import { fullBackoffMs } from "../../core/backoff.ts";
import type { Clock } from "../../core/clock.ts";
import { EngineError, messageOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { LoadKeys } from "./published-keys.ts";

/** From this age on keys are fetched again beside the requests, so that none has to wait for it. */
const REFRESH_AFTER_MS = 5 * 60_000;
/** A key that the issuer took back is good no longer than this, as long as the issuer can be asked. */
const FRESH_MS = 10 * 60_000;
/** How long keys are good while the issuer cannot be asked. */
const KEPT_MS = 24 * 60 * 60_000;
/** An issuer that does not answer is asked again after this, doubled with every failure in a row up to the most. */
const RETRY = { firstMs: 1_000, mostMs: 60_000 } as const;
/**
 * Keys that tokens name and that are not known: the issuer is asked for each once in this time. Anybody can make up such
 * names, so it is asked so often in a row at most, and then once in `GRANT_MS`: a new key is known after that at the
 * latest, for every answer has all keys.
 */
const SAME_KEY_MS = 60_000;
const BURST = 5;
const GRANT_MS = 10_000;
const MAX_ASKED_FOR = 100;

export type IssuerKeysOptions = { issuer: string; load: LoadKeys; clock: Clock; log: Log };

/** @property number which fetch it is of, counted from 1 */
type KeySet = { find: ReturnType<typeof createLocalJWKSet>; atMs: number; number: number };

/**
 * The keys of one issuer, as `key` for jose: fetched when the first token comes, then again with age, and at once for a
 * token that names a key that is not among them, since issuers change their keys. However many tokens come, one request
 * is under way at a time, and what tokens can have fetched is bounded.
 *
 * `key` rejects with `EngineError` `unavailable` when the issuer would have to be asked and cannot be, and with jose's
 * errors for a token that no key is for.
 */
export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  #keys: KeySet | undefined;
  #askedAtMs = -Infinity;
  /** Fetches that were begun. */
  #asked = 0;
  /** In a row. */
  #failures = 0;
  #asking: Promise<void> | undefined;
  /** Keys that the issuer was asked for, by name, with when. */
  readonly #askedFor = new LRUCache<string, number>({ max: MAX_ASKED_FOR });
  #grants = BURST;
  #grantsAtMs = -Infinity;

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
  }

  readonly key: JWTVerifyGetKey = async (header, token) => {
    const askedBefore = this.#asked;
    for (let keys = await this.#known(); ; keys = await this.#newer(header.kid ?? "")) {
      try {
        return await keys.find(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        // The issuer was asked after the token came: it has no such key.
        if (keys.number > askedBefore || !this.#mayAsk(header.kid ?? "")) throw error;
      }
    }
  };

  async #known(): Promise<KeySet> {
    const ageMs = this.#ageMs();
    if (ageMs >= REFRESH_AFTER_MS) {
      const asked = this.#ask();
      if (ageMs >= FRESH_MS) await asked;
    }
    if (this.#keys === undefined || this.#ageMs() >= KEPT_MS) throw this.#unavailable();
    return this.#keys;
  }

  /**
   * Whether the issuer may be asked for a key that is not known. While it does not answer it counts as yes: what it has is
   * then unknown.
   */
  #mayAsk(kid: string): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#asking !== undefined || this.#failures > 0) return true;
    if (nowMs - (this.#askedFor.peek(kid) ?? -Infinity) < SAME_KEY_MS) return false;
    return this.#grantsNow(nowMs) >= 1;
  }

  /** What the issuer has by now. Rejects with `unavailable` where it does not answer. */
  async #newer(kid: string): Promise<KeySet> {
    // One that is under way may have been answered before the key was there: it is the issuer's last word only for tokens
    // that came before it.
    if (this.#asking !== undefined) await this.#asking;
    else await this.#askFor(kid);
    if (this.#keys === undefined || this.#failures > 0) throw this.#unavailable();
    return this.#keys;
  }

  async #askFor(kid: string): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#failures === 0) {
      this.#grants = this.#grantsNow(nowMs) - 1;
      this.#grantsAtMs = nowMs;
      this.#askedFor.set(kid, nowMs);
    }
    await this.#ask();
  }

  #grantsNow(nowMs: number): number {
    return Math.min(BURST, this.#grants + (nowMs - this.#grantsAtMs) / GRANT_MS);
  }

  #ageMs(): number {
    return this.#keys === undefined ? Infinity : this.#options.clock.monotonicMs() - this.#keys.atMs;
  }

  /** Asks the issuer, unless it did not answer just now. Does not reject. */
  async #ask(): Promise<void> {
    if (this.#asking === undefined && this.#waitMs() > 0) return;
    this.#asking ??= this.#load().finally(() => (this.#asking = undefined));
    await this.#asking;
  }

  async #load(): Promise<void> {
    const { issuer, load, clock, log } = this.#options;
    this.#askedAtMs = clock.monotonicMs();
    const number = ++this.#asked;
    try {
      const find = createLocalJWKSet({ keys: await load() });
      this.#keys = { find, atMs: clock.monotonicMs(), number };
      if (this.#failures > 0) log.info({ issuer }, "the keys of the issuer are there again");
      this.#failures = 0;
    } catch (error) {
      this.#failures++;
      log.warn({ issuer, reason: messageOf(error) }, "the keys of an issuer cannot be fetched");
    }
  }

  /** Until an issuer that did not answer may be asked again. */
  #waitMs(): number {
    if (this.#failures === 0) return 0;
    return this.#askedAtMs + fullBackoffMs(RETRY, this.#failures - 1) - this.#options.clock.monotonicMs();
  }

  #unavailable(): EngineError {
    const retrySecs = Math.max(1, Math.ceil(this.#waitMs() / 1_000));
    return new EngineError("unavailable", "the token cannot be checked: the keys of its issuer cannot be fetched", {
      headers: { "Retry-After": String(retrySecs) },
    });
  }
}
