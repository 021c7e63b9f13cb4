import type { Clock } from "../core/clock.ts";
import { foldName } from "../core/names.ts";
import type { AuditLog, Origin } from "./audit.ts";
import { unauthorized } from "./authenticator.ts";
import { FailureLimit } from "./failure-limit.ts";
import { networkOf } from "./network.ts";
import type { Passwords } from "./passwords.ts";
import type { Sessions, SessionTokens } from "./sessions.ts";
import { hashToken } from "./tokens.ts";
import type { User, Users } from "./users.ts";
import type { WebSessions } from "./web/web-sessions.ts";

/**
 * Signing in with a password. Guessing is slowed in two ways: by the network that guesses, and by the account that is
 * guessed. The second must not let anyone lock the owner out, so it does not hold for networks from which that user has
 * a session: only who comes from elsewhere waits while an account is under attack. Both counts are the process's own.
 *
 * An attempt counts as a failure before anything is waited for, and no more once it turned out to be none: however many
 * come at once, no more passwords are checked than the limits say.
 */
export type SignInOptions = {
  users: Users;
  sessions: Sessions;
  webSessions: Pick<WebSessions, "hasBeenAt">;
  passwords: Passwords;
  audit: AuditLog;
  clock: Clock;
};

export type VerifiedUser = { user: User; passwordHash: string };

export type SignedIn = { user: User; tokens: SessionTokens };

const WAIT = "too many failed sign-ins from this address; wait";
const WRONG = "there is no such user, or the password is wrong";

export class SignIn {
  readonly #options: SignInOptions;
  readonly #byNetwork: FailureLimit;
  readonly #byAccount: FailureLimit;

  constructor(options: SignInOptions) {
    this.#options = options;
    this.#byNetwork = new FailureLimit({ clock: options.clock, burst: 10, refillMs: 6_000 });
    this.#byAccount = new FailureLimit({ clock: options.clock, burst: 20, refillMs: 30_000 });
  }

  /** Rejects with `unauthorized`, and with `too_many_requests` after too many failures. */
  async signIn(name: string, password: string, request: Omit<Origin, "caller">): Promise<SignedIn> {
    const { user } = await this.verified(name, password, request);
    const address = networkOf(request.address);
    const origin: Origin = { ...request, address, caller: { subject: user.name, kind: "session" } };
    return { user, tokens: await this.#options.sessions.open(user, origin) };
  }

  /** The user whose password it is, with its hash. Rejects as `signIn` does. */
  async verified(name: string, password: string, request: Omit<Origin, "caller">): Promise<VerifiedUser> {
    const found = await this.check(name, password, request.address);
    if (found !== undefined) return found;
    await this.#recordFailure(name, request);
    throw unauthorized(WRONG);
  }

  /** The user whose password it is, or undefined, which counts as a failure. Rejects with `too_many_requests`. */
  async check(name: string, password: string, address: string): Promise<VerifiedUser | undefined> {
    return await this.limited(address, (network) => this.#checked(name, password, network));
  }

  /**
   * An attempt to sign in from that address, whatever with: it resolves to undefined for one that failed, which counts,
   * and rejects for one that was not looked at. Rejects with `too_many_requests` after too many failures.
   */
  async limited<T>(address: string, attempt: (network: string) => Promise<T | undefined>): Promise<T | undefined> {
    const network = networkOf(address);
    this.#byNetwork.check(network, WAIT);
    this.#byNetwork.count(network);
    let found: T | undefined;
    try {
      found = await attempt(network);
    } catch (error) {
      this.#byNetwork.giveBack(network);
      throw error;
    }
    if (found !== undefined) this.#byNetwork.giveBack(network);
    return found;
  }

  /** The user whose password it is; undefined when it is not. Rejects when it was not checked. */
  async #checked(name: string, password: string, network: string): Promise<VerifiedUser | undefined> {
    const { users, sessions, webSessions, passwords } = this.#options;
    const found = await users.find(name);
    // Names have any length, and many are kept.
    const account = hashToken(foldName(name));
    const isKnownThere =
      found !== undefined &&
      ((await sessions.hasBeenAt(found.user.id, network)) || (await webSessions.hasBeenAt(found.user.id, network)));
    if (!isKnownThere) this.#byAccount.check(account, WAIT);
    this.#byAccount.count(account);
    let isRight = false;
    try {
      isRight = await passwords.verify(found?.passwordHash, password);
    } catch (error) {
      this.#byAccount.giveBack(account);
      throw error;
    }
    if (found?.passwordHash === undefined || !isRight) return undefined;
    this.#byAccount.giveBack(account);
    return { user: found.user, passwordHash: found.passwordHash };
  }

  async #recordFailure(name: string, request: Omit<Origin, "caller">): Promise<void> {
    const origin: Origin = { ...request, caller: { subject: "anonymous", kind: "anonymous" } };
    await this.#options.audit.record({ origin, action: "auth.login", target: name, outcome: "refused" });
  }
}
