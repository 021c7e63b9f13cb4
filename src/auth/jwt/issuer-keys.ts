import { createLocalJWKSet, errors, type JWTVerifyGetKey } from "jose";
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
/** With keys at hand the issuer is asked this seldom, whatever keys tokens name. */
const ASK_EVERY_MS = 60_000;
/** Without any key: doubled with every failure, up to `ASK_EVERY_MS`. */
const FIRST_RETRY_MS = 1_000;

export type IssuerKeysOptions = { issuer: string; load: LoadKeys; clock: Clock; log: Log };

type KeySet = { find: ReturnType<typeof createLocalJWKSet>; atMs: number };

/**
 * The keys of one issuer, as `key` for jose: fetched when the first token comes, then again with age, and for a token
 * that names a key that is not among them, since issuers change their keys. However many tokens come, one request is
 * under way at a time, and one a minute is made.
 *
 * `key` rejects with `EngineError` `unavailable` when the issuer would have to be asked and cannot be, and with jose's
 * errors for a token that no key is for.
 */
export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  #keys: KeySet | undefined;
  #askedAtMs = -Infinity;
  /** In a row. */
  #failures = 0;
  #asking: Promise<void> | undefined;

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
  }

  readonly key: JWTVerifyGetKey = async (header, token) => {
    const { find } = await this.#known();
    try {
      return await find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    }
    return await (await this.#newest()).find(header, token);
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

  /** The keys as of now, or of a moment ago. */
  async #newest(): Promise<KeySet> {
    await this.#ask();
    if (this.#keys === undefined || this.#failures > 0) throw this.#unavailable();
    return this.#keys;
  }

  #ageMs(): number {
    return this.#keys === undefined ? Infinity : this.#options.clock.monotonicMs() - this.#keys.atMs;
  }

  /** Asks the issuer, unless it was asked just now. Does not reject. */
  async #ask(): Promise<void> {
    if (this.#asking === undefined && this.#waitMs() > 0) return;
    this.#asking ??= this.#load().finally(() => (this.#asking = undefined));
    await this.#asking;
  }

  async #load(): Promise<void> {
    const { issuer, load, clock, log } = this.#options;
    this.#askedAtMs = clock.monotonicMs();
    try {
      const find = createLocalJWKSet({ keys: await load() });
      this.#keys = { find, atMs: clock.monotonicMs() };
      if (this.#failures > 0) log.info({ issuer }, "the keys of the issuer are there again");
      this.#failures = 0;
    } catch (error) {
      this.#failures++;
      log.warn({ issuer, reason: messageOf(error) }, "the keys of an issuer cannot be fetched");
    }
  }

  /** Until the issuer may be asked again. */
  #waitMs(): number {
    const retryMs = FIRST_RETRY_MS * 2 ** Math.max(0, this.#failures - 1);
    const pauseMs = this.#keys === undefined ? Math.min(retryMs, ASK_EVERY_MS) : ASK_EVERY_MS;
    return this.#askedAtMs + pauseMs - this.#options.clock.monotonicMs();
  }

  #unavailable(): EngineError {
    const retrySecs = Math.max(1, Math.ceil(this.#waitMs() / 1_000));
    return new EngineError("unavailable", "the token cannot be checked: the keys of its issuer cannot be fetched", {
      headers: { "Retry-After": String(retrySecs) },
    });
  }
}
