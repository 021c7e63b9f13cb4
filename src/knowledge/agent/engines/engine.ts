import type { LanguageModel } from "ai";

/**
 * What answers questions: `anthropic` and `openai` are asked with a key, `localmodel` is a server of chat completions that
 * the operator runs, and `cli` is a program of the operator's that speaks the Agent Client Protocol.
 */
export const HOSTED_KINDS = ["anthropic", "openai", "localmodel"] as const;
export const ENGINE_KINDS = [...HOSTED_KINDS, "cli"] as const;
export type EngineKind = (typeof ENGINE_KINDS)[number];
/** Of an engine that is asked over HTTP. */
export type HostedKind = (typeof HOSTED_KINDS)[number];

/** The engine of the installation, as it is stored. */
export type EngineConfig = {
  kind: EngineKind;
  model: string;
  /** Of a shared `api_key`; null for the operator's own key. */
  credentialId: string | null;
  /** Of `localmodel` only; null for the operator's own host. */
  host: string | null;
  extras: EngineExtras;
};

/** How the model is asked; what is not given is the provider's to decide. */
export type EngineExtras = {
  max_output_tokens?: number | undefined;
  temperature?: number | undefined;
  /** Of `anthropic`: tokens that it may think before it answers. */
  thinking_budget_tokens?: number | undefined;
  /** Of `openai` and `localmodel`. */
  reasoning_effort?: "low" | "medium" | "high" | undefined;
};

/** A model that can be asked now. It holds the key, so nobody shows it to anybody. */
export type OpenedEngine = {
  kind: EngineKind;
  /** As the provider calls it. */
  modelName: string;
  model: Exclude<LanguageModel, string>;
  maxOutputTokens: number;
  temperature: number | undefined;
  providerOptions: ProviderOptions;
  /** What an error of the library means, in words without the key. */
  problemOf: (error: unknown) => EngineProblem;
  /** Ends what a conversation has left running. Never rejects. */
  end: () => Promise<void>;
};

/** By the provider's name, as the library takes them. */
export type ProviderOptions = Record<
  string,
  Record<string, string | number | boolean | Record<string, string | number>>
>;

/** What went wrong between us and a provider, in words that hold no key. */
export type EngineProblem = {
  code: "engine_failed" | "engine_timeout" | "rate_limited" | "context_too_large";
  message: string;
  /** Whether the same request may do better in a moment. */
  retryable: boolean;
  /** What the provider asks to be left alone for, in ms. */
  retryAfterMs?: number | undefined;
  /** Whether it is about what was asked: another question may do better, the same one hardly. */
  isOfContent?: boolean | undefined;
};
