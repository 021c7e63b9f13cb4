import { EngineError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { AuditLog } from "../audit.ts";
import { unauthorized, type Authenticator } from "../authenticator.ts";
import type { Caller } from "../caller.ts";
import type { SignIn } from "../sign-in.ts";
import { hashToken } from "../tokens.ts";
import type { WebIssuers } from "./issuers.ts";
import type { CodeAnswer, GrantOutcome, SignInRequest, SignInWay } from "./sign-in-client.ts";
import { passwordVersion, type Voucher } from "./voucher.ts";
import type { BrowserRequest, WebSessions } from "./web-sessions.ts";

/**
 * Signing in from a browser: with a password, with a token, or with an issuer that the browser is sent to. What fails
 * counts as a failed sign-in of the network that it comes from, whichever of them it is; an issuer that does not answer
 * does not.
 */
export type WebSignInOptions = {
  signIn: SignIn;
  webSessions: WebSessions;
  authenticator: Pick<Authenticator, "authenticate">;
  issuers: WebIssuers;
  audit: AuditLog;
  log: Log;
};

export type SignedInBrowser = { caller: Caller; cookie: string };

/**
 * Why an issuer has signed nobody in, as the page that signs in is told:
 * - `provider_refused`: the code is no good, or not this browser's.
 * - `provider_unreachable`: the issuer did not answer.
 * - `invalid_token`: what it answered is not good here.
 * - `forbidden`: it has signed in somebody who may not come in here.
 */
export type WebSignInProblem = "provider_refused" | "provider_unreachable" | "invalid_token" | "forbidden";

const PROBLEMS = {
  refused: "provider_refused",
  unreachable: "provider_unreachable",
  invalid: "invalid_token",
} as const satisfies Record<Exclude<GrantOutcome["kind"], "granted">, WebSignInProblem>;

const NO_BROWSERS_TOKEN =
  "a browser signs in with a password, with a token of the configuration, an API token, or one of an issuer; " +
  "not with a token of a session or of this program itself";

export class WebSignIn {
  readonly #options: WebSignInOptions;

  constructor(options: WebSignInOptions) {
    this.#options = options;
  }

  /** Rejects as `SignIn.signIn` does. */
  async withPassword(name: string, password: string, request: BrowserRequest): Promise<SignedInBrowser> {
    const { user, passwordHash } = await this.#options.signIn.verified(name, password, request);
    const caller: Caller = {
      subject: user.name,
      kind: "session",
      role: user.role,
      databases: undefined,
      userId: user.id,
    };
    const voucher: Voucher = { kind: "password", userId: user.id, version: passwordVersion(passwordHash) };
    return await this.#opened(voucher, caller, request);
  }

  /** Rejects as `Authenticator.authenticate` does, and with `forbidden` for a token that no browser may sign in with. */
  async withToken(token: string, request: BrowserRequest): Promise<SignedInBrowser> {
    const { address, requestId } = request;
    const caller = await this.#options.signIn.limited(address, async () => {
      try {
        const credentials = { authorization: `Bearer ${token}`, address, requestId };
        const found = await this.#options.authenticator.authenticate(credentials);
        // While authentication is off, whoever has no good token is anybody.
        return found.kind === "anonymous" ? undefined : found;
      } catch (error) {
        if (error instanceof EngineError && error.code === "unauthorized") return undefined;
        throw error;
      }
    });
    if (caller === undefined) {
      await this.#refused(request, "", { voucher: "token" });
      throw unauthorized("the token is not valid: it is unknown, expired or revoked", "invalid_token");
    }
    const voucher = await this.#voucherOf(token, caller);
    if (voucher === undefined) throw new EngineError("forbidden", NO_BROWSERS_TOKEN);
    return await this.#opened(voucher, caller, request);
  }

  /** The buttons of the page that signs in. */
  get ways(): readonly SignInWay[] {
    return this.#options.issuers.ways;
  }

  /** What the browser brings back from an issuer. Rejects with `too_many_requests` after too many failures. */
  async withCode(
    way: SignInWay,
    answer: CodeAnswer,
    asked: SignInRequest,
    request: BrowserRequest,
  ): Promise<SignedInBrowser | WebSignInProblem> {
    let problem: WebSignInProblem = "invalid_token";
    const found = await this.#options.signIn.limited(request.address, async () => {
      const outcome = await this.#attempt(way, answer, asked, request);
      // An outage of the issuer says nothing about who signs in, so it must not lock their network out.
      if (typeof outcome !== "string" || outcome === "provider_unreachable") return outcome;
      problem = outcome;
      return undefined;
    });
    if (typeof found === "object") return found;
    const why = found ?? problem;
    await this.#refused(request, way.provider, { voucher: "issuer", why });
    return why;
  }

  async #attempt(
    { client }: SignInWay,
    answer: CodeAnswer,
    asked: SignInRequest,
    request: BrowserRequest,
  ): Promise<SignedInBrowser | WebSignInProblem> {
    const { issuers, log } = this.#options;
    const { issuer } = client;
    const outcome = await client.exchange(answer, asked);
    const { requestId } = request;
    log.info({ issuer, outcome: outcome.kind, ...reasonIn(outcome), requestId }, "a browser came back from an issuer");
    if (outcome.kind !== "granted") return PROBLEMS[outcome.kind];
    const issued = outcome.token === undefined ? undefined : await client.issued(outcome.token);
    if (issued === undefined || issued.issuer !== issuer) return "invalid_token";
    let caller: Caller | undefined;
    try {
      caller = await issuers.callerOf(issued, request);
    } catch (error) {
      if (error instanceof EngineError && error.code === "forbidden") return "forbidden";
      throw error;
    }
    if (caller === undefined) return "invalid_token";
    const { refreshToken } = outcome;
    return await this.#opened({ kind: "issuer", issued, refreshToken, lasts: "as the account" }, caller, request);
  }

  async #voucherOf(token: string, caller: Caller): Promise<Voucher | undefined> {
    if (caller.kind === "static") return { kind: "static", hash: hashToken(token) };
    if (caller.kind === "api_token" && caller.tokenId !== undefined) {
      return { kind: "api_token", tokenId: caller.tokenId };
    }
    if (caller.kind !== "idp" && caller.kind !== "oidc") return undefined;
    const issued = await this.#options.issuers.issued(token);
    return issued && { kind: "issuer", issued, refreshToken: undefined, lasts: "as the token" };
  }

  async #opened(voucher: Voucher, caller: Caller, request: BrowserRequest): Promise<SignedInBrowser> {
    return { caller, cookie: await this.#options.webSessions.open(voucher, caller, request) };
  }

  async #refused(
    { address, requestId }: BrowserRequest,
    target: string,
    details: Readonly<Record<string, string>>,
  ): Promise<void> {
    const origin = { address, requestId, caller: { subject: "anonymous", kind: "anonymous" } as const };
    await this.#options.audit.record({ origin, action: "auth.login", target, outcome: "refused", details });
  }
}

function reasonIn(outcome: GrantOutcome): { reason?: string } {
  if (outcome.kind === "granted") return {};
  return { reason: outcome.kind === "refused" ? outcome.error : outcome.reason };
}
