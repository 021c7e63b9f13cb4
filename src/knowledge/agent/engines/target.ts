import { EngineError } from "../../../core/errors.ts";
import type { OptionValues } from "../../../config/option.ts";
import type { AGENT_OPTIONS } from "../options.ts";
import type { HostedKind } from "./engine.ts";
import type { EngineTarget, HostedConfig } from "./open-engine.ts";

/** Where providers are, and the operator's own keys: of the process that asks, be it a server or a worker. */
export type ProviderSettings = Pick<
  OptionValues<typeof AGENT_OPTIONS>,
  "localModelHost" | "localModelHosts" | "anthropicBaseUrl" | "anthropicApiKey" | "openaiBaseUrl" | "openaiApiKey"
>;

/** What to do about an engine that cannot be used. */
export const SET_IT = "choose one with PUT /v1/agent/engine";

/** The options with the operator's own keys. */
export const KEY_OPTIONS = { anthropic: "ANTHROPIC_API_KEY", openai: "OPENAI_API_KEY" } as const;

type Keyed = Pick<HostedConfig, "kind" | "credentialId">;

/**
 * Where an engine is asked, and with which key. `keyOf` finds the key that its configuration names, and is not called for a
 * `localmodel`. Throws `not_configured`, and what to do about it, for a host that is not listed and for a missing key.
 */
export async function targetOf(
  config: HostedConfig,
  settings: ProviderSettings,
  keyOf: (config: Keyed) => Promise<string | undefined>,
): Promise<EngineTarget> {
  const { kind, host, credentialId } = config;
  if (host !== null && !isListedHost(host, settings)) {
    const message = `the operator does not list the host of the engine any more: ${SET_IT}`;
    throw new EngineError("not_configured", message);
  }
  const baseUrl = baseUrlOf(config, settings);
  if (kind === "localmodel") return { baseUrl, key: undefined };
  const key = await keyOf(config);
  if (key !== undefined) return { baseUrl, key };
  const message =
    credentialId === null
      ? `the engine ${kind} has no key: set ${KEY_OPTIONS[kind]}, or name a shared credential in its credential_id`
      : `the credential of the engine is gone, or not shared with everybody any more: ${SET_IT}`;
  throw new EngineError("not_configured", message);
}

/** Whether the operator lists the address among those that `localmodel` may be asked at. */
export function isListedHost(host: string, { localModelHost, localModelHosts = [] }: ProviderSettings): boolean {
  return host === localModelHost || localModelHosts.includes(host);
}

/** Where an engine is asked. */
export function baseUrlOf({ kind, host }: Pick<HostedConfig, "kind" | "host">, settings: ProviderSettings): string {
  switch (kind) {
    case "anthropic":
      return settings.anthropicBaseUrl;
    case "openai":
      return settings.openaiBaseUrl;
    case "localmodel":
      return host ?? settings.localModelHost;
  }
}

/** The key of the operator; undefined where there is none, and for `localmodel`, which is sent none. */
export function operatorKeyOf(
  kind: HostedKind,
  { anthropicApiKey, openaiApiKey }: ProviderSettings,
): string | undefined {
  if (kind === "localmodel") return undefined;
  return kind === "anthropic" ? anthropicApiKey : openaiApiKey;
}

/** Throws `not_configured` for a text that no header takes: the error of whoever sets the header would quote it. */
export function checkKey(key: string): void {
  if (/^[\x21-\x7e]+$/.test(key)) return;
  const message = `the credential of the engine holds characters that no key has: ${SET_IT}`;
  throw new EngineError("not_configured", message);
}
