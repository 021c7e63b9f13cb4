import type { OptionValues } from "../../../config/option.ts";
import type { EmbedSetup } from "./embedding.ts";
import { geminiProvider, ollamaProvider, openAiProvider } from "./http-providers.ts";
import { onnxProvider } from "./onnx-provider.ts";
import type { EMBED_OPTIONS } from "./options.ts";
import type { EmbedProvider } from "./provider.ts";

type EmbedOptions = Omit<OptionValues<typeof EMBED_OPTIONS>, "memoryAsync" | "memoryQueueDurable">;
type Variables = Readonly<Record<string, string | undefined>>;

/** What computes vectors, by the configuration. API keys are read from variables. */
export function embedSetup(options: EmbedOptions, variables: Variables): EmbedSetup {
  const { embedProvider, embedModelPath } = options;
  if (embedProvider === "fastembed") {
    if (embedModelPath !== undefined) return onnxProvider(embedModelPath);
    return { off: "no model is configured: set ENGINE_EMBED_MODEL_PATH, or another ENGINE_EMBED_PROVIDER" };
  }
  const key = keyOf(options);
  const apiKey = key === undefined ? undefined : variables[key.variable] || undefined;
  if (key?.isNeeded === true && apiKey === undefined) {
    return { off: `the variable ${key.variable} is not set: it holds the API key of ${embedProvider}` };
  }
  return { provider: httpProvider(embedProvider, options, apiKey) };
}

/** The model whose vectors are stored, by the configuration, also where only other processes have its key. */
export function configuredModel(options: EmbedOptions): string | undefined {
  const { embedProvider } = options;
  if (embedProvider !== "fastembed") return httpProvider(embedProvider, options, undefined).model;
  const setup = embedSetup(options, {});
  return "off" in setup ? undefined : setup.provider.model;
}

function httpProvider(
  embedProvider: Exclude<EmbedOptions["embedProvider"], "fastembed">,
  { embedModelId, embedBaseUrl }: EmbedOptions,
  apiKey: string | undefined,
): EmbedProvider {
  switch (embedProvider) {
    case "ollama":
      return ollamaProvider({
        modelId: embedModelId ?? "nomic-embed-text",
        baseUrl: embedBaseUrl ?? "http://localhost:11434",
        apiKey,
      });
    case "openai-compat":
      return openAiProvider({
        modelId: embedModelId ?? "text-embedding-3-small",
        baseUrl: embedBaseUrl ?? "https://api.openai.com",
        apiKey,
      });
    case "gemini":
      return geminiProvider({
        modelId: embedModelId ?? "gemini-embedding-001",
        baseUrl: embedBaseUrl ?? "https://generativelanguage.googleapis.com",
        apiKey,
      });
  }
}

/** Which variable has the key, and whether the provider takes no request without one. */
function keyOf({ embedProvider, embedApiKeyEnv, embedBaseUrl }: EmbedOptions) {
  if (embedProvider === "gemini") return { variable: "GEMINI_API_KEY", isNeeded: true };
  if (embedApiKeyEnv !== undefined) return { variable: embedApiKeyEnv, isNeeded: true };
  // Servers of one's own often ask for none.
  if (embedProvider === "openai-compat") return { variable: "OPENAI_API_KEY", isNeeded: embedBaseUrl === undefined };
  return undefined;
}
