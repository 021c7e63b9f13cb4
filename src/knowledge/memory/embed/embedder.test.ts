import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock, type Clock } from "../../../core/clock.ts";
import { createMetrics } from "../../../core/metrics.ts";
import { systemRandom } from "../../../core/random.ts";
import type { OptionValues } from "../../../config/option.ts";
import { MEMORY_METRICS } from "../metrics.ts";
import type { EmbedSetup } from "./embedding.ts";
import { Embedder } from "./embedder.ts";
import type { EMBED_OPTIONS } from "./options.ts";
import type { EmbedFailure, EmbedProvider } from "./provider.ts";
import { meaningOf, ProviderServer, type Fault } from "./provider-server.test-kit.ts";
import { embedSetup } from "./setup.ts";

type Variables = Readonly<Record<string, string>>;
type Options = Omit<OptionValues<typeof EMBED_OPTIONS>, "memoryAsync" | "memoryQueueDurable">;
const KEY = "sk-very-secret-1234567890";
const VARIABLES = { OPENAI_API_KEY: KEY, GEMINI_API_KEY: KEY, OTHER_KEY: "of-another" };
const ON = new AbortController().signal;

let server: ProviderServer;
beforeEach(async () => void (server = await ProviderServer.start()));
afterEach(() => server.stop());

function setupOf(options: Partial<Options>, variables: Variables = VARIABLES): EmbedSetup {
  const unset = { embedModelId: undefined, embedModelPath: undefined, embedApiKeyEnv: undefined };
  return embedSetup({ ...unset, embedBaseUrl: server.url, embedProvider: "ollama", ...options }, variables);
}

function providerOf(options: Partial<Options>, variables?: Variables): EmbedProvider {
  const setup = setupOf(options, variables);
  if ("off" in setup) throw new Error(setup.off);
  return setup.provider;
}

/** All waits are a hundredth of what they are. */
const HASTY: Clock = { ...systemClock, after: (ms, task, options) => systemClock.after(ms / 100, task, options) };

function embedderOf(options: Partial<Options> = {}, clock: Clock = HASTY, variables?: Variables): Embedder {
  const metrics = MEMORY_METRICS.of(createMetrics());
  return new Embedder({ provider: providerOf(options, variables), clock, random: systemRandom, metrics });
}

/** As `Embedder` scales it. */
function unit(values: readonly number[]): Float32Array {
  const length = Math.hypot(...values);
  return Float32Array.from(values, (value) => value / length);
}

describe("the wire", () => {
  test.each<[Options["embedProvider"], Partial<Options>, string, unknown, Record<string, string>]>([
    [
      "openai-compat",
      {},
      "/v1/embeddings",
      { model: "text-embedding-3-small", input: ["a boat", "rain"], encoding_format: "float" },
      { authorization: `Bearer ${KEY}` },
    ],
    [
      "openai-compat",
      { embedModelId: "own/model:1", embedApiKeyEnv: "OTHER_KEY" },
      "/v1/embeddings",
      { model: "own/model:1", input: ["a boat", "rain"], encoding_format: "float" },
      { authorization: "Bearer of-another" },
    ],
    ["ollama", {}, "/api/embed", { model: "nomic-embed-text", input: ["a boat", "rain"], truncate: true }, {}],
    [
      "gemini",
      {},
      "/v1beta/models/gemini-embedding-001:batchEmbedContents",
      {
        requests: ["a boat", "rain"].map((text) => ({
          model: "models/gemini-embedding-001",
          content: { parts: [{ text }] },
          taskType: "RETRIEVAL_DOCUMENT",
        })),
      },
      { "x-goog-api-key": KEY },
    ],
  ])("of %s with %o", async (embedProvider, options, path, body, headers) => {
    const vectors = await embedderOf({ embedProvider, ...options }).documents(["a boat", "rain"], ON);
    expect(vectors).toEqual([unit(meaningOf("a boat")), unit(meaningOf("rain"))]);
    expect(server.asked).toEqual([{ path, body, headers: expect.objectContaining(headers) }]);
  });

  test("of a server that asks for no key has none, and an address may have the version", async () => {
    const options = { embedProvider: "openai-compat", embedBaseUrl: `${server.url}/api/v1` } as const;
    await embedderOf(options, HASTY, { OPENAI_API_KEY: "" }).documents(["x"], ON);
    expect(server.asked[0]?.path).toBe("/api/v1/embeddings");
    expect(server.asked[0]?.headers).not.toHaveProperty("authorization");
  });

  test("tells questions from memories where models do", async () => {
    expect(await embedderOf({ embedProvider: "gemini" }, systemClock).question("ship?", ON)).toEqual(
      unit(meaningOf("ship?")),
    );
    expect(server.asked[0]?.body).toMatchObject({ requests: [{ taskType: "RETRIEVAL_QUERY" }] });
  });

  test.each<[string, Partial<Options>, string]>([
    ["gemini", { embedProvider: "gemini" }, "GEMINI_API_KEY"],
    ["OpenAI itself", { embedProvider: "openai-compat", embedBaseUrl: undefined }, "OPENAI_API_KEY"],
    ["a variable that somebody named", { embedApiKeyEnv: "OTHER_KEY" }, "OTHER_KEY"],
  ])("is off without the key of %s", (_, options, variable) => {
    const off = expect.stringContaining(`the variable ${variable} is not set`) as string;
    expect(setupOf(options, {})).toEqual({ off });
    expect(setupOf(options)).toHaveProperty("provider");
  });

  test("takes texts of any length, cut between characters", async () => {
    await embedderOf().documents([`${"x".repeat(7_999)}😀`], ON);
    expect(server.texts).toEqual(["x".repeat(7_999)]);
  });
});

describe("a provider that fails", () => {
  const PROVIDERS = ["openai-compat", "ollama", "gemini"] as const;
  /** What one request for two memories ends with. */
  const failureOf = async (embedder: Embedder): Promise<EmbedFailure> =>
    await embedder.documents(["a boat", "rain"], ON).then(
      () => Promise.reject(new Error("it did not fail")),
      (error: unknown) => error as EmbedFailure,
    );

  test.each(PROVIDERS)("is asked again while it is busy: %s", async (embedProvider) => {
    const faults: (Fault | undefined)[] = [
      { status: 429, headers: { "Retry-After": "2" } },
      { status: 503 },
      undefined,
    ];
    server.fault = () => faults.shift();
    const startedMs = performance.now();
    expect(await embedderOf({ embedProvider }).documents(["rain"], ON)).toEqual([unit(meaningOf("rain"))]);
    expect(server.asked).toHaveLength(3);
    expect(performance.now() - startedMs).toBeGreaterThan(19);
  });

  test.each(PROVIDERS)("is asked four times, and its key is in no message: %s", async (embedProvider) => {
    server.fault = () => ({ status: 500 });
    const failure = await failureOf(embedderOf({ embedProvider }));
    expect(failure).toMatchObject({ kind: "temporary", message: `${new URL(server.url).host} answered 500` });
    expect(server.asked).toHaveLength(4);
    expect(`${failure.stack} ${JSON.stringify(failure)}`).not.toContain(KEY);
  });

  test.each([
    [401, "unusable"],
    [404, "unusable"],
    [307, "unusable"],
    [400, "refused"],
    [413, "refused"],
  ])("is asked once when it answers %i", async (status, kind) => {
    server.fault = () => ({ status, headers: { Location: `${server.url}/elsewhere` } });
    expect(await failureOf(embedderOf())).toMatchObject({ kind });
    expect(server.asked).toHaveLength(1);
  });

  test.each<[string, Fault]>([
    ["no JSON", { body: "<html>" }],
    ["no object", { body: "null" }],
    ["no list", { body: { embeddings: {} } }],
    ["too few vectors", { body: { embeddings: [[1, 2]] } }],
    ["too many vectors", { body: { embeddings: [[1], [2], [3]] } }],
    ["no vectors", { body: { embeddings: [null, null] } }],
    ["empty vectors", { body: { embeddings: [[], []] } }],
    ["numbers that are not finite", { body: '{"embeddings":[[1,2],[1e999,1]]}' }],
    [
      "what is no number",
      {
        body: {
          embeddings: [
            [1, 2],
            [1, null],
          ],
        },
      },
    ],
    [
      "numbers as text",
      {
        body: {
          embeddings: [
            ["1", "2"],
            [1, 2],
          ],
        },
      },
    ],
    [
      "nothing but zeros",
      {
        body: {
          embeddings: [
            [1, 2],
            [0, 0],
          ],
        },
      },
    ],
    [
      "different dimensions",
      {
        body: {
          embeddings: [
            [1, 2],
            [1, 2, 3],
          ],
        },
      },
    ],
    ["too many dimensions", { body: { embeddings: [[1], Array.from({ length: 8_193 }, () => 1)] } }],
  ])("is not believed when it answers with %s", async (_, fault) => {
    server.fault = () => fault;
    expect(await failureOf(embedderOf())).toMatchObject({ name: "EmbedFailure", kind: "unusable" });
    expect(server.asked).toHaveLength(1);
  });

  test("is not believed when its dimensions change, nor when they are not those that are stored", async () => {
    const embedder = embedderOf();
    await embedder.documents(["a boat"], ON);
    server.vectorOf = () => [1, 2];
    expect((await failureOf(embedder)).message).toBe(
      "the provider answered with 2 dimensions, and ollama/nomic-embed-text has 5: give another model another ENGINE_EMBED_MODEL_ID",
    );
    const restarted = embedderOf();
    restarted.expect(5);
    expect(await failureOf(restarted)).toMatchObject({ kind: "unusable" });
  });

  test("does not keep a question waiting", async () => {
    server.fault = () => "hang";
    const startedMs = performance.now();
    await expect(embedderOf({}, systemClock).question("x", ON)).rejects.toMatchObject({
      kind: "temporary",
      message: expect.stringContaining("no answer within 1000 ms"),
    });
    expect(performance.now() - startedMs).toBeLessThan(3_000);
  });

  test("is away", async () => {
    const embedder = embedderOf();
    await server.stop();
    expect((await failureOf(embedder)).message).toMatch(
      /^127\.0\.0\.1:\d+ did not answer: fetch failed: .*ECONNREFUSED/,
    );
    server = await ProviderServer.start();
  });
});
