import type { Clock } from "../core/clock.ts";
import { foldName } from "../core/names.ts";
import type { AuditLog, Origin } from "./audit.ts";
import { unauthorized } from "./authenticator.ts";
import { FailureLimit } from "./failure-limit.ts";
import { networkOf } from "./network.ts";
import type { Passwords } from "./passwords.ts";
import type { Sessions, SessionTokens } from "./sessions.ts";
import type { User, Users } from "./users.ts";

/**
 * Signing in with a password. Guessing is slowed in two ways: by the network that guesses, and by the account that is
 * guessed. The second must not let anyone lock the owner out, so it does not hold for networks from which that user has
 * a session: only who comes from elsewhere waits while an account is under attack. Both counts are the process's own.
 */
export type SignInOptions = {
  users: Users;
  sessions: Sessions;
  passwords: Passwords;
  audit: AuditLog;
  clock: Clock;
};

export type SignedIn = { user: User; tokens: SessionTokens };

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
    const { users, sessions, passwords } = this.#options;
    const address = networkOf(request.address);
    this.#byNetwork.check(address);
    const found = await users.find(name);
    const account = foldName(name);
    const isKnownThere = found !== undefined && (await sessions.hasBeenAt(found.user.id, address));
    if (!isKnownThere) this.#byAccount.check(account);
    if (found === undefined || !(await passwords.verify(found.passwordHash, password))) {
      if (found === undefined) await passwords.verify(undefined, password);
      this.#byNetwork.count(address);
      this.#byAccount.count(account);
      await this.#recordFailure(name, request);
      throw unauthorized(WRONG);
    }
    const { user } = found;
    const origin: Origin = { ...request, address, caller: { subject: user.name, kind: "session" } };
    return { user, tokens: await sessions.open(user, origin) };
  }

  async #recordFailure(name: string, request: Omit<Origin, "caller">): Promise<void> {
    const origin: Origin = { ...request, caller: { subject: "anonymous", kind: "anonymous" } };
    await this.#options.audit.record({ origin, action: "auth.login", target: name, outcome: "refused" });
  }
}
