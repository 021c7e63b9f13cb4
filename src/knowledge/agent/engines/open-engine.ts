import { EngineError } from "../../../core/errors.ts";
import type { EngineConfig, EngineExtras, HostedKind, OpenedEngine, ProviderOptions } from "./engine.ts";
import { providerFetch } from "./provider-fetch.ts";
import { problemOf } from "./problems.ts";

const DEFAULT_MAX_OUTPUT_TOKENS = 8_192;

/**
 * Makes the model of a configuration that has been checked. The libraries are loaded with the first one. They would read
 * keys and addresses from the environment, and take a model's bare name to a hosted gateway: each is given its key, its
 * address and our `fetch` instead.
 */
export async function openEngine(config: HostedConfig, target: EngineTarget): Promise<OpenedEngine> {
  const { kind, model: modelName, extras } = config;
  silenceWarnings();
  return {
    kind,
    modelName,
    model: await modelOf(config, target),
    maxOutputTokens: maxOutputTokensOf(extras),
    temperature: extras.temperature,
    providerOptions: providerOptionsOf(config),
    problemOf: (error) => problemOf(error, target.key),
    // Each request ends by itself.
    end: () => Promise.resolve(),
  };
}

/** Tokens of one answer. */
export function maxOutputTokensOf({ max_output_tokens: tokens }: EngineExtras): number {
  return tokens ?? DEFAULT_MAX_OUTPUT_TOKENS;
}

/** Of an engine that is asked over HTTP. */
export type HostedConfig = EngineConfig & { kind: HostedKind };

/** Where an engine is asked, and with which key; `localmodel` is sent none. */
export type EngineTarget = { baseUrl: string; key: string | undefined };

async function modelOf({ kind, model }: HostedConfig, { baseUrl, key }: EngineTarget): Promise<OpenedEngine["model"]> {
  const common = { baseURL: apiUrl(baseUrl), fetch: providerFetch };
  switch (kind) {
    case "anthropic": {
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      return createAnthropic({ ...common, apiKey: mustHave(kind, key) })(model);
    }
    case "openai": {
      const { createOpenAI } = await import("@ai-sdk/openai");
      return createOpenAI({ ...common, apiKey: mustHave(kind, key) }).responses(model);
    }
    case "localmodel": {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      return createOpenAICompatible({ ...common, name: kind, includeUsage: true })(model);
    }
  }
}

/** The addresses of options are without `/v1`; those that the providers' own tools take are often with it. */
export function apiUrl(baseUrl: string): string {
  return baseUrl.endsWith("/v1") ? baseUrl : `${baseUrl}/v1`;
}

/** Without a key the library looks for one in the environment. */
function mustHave(kind: string, key: string | undefined): string {
  if (key !== undefined && key !== "") return key;
  throw new EngineError("internal", `the engine ${kind} was opened without a key`);
}

function providerOptionsOf({ kind, extras }: HostedConfig): ProviderOptions {
  const { thinking_budget_tokens: budgetTokens, reasoning_effort: reasoningEffort } = extras;
  const effort = reasoningEffort === undefined ? {} : { reasoningEffort };
  switch (kind) {
    case "anthropic":
      return budgetTokens === undefined ? {} : { anthropic: { thinking: { type: "enabled", budgetTokens } } };
    case "openai":
      // What it is asked holds rows of the database: it is not to be kept there.
      return { openai: { store: false, ...effort } };
    case "localmodel":
      return { localmodel: effort };
  }
}

/** The library would write to standard error what it leaves out of a request that its provider does not take. */
function silenceWarnings(): void {
  (globalThis as { AI_SDK_LOG_WARNINGS?: boolean }).AI_SDK_LOG_WARNINGS = false;
}
