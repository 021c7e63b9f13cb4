import type { Issued } from "../jwt/issued.ts";

/**
 * What signing in with an issuer takes, whatever its protocol: a browser is sent there and comes back with a code, this
 * server exchanges the code, and asks again later with the refresh token that came along. No token reaches the browser.
 */
export interface SignInClient {
  /** As its tokens spell it. */
  readonly issuer: string;
  /** Where the browser goes. Rejects with `unavailable` when the issuer does not say where that is. */
  authorizationUrl(asked: SignInRequest): Promise<string>;
  exchange(answer: CodeAnswer, asked: SignInRequest): Promise<GrantOutcome>;
  refresh(refreshToken: string): Promise<GrantOutcome>;
  /** What the token of a grant says; undefined when it is not good. Rejects with `unavailable` when nobody can tell. */
  issued(token: string): Promise<Issued | undefined>;
}

/** What is known of a sign-in while the browser is away. */
export type SignInRequest = {
  /** The way to sign in that was chosen, as `SignInWay` has it. */
  provider: string;
  redirectUri: string;
  state: string;
  nonce: string;
  /** PKCE's. */
  verifier: string;
};

/** What the browser brings back; `iss` is who answers (RFC 9207). */
export type CodeAnswer = { code: string; iss: string | undefined };

export type GrantOutcome =
  /** A renewed grant may come without a token, and without another refresh token: then those of before hold. */
  | { kind: "granted"; token: string | undefined; refreshToken: string | undefined }
  /** The issuer has said no, and will go on to. */
  | { kind: "refused"; error: string }
  /** It did not answer, or said something that is no grant and no such no: asking again may help. */
  | { kind: "unreachable" | "invalid"; reason: string };

/** A button of the page that signs in. */
export type SignInWay = {
  /** What `start` is asked for. */
  provider: string;
  /** What people read. */
  title: string;
  client: SignInClient;
};
