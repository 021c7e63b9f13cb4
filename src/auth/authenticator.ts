import { Semaphore } from "../core/concurrency.ts";
import { EngineError } from "../core/errors.ts";
import type { Origin } from "./audit.ts";
import { ANONYMOUS, type Caller, type WorkerIdentity } from "./caller.ts";
import type { FailureLimit } from "./failure-limit.ts";
import { networkOf } from "./network.ts";
import { LOCAL_OWNER } from "./owner.ts";
import { hashToken, isToken } from "./tokens.ts";

/**
 * Turns what a request shows into a caller. Which tokens there are is the configuration's choice; each kind is a
 * `TokenBackend`, and the form of a token says which one judges it. A token that no backend knows gets the same answer
 * as one that is expired or revoked: the answer must not help to guess.
 */
export interface Authenticator {
  /** Whether callers must show a token. Where they need not, one without a valid token may do everything. */
  readonly isOn: boolean;
  /**
   * Rejects with `EngineError`: `unauthorized`, `too_many_requests` for a wrong token that came too often from there,
   * `unavailable` when the token cannot be checked just now, `forbidden` for a valid one without any right here.
   */
  authenticate(credentials: Credentials): Promise<Caller>;
  /**
   * The worker whose token it is. Workers must show theirs also where nobody else needs one: it says who holds the jobs.
   * Rejects as `authenticate` does.
   */
  authenticateWorker(credentials: Credentials): Promise<WorkerIdentity>;
}

export type Credentials = {
  /** The header `Authorization`. */
  authorization: string | undefined;
  /**
   * The cookie of a browser that signed in, of a request that has shown that a page of this server made it; absent from
   * all others (`server/web-session.ts`). It counts only where there is no `authorization`.
   */
  webSession?: string | undefined;
  /** Address of the client, for limits and the audit log. */
  address: string;
  requestId: string;
};

export interface TokenBackend {
  /** Whether a token has the form of this backend's; the first backend that says so judges it. */
  recognizes(token: string): boolean;
  /**
   * The caller, or undefined for a token that is not, or no longer, valid. Rejects with `EngineError`: `unavailable` when
   * that cannot be known just now, `forbidden` for a valid token whose bearer may not come in.
   */
  authenticate(token: string, from: Omit<Origin, "caller">): Promise<Caller | undefined>;
}

/** Who knows the tokens of workers. */
export interface WorkerBackend {
  /** The worker, or undefined for a token that is not, or no longer, valid. Rejects with `unavailable`. */
  authenticate(token: string): Promise<WorkerIdentity | undefined>;
}

export type AuthenticatorOptions = {
  isOn: boolean;
  backends: readonly TokenBackend[];
  /** Knows the cookies of browsers that signed in, which no backend takes for a token; undefined where nobody can. */
  webSessions?: TokenBackend | undefined;
  /** Undefined where no routes for workers are. */
  workers?: WorkerBackend | undefined;
  failures: FailureLimit;
};

/** Tokens from networks that guess which are looked up at a time. */
const SUSPECTS_AT_ONCE = 2;

/**
 * Wrong tokens are slowed so that good ones never are: each wrong token from a network has a limit of its own, past
 * which it is refused without being looked up. Wrong tokens that are new each time cannot be told from good ones before
 * they are looked up; past the same limit those of a network are looked up a few at a time, whatever it sends, and the
 * others wait their turn on their connections. Tokens are too long to be guessed, at whatever pace.
 */
class TokenLimit {
  readonly #failures: FailureLimit;
  readonly #suspects = new Semaphore(SUSPECTS_AT_ONCE);

  constructor(failures: FailureLimit) {
    this.#failures = failures;
  }

  /** What `judge` makes of a token, if it is asked; undefined for a wrong one. Throws `too_many_requests`. */
  async judged<T>(token: string, address: string, judge: () => Promise<T | undefined>): Promise<T | undefined> {
    const network = networkOf(address);
    // Nearly always nothing has failed there: then no token can have, and none is hashed for this.
    if (this.#failures.hasFailed(network)) this.#failures.check(keyOf(network, token), REPEATED);
    const found = this.#failures.isReached(network) ? await this.#suspects.run(judge) : await judge();
    if (found !== undefined) return found;
    this.#failures.count(keyOf(network, token));
    // After that of the token, so that it is never forgotten before it.
    this.#failures.count(network);
    return undefined;
  }
}

const REPEATED = "this token is not valid, and came too often; wait";

function keyOf(network: string, token: string): string {
  return `${network} ${hashToken(token)}`;
}

export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { isOn, backends, webSessions, workers, failures } = options;
  const judge = async (token: string, from: Omit<Origin, "caller">) => {
    return await backends.find((backend) => backend.recognizes(token))?.authenticate(token, from);
  };
  const judgeCookie = async (cookie: string, from: Omit<Origin, "caller">) => {
    return webSessions?.recognizes(cookie) === true ? await webSessions.authenticate(cookie, from) : undefined;
  };
  const limit = new TokenLimit(failures);
  return {
    isOn,
    async authenticate({ authorization, webSession, address, requestId }) {
      const from = { address, requestId };
      if (authorization === undefined && webSession !== undefined) {
        if (!isOn) return withoutOwner(await judgeCookie(webSession, from));
        const caller = await limit.judged(webSession, address, () => judgeCookie(webSession, from));
        if (caller !== undefined) return caller;
        throw unauthorized(ENDED, "invalid_token");
      }
      const token = bearerOf(authorization);
      if (token !== undefined && isToken("worker", token)) throw unauthorized(OF_A_WORKER, "invalid_token");
      // Also while authentication is off: the program that holds one must not do more than its run may.
      if (token !== undefined && isToken("run", token)) throw unauthorized(OF_A_RUN, "invalid_token");
      if (!isOn) return withoutOwner(token === undefined ? undefined : await judge(token, from));
      if (token === undefined) throw tokenMissing(authorization, "<TOKEN>");
      const caller = await limit.judged(token, address, () => judge(token, from));
      if (caller !== undefined) return caller;
      throw unauthorized(NOT_VALID, "invalid_token");
    },
    async authenticateWorker({ authorization, address }) {
      const token = bearerOf(authorization);
      if (token === undefined) throw tokenMissing(authorization, "<WORKER_TOKEN>");
      // Nobody looks up a token of another form, so nothing can be guessed with one.
      if (workers === undefined || !isToken("worker", token)) throw unauthorized(NOT_A_WORKERS, "invalid_token");
      const worker = await limit.judged(token, address, () => workers.authenticate(token));
      if (worker !== undefined) return worker;
      throw unauthorized(NOT_VALID, "invalid_token");
    },
  };
}

/** Where nobody needs to say who they are, what they make belongs to everybody, whoever says it all the same. */
function withoutOwner(caller: Caller | undefined): Caller {
  if (caller === undefined) return ANONYMOUS;
  return caller.kind === "internal" ? caller : { ...caller, owner: LOCAL_OWNER };
}

const NOT_VALID = "the token is not valid: it is unknown, expired or revoked";
const ENDED = "the session of this browser has ended: sign in again";
const OF_A_WORKER = "a worker's token is for the routes of workers";
const OF_A_RUN = "the token of a run is for the tools of that run, over MCP";
const NOT_A_WORKERS = "this route needs the token of a worker";

function tokenMissing(authorization: string | undefined, what: string): EngineError {
  if (authorization === undefined) return unauthorized(`send Authorization: Bearer ${what}`);
  return unauthorized(`the Authorization header is not of the form: Bearer ${what}`);
}

/** The token of a header; undefined where there is none, or a malformed one. RFC 6750 §2.1; schemes have no case. */
export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization ?? "")?.[1];
}

/** 401 with the challenge that RFC 6750 §3 asks for. */
export function unauthorized(message: string, error?: "invalid_token"): EngineError {
  const challenge = `Bearer realm="engine"${error === undefined ? "" : `, error="${error}"`}`;
  return new EngineError("unauthorized", message, { headers: { "WWW-Authenticate": challenge } });
}
