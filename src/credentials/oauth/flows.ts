import { timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { AuditLog, Origin } from "../../auth/audit.ts";
import type { Caller } from "../../auth/caller.ts";
import { ownerOf } from "../../auth/owner.ts";
import { isTheirs } from "./started-by.ts";
import { isSecret, newSecret } from "../../auth/secrets.ts";
import { hashToken } from "../../auth/tokens.ts";
import { boundedCode } from "../../auth/web/fetch-within.ts";
import type { RecordStore } from "../../db/records.ts";
import { EngineError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { Random } from "../../core/random.ts";
import type { Credentials } from "../credentials.ts";
import { open, seal } from "../../auth/sealing/envelope.ts";
import type { Keyring } from "../../auth/sealing/keyring.ts";
import { claim, cleaning, completion, failure, findFlow, insertion, type FlowRow } from "./flow-records.ts";
import type { ProviderDirectory } from "./directory.ts";
import { grantOf, wholeApp } from "./grant.ts";
import { scopesOf, type ScopeRequest } from "./scopes.ts";
import { neededKeyring } from "../needed-keyring.ts";
import { authorizationUrl, exchangeCode, type AuthorizationAnswer, type OAuthApp } from "./token-client.ts";

/**
 * Connects an account of a provider by the authorization code grant (RFC 6749 §4.1, with the practices of RFC 9700):
 * whoever starts a flow gets the provider's address for a browser; the provider sends the browser back with a code and
 * the flow's `state`; the code is exchanged for tokens, which become a credential of the one who started.
 *
 * A code must not end up with somebody who led its owner to grant it. So a flow also has a mark of the browser that
 * started it (`browserToken`); an answer that comes without it waits until a person has confirmed whom it is for, which
 * is up to the caller of `finish`.
 */
export type OAuthFlowsOptions = {
  records: RecordStore;
  audit: AuditLog;
  credentials: Credentials;
  keyring: Keyring | undefined;
  random: Random;
  log: Log;
  providers: ProviderDirectory;
  /** The origin under which browsers reach this server. */
  redirectBase: string;
};

export type StartRequest = ScopeRequest & {
  provider: string;
  /** Where the provider sends the browser back to; `redirectUri(provider)` by default. */
  redirectUri?: string;
  label: string | undefined;
  /** The caller's own app; the operator's by default. */
  app: OAuthApp | undefined;
};

export type StartedFlow = { authorizeUrl: string; state: string; browserToken: string };

/** What is known of a flow when an answer for it comes. */
export type PendingFlow = {
  provider: string;
  providerTitle: string;
  label: string;
  /** The name of the one who started it. */
  startedBy: string;
  /** Whether the browser with that mark started it. */
  isOf(browserToken: string | undefined): boolean;
};

export type FlowStatus = "pending" | "done" | "failed" | "expired";

/** `used`: there was an answer already. `unknown`: there is no such flow of that provider. */
export type FlowProblem = "unknown" | "used" | "expired";

export type FlowResult =
  | { status: "done"; credentialId: string }
  | { status: "failed"; detail: string }
  | { status: FlowProblem };

/** What the provider sent the browser back with. */
export type ProviderAnswer = AuthorizationAnswer | { error: string };

const flowSecrets = z.strictObject({
  verifier: z.string().optional(),
  /** No secret, but a part of what the exchange repeats. */
  redirectUri: z.string().optional(),
  clientId: z.string().optional(),
  clientSecret: z.string().optional(),
});

export class OAuthFlows {
  readonly #options: OAuthFlowsOptions;

  constructor(options: OAuthFlowsOptions) {
    this.#options = options;
  }

  /** Where providers send browsers back to. */
  redirectUri(provider: string): string {
    return `${this.redirectOrigin}/v1/oauth/${provider}/callback`;
  }

  get redirectOrigin(): string {
    return new URL(this.#options.redirectBase).origin;
  }

  /**
   * Throws `not_configured` without an app or a key, `bad_request_body` for what the provider does not have,
   * `unavailable` when its issuer does not say where it answers.
   */
  async start(request: StartRequest, origin: Origin & { caller: Caller }): Promise<StartedFlow> {
    const { records, audit, random, providers } = this.#options;
    const { provider: name, sourceType, redirectUri } = request;
    const keyring = neededKeyring(this.#options.keyring);
    const client = await providers.client(name, request.app);
    const { provider } = client;
    const scopes = scopesOf(provider, request);
    const [state, browserToken] = [newSecret(random), newSecret(random)];
    const verifier = provider.pkce ? newSecret(random) : undefined;
    const stateHash = hashToken(state);
    const label = request.label ?? [provider.title, sourceType].join(" ").trimEnd();
    const secrets: z.input<typeof flowSecrets> = { verifier, redirectUri, ...request.app };
    const { subject, kind, databases } = origin.caller;
    const details = { provider: name, ...dataSource(sourceType), label };
    await records.transact([
      cleaning(),
      insertion({
        stateHash,
        provider: name,
        sourceType,
        label,
        startedBy: {
          owner: ownerOf(origin.caller),
          subject,
          kind,
          databases,
        },
        browserHash: hashToken(browserToken),
        sealed: seal(keyring, random, subjectOf(stateHash), JSON.stringify(secrets)),
      }),
      audit.statement({ origin, action: "oauth.start", target: name, outcome: "ok", details }),
    ]);
    const asked = { redirectUri: redirectUri ?? this.redirectUri(name), state, scopes, verifier };
    return { authorizeUrl: await authorizationUrl(client, asked), state, browserToken };
  }

  /** The flow that an answer is for, if it still waits for one. */
  async pending(provider: string, state: string): Promise<PendingFlow | FlowProblem> {
    const flow = await this.#waiting(provider, state);
    if (typeof flow === "string") return flow;
    return {
      provider,
      label: flow.label,
      startedBy: flow.startedBy.subject,
      providerTitle: this.#options.providers.get(provider).title,
      isOf: (token) => token !== undefined && isEqual(hashToken(token), flow.browserHash),
    };
  }

  /** Takes the answer of the provider: once for each flow, whatever comes of it. */
  async finish(
    provider: string,
    state: string,
    answer: ProviderAnswer,
    from: Omit<Origin, "caller">,
  ): Promise<FlowResult> {
    const flow = await this.#waiting(provider, state);
    if (typeof flow === "string") return { status: flow };
    const claimed = await this.#options.records.transact([claim(flow)]);
    if (!claimed.done) return { status: "used" };
    if ("error" in answer) return await this.#fail(flow, boundedCode(answer.error), from);
    try {
      return await this.#exchange(flow, state, answer, from);
    } catch (error) {
      // What was granted is lost; whoever waits for the flow should not wait for nothing.
      await this.#fail(flow, "internal", from);
      throw error;
    }
  }

  /** What became of a flow, for its owner and admins; throws `not_found` for everyone else. */
  async status(state: string, caller: Caller): Promise<{ status: FlowStatus; credentialId: string | undefined }> {
    const flow = await this.#find(state);
    if (flow === undefined || !isTheirs(flow.startedBy, caller))
      throw new EngineError("not_found", "there is no such flow");
    return { status: statusOf(flow), credentialId: flow.credentialId };
  }

  async #exchange(
    flow: FlowRow,
    state: string,
    answer: AuthorizationAnswer,
    from: Omit<Origin, "caller">,
  ): Promise<FlowResult> {
    const { credentials } = this.#options;
    const { provider } = flow;
    const {
      verifier,
      redirectUri = this.redirectUri(provider),
      ...own
    } = flowSecrets.parse(
      JSON.parse(open(neededKeyring(this.#options.keyring), subjectOf(flow.stateHash), flow.sealed)),
    );
    const ownApp = wholeApp(own);
    const client = await this.#options.providers.client(provider, ownApp);
    const outcome = await exchangeCode(client, answer, { redirectUri, state, verifier });
    if (outcome.kind === "refused") return await this.#fail(flow, outcome.error, from);
    if (outcome.kind === "unreachable") {
      this.#options.log.warn({ provider, reason: outcome.reason }, "a provider's token endpoint did not answer");
      return await this.#fail(flow, "provider_unreachable", from);
    }
    const value = grantOf(provider, ownApp, outcome.tokens);
    if (value === undefined) return await this.#fail(flow, "invalid_tokens", from);
    const caller: Caller = { ...flow.startedBy, role: "write" };
    const metadata = { provider, ...dataSource(flow.sourceType) };
    const { id } = await credentials.create({ label: flow.label, value, metadata }, { ...from, caller }, (id) => [
      completion(flow, id),
      this.#entry(flow, "ok", { provider, credential: id }, from),
    ]);
    return { status: "done", credentialId: id };
  }

  async #fail(flow: FlowRow, detail: string, from: Omit<Origin, "caller">): Promise<FlowResult> {
    const { records, log } = this.#options;
    const { provider } = flow;
    log.info({ provider, detail, requestId: from.requestId }, "an OAuth flow failed");
    await records.transact([failure(flow, detail), this.#entry(flow, "failed", { provider, detail }, from)]);
    return { status: "failed", detail };
  }

  #entry(
    { startedBy, provider }: FlowRow,
    outcome: "ok" | "failed",
    details: Readonly<Record<string, string>>,
    from: Omit<Origin, "caller">,
  ) {
    const origin = { ...from, caller: startedBy };
    return this.#options.audit.statement({ origin, action: "oauth.finish", target: provider, outcome, details });
  }

  async #find(state: string): Promise<FlowRow | undefined> {
    return isSecret(state) ? await findFlow(this.#options.records, hashToken(state)) : undefined;
  }

  async #waiting(provider: string, state: string): Promise<FlowRow | FlowProblem> {
    const flow = await this.#find(state);
    if (flow === undefined || flow.provider !== provider) return "unknown";
    if (flow.status !== "pending") return "used";
    return flow.isOver ? "expired" : flow;
  }
}

function dataSource(sourceType: string | undefined): Readonly<Record<string, string>> {
  return sourceType === undefined ? {} : { data_source_type: sourceType };
}

function statusOf({ status, isOver }: FlowRow): FlowStatus {
  if (status === "pending") return isOver ? "expired" : "pending";
  // The process that claimed it is gone.
  if (status === "claimed") return isOver ? "failed" : "pending";
  return status;
}

/** What the sealed secrets of a flow belong to. */
function subjectOf(stateHash: string): string {
  return `oauth flow ${stateHash}`;
}

function isEqual(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}
