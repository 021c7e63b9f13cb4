import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { generateText, jsonSchema, streamText, tool } from "ai";
import { afterEach, expect, it, vi } from "vitest";
import { systemClock } from "../../../core/clock.ts";
import { HOSTED_KINDS, type HostedKind } from "./engine.ts";
import { openEngine, type HostedConfig } from "./open-engine.ts";
import { problemOfFinish } from "./problems.ts";
import { startScriptedProvider, type Script, type ScriptedProvider } from "./scripted-provider.test-kit.ts";
import { CHAT_COMPLETIONS, MESSAGES, RESPONSES } from "./scripted-wire.test-kit.ts";

const KEY = "sk-planted-0123456789abcdef";
const started: ScriptedProvider[] = [];

afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(started.splice(0).map((provider) => provider.close()));
});

async function providerOf(script: Script): Promise<ScriptedProvider> {
  const provider = await startScriptedProvider(script);
  started.push(provider);
  return provider;
}

function configOf(kind: HostedKind, extras: HostedConfig["extras"] = {}): HostedConfig {
  return { kind, model: "a-model", credentialId: null, host: null, extras };
}

async function engineOf(kind: HostedKind, baseUrl: string, extras: HostedConfig["extras"] = {}) {
  return await openEngine(configOf(kind, extras), { baseUrl, key: kind === "localmodel" ? undefined : KEY });
}

const tools = {
  query: tool({
    description: "Asks.",
    inputSchema: jsonSchema<{ sql: string }>({ type: "object", properties: {} }),
    execute: async () => "3",
  }),
};

async function streamed(kind: HostedKind, baseUrl: string, signal?: AbortSignal) {
  const engine = await engineOf(kind, baseUrl);
  const said = {
    thinking: "",
    text: "",
    calls: [] as unknown[],
    errors: [] as unknown[],
    aborted: false,
    finish: undefined as string | undefined,
  };
  const result = streamText({
    model: engine.model,
    prompt: "how many?",
    tools,
    maxRetries: 0,
    maxOutputTokens: engine.maxOutputTokens,
    providerOptions: engine.providerOptions,
    onError: () => {},
    ...(signal !== undefined && { abortSignal: signal }),
  });
  const read = async () => {
    for await (const part of result.fullStream) {
      if (part.type === "reasoning-delta") said.thinking += part.text;
      else if (part.type === "text-delta") said.text += part.text;
      else if (part.type === "tool-call") {
        said.calls.push([part.toolCallId, part.toolName, part.input, part.invalid ?? false]);
      } else if (part.type === "error") said.errors.push(part.error);
      else if (part.type === "abort") said.aborted = true;
      else if (part.type === "finish") said.finish = problemOfFinish(part.finishReason)?.message;
    }
  };
  // A connection that breaks is no part of the stream: reading it fails.
  await read().catch((error: unknown) => said.errors.push(error));
  const problems = said.errors.map((error) => engine.problemOf(error));
  const isWhole = said.errors.length === 0 && !said.aborted;
  return { ...said, problems, usage: isWhole ? await result.usage : undefined };
}

const PATHS = { anthropic: "/v1/messages", openai: "/v1/responses", localmodel: "/v1/chat/completions" } as const;

it.each(HOSTED_KINDS)("%s streams what is thought, said and called, with its usage", async (kind) => {
  const provider = await providerOf([
    {
      thinking: ["let me ", "see"],
      text: ["I will ", "count – ", "🦆"],
      toolCalls: [
        { id: "call_a", name: "query", input: { sql: "SELECT 'ü'" } },
        { id: "call_b", name: "query", input: { sql: "SELECT 2" } },
      ],
      usage: { input: 321, output: 45 },
    },
  ]);
  const said = await streamed(kind, provider.url);
  expect(said).toMatchObject({ thinking: "let me see", text: "I will count – 🦆", errors: [] });
  expect(said.calls).toEqual([
    ["call_a", "query", { sql: "SELECT 'ü'" }, false],
    ["call_b", "query", { sql: "SELECT 2" }, false],
  ]);
  expect(said.usage).toMatchObject({ inputTokens: 321, outputTokens: 45 });
  const [request] = provider.requests;
  expect(request).toMatchObject({ path: PATHS[kind], body: { model: "a-model", stream: true } });
});

it.each(HOSTED_KINDS)("%s gives one answer where no stream is asked for", async (kind) => {
  const provider = await providerOf([{ text: ["O", "K"], usage: { input: 3, output: 1 } }]);
  const { model } = await engineOf(kind, provider.url);
  const { text, usage } = await generateText({ model, prompt: "say OK", maxRetries: 0, maxOutputTokens: 16 });
  expect(text).toBe("OK");
  expect(usage).toMatchObject({ inputTokens: 3, outputTokens: 1 });
});

it("sends its key to each provider as that takes it, and none to a local model", async () => {
  vi.stubEnv("ANTHROPIC_API_KEY", "from-the-environment");
  vi.stubEnv("OPENAI_API_KEY", "from-the-environment");
  vi.stubEnv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
  vi.stubEnv("OPENAI_BASE_URL", "http://127.0.0.1:9");
  vi.stubEnv("OPENAI_ORG_ID", "from-the-environment");
  const provider = await providerOf(() => ({ text: ["OK"] }));
  for (const kind of HOSTED_KINDS) await streamed(kind, provider.url);
  const [anthropic, openai, local] = provider.requests.map(({ headers }) => headers);
  expect(anthropic).toMatchObject({ "x-api-key": KEY });
  expect(openai).toMatchObject({ authorization: `Bearer ${KEY}` });
  expect(local).not.toHaveProperty("authorization");
  expect(JSON.stringify(provider.requests)).not.toContain("from-the-environment");
  await expect(openEngine(configOf("openai"), { baseUrl: provider.url, key: undefined })).rejects.toThrow(
    "without a key",
  );
});

it("takes addresses with /v1 and without", async () => {
  const provider = await providerOf(() => ({ text: ["OK"] }));
  for (const kind of HOSTED_KINDS) await streamed(kind, `${provider.url}/v1`);
  expect(provider.requests.map(({ path }) => path)).toEqual(HOSTED_KINDS.map((kind) => PATHS[kind]));
});

it("asks as the configuration says, and providers to keep nothing", async () => {
  const provider = await providerOf(() => ({ text: ["OK"] }));
  const extras = { max_output_tokens: 2_000, temperature: 0.5 };
  const ask = async (kind: HostedKind, own: HostedConfig["extras"]) => {
    const { model, maxOutputTokens, temperature, providerOptions } = await engineOf(kind, provider.url, own);
    await generateText({
      model,
      prompt: "say OK",
      maxRetries: 0,
      maxOutputTokens,
      providerOptions,
      ...(temperature !== undefined && { temperature }),
    });
    return provider.requests.at(-1)?.body;
  };
  expect(await ask("anthropic", extras)).toMatchObject({ max_tokens: 2_000, temperature: 0.5 });
  expect(await ask("anthropic", { thinking_budget_tokens: 1_500 })).toMatchObject({
    max_tokens: 8_192 + 1_500,
    thinking: { type: "enabled", budget_tokens: 1_500 },
  });
  expect(await ask("openai", extras)).toMatchObject({ max_output_tokens: 2_000, temperature: 0.5, store: false });
  expect(await ask("localmodel", { ...extras, reasoning_effort: "low" })).toMatchObject({
    max_tokens: 2_000,
    temperature: 0.5,
    reasoning_effort: "low",
  });
  expect(await ask("localmodel", {})).toMatchObject({ max_tokens: 8_192 });
});

it.each(HOSTED_KINDS)("%s follows no redirect", async (kind) => {
  const elsewhere = await providerOf(() => ({ text: ["stolen"] }));
  const location = `${elsewhere.url}${PATHS[kind]}`;
  const provider = await providerOf(() => ({ status: 307, headers: { Location: location }, errorBody: "go there" }));
  const { problems, text } = await streamed(kind, provider.url);
  expect(text).toBe("");
  expect(problems).toEqual([expect.objectContaining({ code: "engine_failed", retryable: false })]);
  expect(problems[0]?.message).toContain("307");
  expect(elsewhere.allRequests).toEqual([]);
});

it.each(HOSTED_KINDS)("%s: a client that leaves ends the request at once", async (kind) => {
  const provider = await providerOf([{ text: ["I ", "think "], hang: true }, { hang: true }]);
  for (const count of [1, 2]) {
    const abort = new AbortController();
    const reading = streamed(kind, provider.url, abort.signal);
    await provider.reached(count);
    const leftAtMs = systemClock.monotonicMs();
    abort.abort();
    expect((await reading).aborted).toBe(true);
    const seenAtMs = await provider.requests[count - 1]?.clientLeft;
    expect((seenAtMs ?? Number.POSITIVE_INFINITY) - leftAtMs).toBeLessThan(1_000);
  }
});

it.each(HOSTED_KINDS)("%s: streams that end badly say so, and do not hang", async (kind) => {
  const provider = await providerOf([
    { text: ["one ", "two ", "three"], cutAfterBytes: 700 },
    { text: ["one "], streamError: "Overloaded, said the duck" },
    { rawBody: "event: message_start\ndata: {not json\n\n" },
    { toolCalls: [{ name: "query", rawText: '{"sql": "SELECT' }] },
    { text: ["slow ", "bytes"], byteDelayMs: 0 },
  ]);
  const cut = await streamed(kind, provider.url);
  expect(cut.problems[0]).toMatchObject({ code: "engine_failed", retryable: true });
  expect(cut.problems[0]?.message).toContain("ended its answer in the middle");
  const failed = await streamed(kind, provider.url);
  expect(failed.text).toBe("one ");
  expect(failed.problems[0]?.message).toContain("Overloaded, said the duck");
  const malformed = await streamed(kind, provider.url);
  expect(malformed.problems[0]?.message).toBe("the provider sent something that cannot be read");
  const odd = await streamed(kind, provider.url);
  expect(odd.calls).toEqual([[expect.any(String), "query", expect.anything(), true]]);
  expect((await streamed(kind, provider.url)).text).toBe("slow bytes");
});

const WIRES = { anthropic: MESSAGES, openai: RESPONSES, localmodel: CHAT_COMPLETIONS } as const;
/** Where the end of a stream begins. */
const ENDS = {
  anthropic: "event: message_delta",
  openai: "event: response.completed",
  localmodel: '"finish_reason":"stop"',
} as const;

it.each(HOSTED_KINDS)(
  "%s: an answer that is not whole is no answer, however well its connection ends",
  async (kind) => {
    const reply = { text: ["one ", "two"] };
    const provider = await providerOf([]);
    const whole = WIRES[kind].frames(reply, { index: 0, model: "m" }).join("");
    provider.play([{ rawBody: whole }]);
    expect(await streamed(kind, provider.url)).toMatchObject({ text: "one two", finish: undefined, problems: [] });
    for (const rawBody of [
      whole.slice(0, whole.indexOf(ENDS[kind])),
      whole.slice(0, whole.indexOf("two")),
      "",
      "<html>no</html>",
    ]) {
      provider.play([{ rawBody }]);
      const { finish, problems } = await streamed(kind, provider.url);
      expect(finish ?? problems[0]?.message).toMatch(/^the provider /);
    }
  },
);

it("reads no more of a refusal than it shows", async () => {
  const provider = await providerOf(() => ({ status: 500, errorBody: `no ${KEY} ${"x".repeat(10_000_000)}` }));
  for (const kind of ["anthropic", "openai"] as const) {
    const { problems } = await streamed(kind, provider.url);
    expect(problems[0]?.message).toMatch(/^the provider answered 500: Internal Server Error: no •••• x+…$/);
    expect(problems[0]?.message.length).toBeLessThanOrEqual(500);
  }
});

it("ends a stream whose event has no end", async () => {
  const piece = "x".repeat(1024 * 1024);
  const server = createServer((_, response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" }).write("data: ");
    const more = (): void => {
      while (!response.destroyed && response.write(piece));
    };
    response.on("drain", more);
    more();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    const { problems } = await streamed("anthropic", `http://127.0.0.1:${port}`);
    expect(problems[0]?.message).toMatch(/the answer has more than 67108864 bytes/);
  } finally {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
});
