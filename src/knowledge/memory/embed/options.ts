import * as kinds from "../../../config/kinds.ts";
import { option, optional } from "../../../config/option.ts";
import { modelId } from "../model-id.ts";

const variableName: kinds.Kind<string> = {
  accepts: "the name of an environment variable",
  label: "variable name",
  parse: (text) => (/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(text) ? text : undefined),
  format: String,
};

export const EMBED_PROVIDERS = ["fastembed", "ollama", "openai-compat", "gemini"] as const;

export const EMBED_OPTIONS = {
  embedProvider: option({
    env: "ENGINE_EMBED_PROVIDER",
    toml: "embed.provider",
    kind: kinds.oneOf(EMBED_PROVIDERS),
    default: "fastembed",
    side: "SC",
    doc:
      "What computes the vectors by which recall finds memories by meaning. `fastembed` runs an ONNX model in this " +
      "process; the others are sent the texts of memories and of questions over HTTP.",
  }),
  embedModelId: optional({
    env: "ENGINE_EMBED_MODEL_ID",
    toml: "embed.model_id",
    kind: modelId,
    whenUnset: "provider specific: `nomic-embed-text`, `text-embedding-3-small`, `gemini-embedding-001`",
    side: "SC",
    doc: "The model of `ollama`, `openai-compat` or `gemini`. With another one all memories are embedded anew.",
  }),
  embedBaseUrl: optional({
    env: "ENGINE_EMBED_BASE_URL",
    toml: "embed.base_url",
    kind: kinds.baseUrl,
    whenUnset:
      "provider specific: `http://localhost:11434`, `https://api.openai.com`, `https://generativelanguage.googleapis.com`",
    side: "SC",
    doc: "Where the provider is, without the path of its API.",
  }),
  embedModelPath: optional({
    env: "ENGINE_EMBED_MODEL_PATH",
    toml: "embed.model_path",
    kind: kinds.path,
    whenUnset: "`fastembed` is off",
    side: "SC",
    doc:
      "Of `fastembed`: a folder with `model.onnx` and `tokenizer.json`. `onnxruntime-node` and `@huggingface/tokenizers` " +
      "must be installed there, or beside this program.",
  }),
  embedApiKeyEnv: optional({
    env: "ENGINE_EMBED_API_KEY_ENV",
    toml: "embed.api_key_env",
    kind: variableName,
    whenUnset: "`OPENAI_API_KEY` for `openai-compat`, none for `ollama`",
    side: "SC",
    doc: "The name of the variable that holds the provider's API key. `gemini` always reads `GEMINI_API_KEY`.",
  }),
  memoryAsync: option({
    env: "ENGINE_MEMORY_ASYNC",
    toml: "memory.async",
    kind: kinds.bool,
    default: true,
    side: "SC",
    doc:
      "`0` has a write to memory wait for the vectors of what it wrote, ten seconds at most and not while the provider " +
      "fails. Without an embedding model it changes nothing.",
  }),
  // Other programs of the kind keep a queue that this chooses the place of, and their settings are brought along.
  memoryQueueDurable: option({
    env: "ENGINE_MEMORY_QUEUE_DURABLE",
    toml: "memory.queue_durable",
    kind: kinds.bool,
    default: true,
    side: "SC",
    doc:
      "Accepted, and always as `1`: what is still to be embedded or linked is told from the records themselves, so that " +
      "there is no queue that could be lost.",
  }),
} as const;
