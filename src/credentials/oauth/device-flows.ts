import type { Origin } from "../../auth/audit.ts";
import type { Caller } from "../../auth/caller.ts";
import { ownerOf } from "../../auth/owner.ts";
import { open, seal } from "../../auth/sealing/envelope.ts";
import { isSecret, newSecret } from "../../auth/secrets.ts";
import { hashToken } from "../../auth/tokens.ts";
import { EngineError } from "../../core/errors.ts";
import {
  cleaning,
  end,
  findDeviceFlow,
  insertion,
  postponement,
  turn,
  type DeviceEnd,
  type DeviceRow,
} from "./device-records.ts";
import type { OAuthFlowsOptions } from "./flows.ts";
import { grantOf } from "./grant.ts";
import { neededKeyring } from "../needed-keyring.ts";
import { scopesOf } from "./scopes.ts";
import { isTheirs } from "./started-by.ts";
import { askForDevice, beginDevice, type TokenClientOptions, type Tokens } from "./token-client.ts";

/**
 * Connects an account by the device authorization grant (RFC 8628): its owner enters a short code on the provider's page
 * in any browser, and the caller asks meanwhile whether it has happened. However often callers ask, in however many
 * processes, the provider is asked once in the interval that it has named. The code that a caller asks with is not the
 * provider's: that one is sealed, and leaves this program for the provider only.
 */
export type DeviceFlowsOptions = Omit<OAuthFlowsOptions, "redirectBase">;

export type BegunDevice = {
  deviceCode: string;
  userCode: string;
  verificationUri: string;
  ttlMs: number;
  intervalMs: number;
};

/** `slow_down`: it was asked too soon, by this caller or, as the provider says, by this server. */
export type DevicePoll =
  | { status: "pending" | "slow_down"; intervalMs: number }
  | { status: "done"; credentialId: string }
  | { status: "denied" | "expired" }
  | { status: "failed"; detail: string };

type Asker = Origin & { caller: Caller };
type Unhappy = Exclude<DeviceEnd, "done">;

/** Where the provider names none (RFC 8628 §3.2). */
const INTERVAL_MS = 5_000;
const MIN_INTERVAL_MS = 1_000;
const MAX_INTERVAL_MS = 600_000;
/** What is added when the provider asks to be asked less often (RFC 8628 §3.5). */
const SLOWER_BY_MS = 5_000;
const MAX_TTL_MS = 86_400_000;

/** What providers say instead of tokens, and what it means; everything else is a failure. */
const MEANINGS: ReadonlyMap<string, "pending" | "slow_down" | Unhappy> = new Map([
  ["authorization_pending", "pending"],
  ["slow_down", "slow_down"],
  ["access_denied", "denied"],
  // Microsoft's.
  ["authorization_declined", "denied"],
  ["expired_token", "expired"],
]);

export class DeviceFlows {
  readonly #options: DeviceFlowsOptions;

  constructor(options: DeviceFlowsOptions) {
    this.#options = options;
  }

  /**
   * Throws `not_configured` without an app, a key or a provider that has such flows, `oauth_failed` when it refuses,
   * `unavailable` when it does not answer.
   */
  async begin(name: string, origin: Asker): Promise<BegunDevice> {
    const { records, audit, random } = this.#options;
    const keyring = neededKeyring(this.#options.keyring);
    const client = await this.#options.providers.client(name);
    const { provider } = client;
    const { title, deviceAuthorizationEndpoint } = provider;
    if (deviceAuthorizationEndpoint === undefined) {
      throw new EngineError("not_configured", `${title} has no device_authorization_url`);
    }
    const outcome = await beginDevice(client, scopesOf(provider, { sourceType: undefined, scopes: undefined }));
    if (outcome.kind === "refused") throw new EngineError("oauth_failed", `${title} refuses: ${outcome.error}`);
    if (outcome.kind === "unreachable") throw this.#unreachable(name, title, outcome.reason);
    const { userCode, verificationUri, ...begun } = outcome.authorization;
    const deviceCode = newSecret(random);
    const codeHash = hashToken(deviceCode);
    const intervalMs = Math.min(Math.max(begun.intervalMs ?? INTERVAL_MS, MIN_INTERVAL_MS), MAX_INTERVAL_MS);
    const ttlMs = Math.min(begun.ttlMs, MAX_TTL_MS);
    const { subject, kind, databases } = origin.caller;
    const startedBy = { owner: ownerOf(origin.caller), subject, kind, databases };
    const sealed = seal(keyring, random, subjectOf(codeHash), begun.deviceCode);
    await records.transact([
      cleaning(),
      insertion({ codeHash, provider: name, label: title, startedBy, intervalMs, ttlMs, sealed }),
      audit.statement({ origin, action: "oauth.start", target: name, outcome: "ok", details: { provider: name } }),
    ]);
    return { deviceCode, userCode, verificationUri, ttlMs, intervalMs };
  }

  /**
   * What has become of a flow of the caller's. Throws `not_found` for everyone else, and `unavailable` when the provider
   * does not answer.
   */
  async poll(name: string, deviceCode: string, origin: Asker): Promise<DevicePoll> {
    const flow = await this.#theirs(name, deviceCode, origin.caller);
    const ended = endOf(flow);
    if (ended !== undefined) return ended;
    const { providers, keyring, records } = this.#options;
    const client = await providers.client(name);
    const code = open(neededKeyring(keyring), subjectOf(flow.codeHash), flow.sealed);
    if ((await records.transact([turn(flow)])).done) return await this.#ask(flow, client, code, origin);
    // It may be that another question has ended it since.
    const later = await this.#theirs(name, deviceCode, origin.caller);
    return endOf(later) ?? { status: "slow_down", intervalMs: later.intervalMs };
  }

  async #ask(flow: DeviceRow, client: TokenClientOptions, code: string, origin: Asker): Promise<DevicePoll> {
    const outcome = await askForDevice(client, code);
    if (outcome.kind === "tokens") return await this.#store(flow, outcome.tokens, origin);
    if (outcome.kind === "unreachable") {
      await this.#postpone(flow, flow.intervalMs * 2);
      throw this.#unreachable(flow.provider, client.provider.title, outcome.reason);
    }
    const meaning = MEANINGS.get(outcome.error) ?? "failed";
    if (meaning === "pending" || meaning === "slow_down") {
      const slower = meaning === "slow_down" ? SLOWER_BY_MS : 0;
      return { status: meaning, intervalMs: await this.#postpone(flow, flow.intervalMs + slower) };
    }
    return await this.#end(flow, meaning, outcome.error, origin);
  }

  async #store(flow: DeviceRow, tokens: Tokens, origin: Asker): Promise<DevicePoll> {
    const { credentials } = this.#options;
    const { provider, label, startedBy } = flow;
    const value = grantOf(provider, undefined, tokens);
    if (value === undefined) return await this.#end(flow, "failed", "invalid_tokens", origin);
    const caller: Caller = { ...startedBy, role: "write" };
    const { id } = await credentials.create({ label, value, metadata: { provider } }, { ...origin, caller }, (id) => [
      end(flow, "done", { credentialId: id }),
      this.#entry(flow, "ok", { provider, credential: id }, origin),
    ]);
    return { status: "done", credentialId: id };
  }

  async #end(flow: DeviceRow, status: Unhappy, detail: string, origin: Asker): Promise<DevicePoll> {
    const { records, log } = this.#options;
    const { provider } = flow;
    log.info({ provider, detail, requestId: origin.requestId }, "an OAuth flow failed");
    await records.transact([end(flow, status, { detail }), this.#entry(flow, "failed", { provider, detail }, origin)]);
    return status === "failed" ? { status, detail } : { status };
  }

  async #postpone(flow: DeviceRow, wantedMs: number): Promise<number> {
    const intervalMs = Math.min(wantedMs, MAX_INTERVAL_MS);
    await this.#options.records.transact([postponement(flow, intervalMs)]);
    return intervalMs;
  }

  async #theirs(name: string, deviceCode: string, caller: Caller): Promise<DeviceRow> {
    const { records } = this.#options;
    const flow = isSecret(deviceCode) ? await findDeviceFlow(records, hashToken(deviceCode)) : undefined;
    const isOne = flow !== undefined && flow.provider === name && isTheirs(flow.startedBy, caller);
    if (!isOne) throw new EngineError("not_found", "there is no such device_code");
    return flow;
  }

  #entry(flow: DeviceRow, outcome: "ok" | "failed", details: Readonly<Record<string, string>>, origin: Asker) {
    return this.#options.audit.statement({ origin, action: "oauth.finish", target: flow.provider, outcome, details });
  }

  #unreachable(provider: string, title: string, reason: string): EngineError {
    this.#options.log.warn({ provider, reason }, "a provider did not answer");
    return new EngineError("unavailable", `${title} does not answer at this moment`);
  }
}

/** Undefined while it is pending. */
function endOf({ status, detail = "unknown_error", credentialId = "", isOver }: DeviceRow): DevicePoll | undefined {
  switch (status) {
    case "pending":
      return isOver ? { status: "expired" } : undefined;
    case "done":
      return { status, credentialId };
    case "failed":
      return { status, detail };
    case "denied":
    case "expired":
      return { status };
  }
}

/** What the sealed code of a flow belongs to. */
function subjectOf(codeHash: string): string {
  return `oauth device flow ${codeHash}`;
}
