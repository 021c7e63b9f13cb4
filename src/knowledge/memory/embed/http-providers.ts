import { EmbedFailure, type EmbedKind, type EmbedProvider } from "./provider.ts";
import { postJson } from "./post-json.ts";

/** Providers that are asked over HTTP, by their wire formats. */

export type HttpProviderOptions = { modelId: string; baseUrl: string; apiKey: string | undefined };

/** `POST /v1/embeddings`, as OpenAI has it and many servers besides. */
export function openAiProvider({ modelId, baseUrl, apiKey }: HttpProviderOptions): EmbedProvider {
  // Many write the version as part of the address.
  const url = new URL(`${baseUrl.replace(/\/v1$/, "")}/v1/embeddings`);
  return overHttp(`openai-compat/${modelId}`, async (texts, _kind, signal) => {
    const headers = apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` };
    const body = { model: modelId, input: texts, encoding_format: "float" };
    const { data } = membersOf(await postJson(url, { headers, body, signal }));
    const rows = listOf(data, "data").map(membersOf);
    const inOrder: unknown[] = Array.from({ length: rows.length });
    for (const [i, { index = i, embedding }] of rows.entries()) {
      if (typeof index !== "number" || index >= rows.length) throw malformed("data[].index");
      inOrder[index] = embedding;
    }
    return inOrder;
  });
}

/** `POST /api/embed`. */
export function ollamaProvider({ modelId, baseUrl, apiKey }: HttpProviderOptions): EmbedProvider {
  const url = new URL(`${baseUrl}/api/embed`);
  return overHttp(`ollama/${modelId}`, async (texts, _kind, signal) => {
    const headers = apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` };
    const body = { model: modelId, input: texts, truncate: true };
    const { embeddings } = membersOf(await postJson(url, { headers, body, signal }));
    return listOf(embeddings, "embeddings");
  });
}

/** `POST /v1beta/models/<model>:batchEmbedContents`. */
export function geminiProvider({ modelId, baseUrl, apiKey }: HttpProviderOptions): EmbedProvider {
  const model = modelId.startsWith("models/") ? modelId : `models/${modelId}`;
  const url = new URL(`${baseUrl}/v1beta/${model}:batchEmbedContents`);
  return overHttp(`gemini/${modelId}`, async (texts, kind, signal) => {
    const headers = apiKey === undefined ? {} : { "x-goog-api-key": apiKey };
    const taskType = kind === "query" ? "RETRIEVAL_QUERY" : "RETRIEVAL_DOCUMENT";
    const requests = texts.map((text) => ({ model, content: { parts: [{ text }] }, taskType }));
    const { embeddings } = membersOf(await postJson(url, { headers, body: { requests }, signal }));
    return listOf(embeddings, "embeddings").map((each) => membersOf(each)["values"]);
  });
}

type Ask = (texts: readonly string[], kind: EmbedKind, signal: AbortSignal) => Promise<readonly unknown[]>;

function overHttp(model: string, embed: Ask): EmbedProvider {
  return { model, embed, close: async () => {} };
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) throw malformed("an object");
  return value as Record<string, unknown>;
}

function listOf(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value)) throw malformed(name);
  return value;
}

function malformed(what: string): EmbedFailure {
  return new EmbedFailure("unusable", `the provider's answer has no valid ${what}: check ENGINE_EMBED_PROVIDER`);
}
