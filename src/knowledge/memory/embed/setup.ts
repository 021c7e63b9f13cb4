import type { OptionValues } from "../../../config/option.ts";
import type { EmbedSetup } from "./embedding.ts";
import { geminiProvider, ollamaProvider, openAiProvider } from "./http-providers.ts";
import { onnxProvider } from "./onnx-provider.ts";
import type { EMBED_OPTIONS } from "./options.ts";

type EmbedOptions = OptionValues<typeof EMBED_OPTIONS>;
type Variables = Readonly<Record<string, string | undefined>>;

/** What computes vectors, by the configuration. API keys are read from variables. */
export function embedSetup(options: EmbedOptions, variables: Variables): EmbedSetup {
  const { embedProvider, embedModelId, embedBaseUrl, embedModelPath, embedApiKeyEnv } = options;
  const keyFrom = (name: string | undefined) => (name === undefined ? undefined : variables[name] || undefined);
  switch (embedProvider) {
    case "fastembed":
      if (embedModelPath !== undefined) return onnxProvider(embedModelPath);
      return { off: "no model is configured: set ENGINE_EMBED_MODEL_PATH, or another ENGINE_EMBED_PROVIDER" };
    case "ollama":
      return {
        provider: ollamaProvider({
          modelId: embedModelId ?? "nomic-embed-text",
          baseUrl: embedBaseUrl ?? "http://localhost:11434",
          apiKey: keyFrom(embedApiKeyEnv),
        }),
      };
    case "openai-compat":
      return {
        provider: openAiProvider({
          modelId: embedModelId ?? "text-embedding-3-small",
          baseUrl: embedBaseUrl ?? "https://api.openai.com",
          apiKey: keyFrom(embedApiKeyEnv ?? "OPENAI_API_KEY"),
        }),
      };
    case "gemini":
      return {
        provider: geminiProvider({
          modelId: embedModelId ?? "gemini-embedding-001",
          baseUrl: embedBaseUrl ?? "https://generativelanguage.googleapis.com",
          apiKey: keyFrom("GEMINI_API_KEY"),
        }),
      };
  }
}
