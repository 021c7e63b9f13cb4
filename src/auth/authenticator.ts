import { EngineError } from "../core/errors.ts";
import type { Origin } from "./audit.ts";
import { ANONYMOUS, type Caller } from "./caller.ts";
import type { FailureLimit } from "./failure-limit.ts";

/**
 * Turns what a request shows into a caller. Which tokens there are is the configuration's choice; each kind is a
 * `TokenBackend`, and the form of a token says which one judges it. A token that no backend knows gets the same answer
 * as one that is expired or revoked: the answer must not help to guess.
 */
export interface Authenticator {
  /** Whether callers must show a token. Where they need not, one without a valid token may do everything. */
  readonly isOn: boolean;
  /**
   * Rejects with `EngineError`: `unauthorized`, `too_many_requests` for an address from which too many wrong tokens
   * came, `unavailable` when the token cannot be checked just now, `forbidden` for a valid one without any right here.
   */
  authenticate(credentials: Credentials): Promise<Caller>;
}

export type Credentials = {
  /** The header `Authorization`. */
  authorization: string | undefined;
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

export type AuthenticatorOptions = {
  isOn: boolean;
  backends: readonly TokenBackend[];
  failures: FailureLimit;
};

export function createAuthenticator({ isOn, backends, failures }: AuthenticatorOptions): Authenticator {
  const judge = async (token: string, from: Omit<Origin, "caller">) => {
    return await backends.find((backend) => backend.recognizes(token))?.authenticate(token, from);
  };
  return {
    isOn,
    async authenticate({ authorization, address, requestId }) {
      const from = { address, requestId };
      const token = bearerOf(authorization);
      if (!isOn) return (token === undefined ? undefined : await judge(token, from)) ?? ANONYMOUS;
      if (token === undefined) {
        throw unauthorized(authorization === undefined ? "send Authorization: Bearer <TOKEN>" : NOT_BEARER);
      }
      failures.check(address);
      const caller = await judge(token, from);
      if (caller !== undefined) return caller;
      failures.count(address);
      throw unauthorized("the token is not valid: it is unknown, expired or revoked", "invalid_token");
    },
  };
}

const NOT_BEARER = "the Authorization header is not of the form: Bearer <TOKEN>";

/** The token of a header; undefined where there is none, or a malformed one. RFC 6750 §2.1; schemes have no case. */
export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization ?? "")?.[1];
}

/** 401 with the challenge that RFC 6750 §3 asks for. */
export function unauthorized(message: string, error?: "invalid_token"): EngineError {
  const challenge = `Bearer realm="engine"${error === undefined ? "" : `, error="${error}"`}`;
  return new EngineError("unauthorized", message, { headers: { "WWW-Authenticate": challenge } });
}
