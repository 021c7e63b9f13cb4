import type { OptionValues } from "../../../config/option.ts";
import type { EmbedSetup } from "./embedding.ts";
import { geminiProvider, ollamaProvider, openAiProvider } from "./http-providers.ts";
import { onnxProvider } from "./onnx-provider.ts";
import type { EMBED_OPTIONS } from "./options.ts";

type EmbedOptions = Omit<OptionValues<typeof EMBED_OPTIONS>, "memoryAsync">;
type Variables = Readonly<Record<string, string | undefined>>;

/** What computes vectors, by the configuration. API keys are read from variables. */
export function embedSetup(options: EmbedOptions, variables: Variables): EmbedSetup {
  const { embedProvider, embedModelId, embedBaseUrl, embedModelPath } = options;
  if (embedProvider === "fastembed") {
    if (embedModelPath !== undefined) return onnxProvider(embedModelPath);
    return { off: "no model is configured: set ENGINE_EMBED_MODEL_PATH, or another ENGINE_EMBED_PROVIDER" };
  }
  const key = keyOf(options);
  const apiKey = key === undefined ? undefined : variables[key.variable] || undefined;
  if (key?.isNeeded === true && apiKey === undefined) {
    return { off: `the variable ${key.variable} is not set: it holds the API key of ${embedProvider}` };
  }
  switch (embedProvider) {
    case "ollama":
      return {
        provider: ollamaProvider({
          modelId: embedModelId ?? "nomic-embed-text",
          baseUrl: embedBaseUrl ?? "http://localhost:11434",
          apiKey,
        }),
      };
    case "openai-compat":
      return {
        provider: openAiProvider({
          modelId: embedModelId ?? "text-embedding-3-small",
          baseUrl: embedBaseUrl ?? "https://api.openai.com",
          apiKey,
        }),
      };
    case "gemini":
      return {
        provider: geminiProvider({
          modelId: embedModelId ?? "gemini-embedding-001",
          baseUrl: embedBaseUrl ?? "https://generativelanguage.googleapis.com",
          apiKey,
        }),
      };
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
