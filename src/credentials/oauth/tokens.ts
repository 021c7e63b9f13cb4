import type { Origin } from "../../auth/audit.ts";
import type { Caller } from "../../auth/caller.ts";
import type { Asker } from "../../auth/owner.ts";
import type { Catalog, Lease } from "../../catalog/catalog.ts";
import { fullBackoffMs } from "../../core/backoff.ts";
import { sleep, type Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Credentials, Revealed } from "../credentials.ts";
import type { ProviderDirectory } from "./directory.ts";
import { grantOf, wholeApp, type OAuth2Value } from "./grant.ts";
import { refreshTokens, type OAuthApp, type TokenOutcome } from "./token-client.ts";

/**
 * Access tokens of connected accounts, renewed when they end. Providers rotate refresh tokens and take the second use
 * of one for a theft, so of all who need a token at once, in all processes, one asks: within a process the others wait
 * for its promise, across processes for its lease of the catalog.
 *
 * A process that dies after the provider has answered and before the answer is stored takes the new tokens with it.
 * With a provider that rotates, the stored refresh token is then spent: the next renewal is refused, the credential is
 * marked, and its owner connects again. Nothing on this side can prevent that; that the store is tried again while the
 * lease lasts makes it as rare as a crash.
 */
export type OAuthTokensOptions = {
  credentials: Credentials;
  catalog: Pick<Catalog, "acquireLease" | "releaseLease">;
  newId: IdSource;
  clock: Clock;
  log: Log;
  providers: ProviderDirectory;
};

/** What is left of a token that is given out, at least. */
const MARGIN_MS = 60_000;
/** More than asking the provider, with its limit of 10 s, and storing the answer take. */
const LEASE_MS = 45_000;
/** How long one waits for the process that holds the lease: past the end of a lease whose holder died. */
const WAIT_MS = 60_000;
const POLL = { firstMs: 100, mostMs: 1_000 } as const;
const STORE_ATTEMPTS = 5;
const STORE_RETRY_MS = 500;

const SELF: Caller = { subject: "engine", kind: "internal", role: "admin", databases: undefined };
const ENGINE: Origin = { caller: SELF, address: "", requestId: "" };

export class OAuthTokens {
  readonly #options: OAuthTokensOptions;
  /** Renewals under way in this process, by credential. */
  readonly #renewals = new Map<string, Promise<string>>();

  constructor(options: OAuthTokensOptions) {
    this.#options = options;
  }

  /**
   * An access token that is good for another minute, as far as the provider said how long it lasts. `refused` is one
   * that the provider's API did not take although it should last: it is renewed. Throws `not_found` as
   * `Credentials.reveal`, `conflict` when the account must be connected again, `not_configured` without the provider or
   * the app of the grant, `unavailable` when the provider cannot be asked at this moment.
   */
  async fresh(credentialId: string, caller: Asker, refused?: string): Promise<string> {
    // Every caller's own right to the credential is checked, also when it only waits.
    const revealed = await this.#options.credentials.reveal(credentialId, caller);
    const token = this.#usable(revealed, refused);
    if (token !== undefined) return token;
    const running = this.#renewals.get(credentialId);
    if (running !== undefined) return await running;
    const renewal = this.#renew(credentialId, refused).finally(() => this.#renewals.delete(credentialId));
    this.#renewals.set(credentialId, renewal);
    return await renewal;
  }

  /**
   * Renews the access token whether or not it ends soon. Who asks while another does gets the token of that one. Throws
   * as `fresh`, and `conflict` when there is no refresh token.
   */
  async renew(credentialId: string, caller: Asker): Promise<void> {
    const { value } = await this.#options.credentials.reveal(credentialId, caller);
    if (value.kind === "oauth2" && value.refresh_token === undefined) {
      // Its access token may still be good: nothing is marked.
      throw new EngineError("conflict", `the credential ${credentialId} has no refresh token`);
    }
    await this.fresh(credentialId, caller, value.kind === "oauth2" ? value.access_token : undefined);
  }

  async #renew(id: string, refused: string | undefined): Promise<string> {
    const { catalog, clock, newId } = this.#options;
    const holder = newId();
    const deadlineMs = clock.monotonicMs() + WAIT_MS;
    for (let polls = 0; ; polls++) {
      const lease = await catalog.acquireLease(`oauth-refresh/${id}`, holder, LEASE_MS);
      if (lease !== undefined) return await this.#renewHeld(id, refused, lease);
      const token = this.#usable(await this.#reveal(id), refused);
      if (token !== undefined) return token;
      if (clock.monotonicMs() > deadlineMs) {
        throw new EngineError("unavailable", `another process renews the credential ${id} and has not finished`);
      }
      await sleep(clock, fullBackoffMs(POLL, polls));
    }
  }

  async #renewHeld(id: string, refused: string | undefined, lease: Lease): Promise<string> {
    const { catalog, log } = this.#options;
    try {
      // Read under the lease: whoever had it before may have renewed the token.
      const revealed = await this.#reveal(id);
      return this.#usable(revealed, refused) ?? (await this.#ask(revealed));
    } finally {
      // It ends by itself, too.
      const onFailure = (error: unknown) => log.warn({ err: error, credential: id }, "a lease was not given back");
      await catalog.releaseLease(lease).catch(onFailure);
    }
  }

  /** The token, if there is nothing to renew; throws when it cannot be renewed. */
  #usable({ credential, value }: Revealed, refused: string | undefined): string | undefined {
    if (value.kind !== "oauth2") {
      throw new EngineError("conflict", `the credential ${credential.id} is of the kind ${value.kind}, not oauth2`);
    }
    if (credential.status === "refresh_failed") throw mustReconnect(credential.id, credential.statusDetail);
    const { expires_at: expiresAt, access_token: token } = value;
    const lastsMs = expiresAt === undefined ? Infinity : Date.parse(expiresAt) - this.#options.clock.nowMs();
    return lastsMs >= MARGIN_MS && token !== refused ? token : undefined;
  }

  async #ask(revealed: Revealed): Promise<string> {
    const { credential, value, version } = revealed;
    const { id } = credential;
    if (value.kind !== "oauth2" || value.refresh_token === undefined) {
      return await this.#markFailed(id, version, "no_refresh_token");
    }
    const { provider } = value;
    if (provider === undefined) return await this.#markFailed(id, version, "unknown_provider");
    const own = wholeApp({ clientId: value.client_id, clientSecret: value.client_secret });
    const outcome = await refreshTokens(await this.#options.providers.client(provider, own), value.refresh_token);
    const next = outcome.kind === "tokens" ? this.#renewed(provider, own, value, outcome) : undefined;
    if (next !== undefined) return await this.#store(id, version, next);
    const problem = problemOf(outcome);
    if (problem === "invalid_grant") return await this.#markFailed(id, version, problem);
    this.#options.log.warn({ provider, credential: id, problem }, "a credential could not be renewed");
    throw new EngineError("unavailable", `the credential ${id} cannot be renewed at this moment: ${problem}`);
  }

  /** The provider may leave out what stays as it is. */
  #renewed(
    provider: string,
    own: OAuthApp | undefined,
    former: OAuth2Value,
    { tokens }: Extract<TokenOutcome, { kind: "tokens" }>,
  ): OAuth2Value | undefined {
    const { refreshToken = former.refresh_token, scope = former.scope } = tokens;
    return grantOf(provider, own, { ...tokens, refreshToken, scope });
  }

  /** The provider has given these tokens once and will not again: storing them is worth several attempts. */
  async #store(id: string, version: number, value: OAuth2Value): Promise<string> {
    const { credentials, clock, log } = this.#options;
    for (let attempt = 1; ; attempt++) {
      try {
        // When it returns false, an attempt before had succeeded, or somebody replaced the value: theirs is newer.
        if (await credentials.replace(id, version, value, ENGINE)) return value.access_token;
        return (await this.#stored(id)) ?? value.access_token;
      } catch (error) {
        if (attempt === STORE_ATTEMPTS || (error instanceof EngineError && error.code === "not_found")) throw error;
        log.warn({ err: error, credential: id, attempt }, "renewed tokens could not be stored; trying again");
        await sleep(clock, STORE_RETRY_MS);
      }
    }
  }

  async #stored(id: string): Promise<string | undefined> {
    return this.#usable(await this.#reveal(id), undefined);
  }

  /** Renewal is on behalf of the engine; the caller's own right was checked before. */
  async #reveal(id: string): Promise<Revealed> {
    return await this.#options.credentials.reveal(id, SELF);
  }

  async #markFailed(id: string, version: number, detail: string): Promise<never> {
    const { credentials, log } = this.#options;
    log.warn({ credential: id, detail }, "a credential cannot be renewed any more");
    await credentials.markFailed(id, version, detail, ENGINE);
    throw mustReconnect(id, detail);
  }
}

function problemOf(outcome: TokenOutcome): string {
  switch (outcome.kind) {
    case "tokens":
      return "invalid_tokens";
    case "refused":
      return outcome.error;
    case "unreachable":
      return outcome.reason;
  }
}

function mustReconnect(id: string, detail: string | undefined): EngineError {
  const why = detail === undefined ? "" : ` (${detail})`;
  return new EngineError("conflict", `the provider does not renew the credential ${id}${why}: connect it again`);
}
