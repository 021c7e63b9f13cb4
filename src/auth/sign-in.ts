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
  passwords: Passwords;
  audit: AuditLog;
  clock: Clock;
};

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
    const network = networkOf(request.address);
    this.#byNetwork.check(network, WAIT);
    this.#byNetwork.count(network);
    const user = await this.#checked(name, password, network).catch((error: unknown) => {
      // It was not checked.
      this.#byNetwork.giveBack(network);
      throw error;
    });
    if (user === undefined) {
      await this.#recordFailure(name, request);
      throw unauthorized(WRONG);
    }
    this.#byNetwork.giveBack(network);
    const origin: Origin = { ...request, address: network, caller: { subject: user.name, kind: "session" } };
    return { user, tokens: await this.#options.sessions.open(user, origin) };
  }

  /** The user whose password it is; undefined when it is not. Rejects when it was not checked. */
  async #checked(name: string, password: string, network: string): Promise<User | undefined> {
    const { users, sessions, passwords } = this.#options;
    const found = await users.find(name);
    // Names have any length, and many are kept.
    const account = hashToken(foldName(name));
    const isKnownThere = found !== undefined && (await sessions.hasBeenAt(found.user.id, network));
    if (!isKnownThere) this.#byAccount.check(account, WAIT);
    this.#byAccount.count(account);
    let isRight = false;
    try {
      isRight = await passwords.verify(found?.passwordHash, password);
    } catch (error) {
      this.#byAccount.giveBack(account);
      throw error;
    }
    if (found === undefined || !isRight) return undefined;
    this.#byAccount.giveBack(account);
    return found.user;
  }

  async #recordFailure(name: string, request: Omit<Origin, "caller">): Promise<void> {
    const origin: Origin = { ...request, caller: { subject: "anonymous", kind: "anonymous" } };
    await this.#options.audit.record({ origin, action: "auth.login", target: name, outcome: "refused" });
  }
}
