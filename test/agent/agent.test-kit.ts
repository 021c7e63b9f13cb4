import {
  startScriptedProvider,
  type ProviderRequest,
  type ScriptedProvider,
} from "../../src/knowledge/agent/engines/scripted-provider.test-kit.ts";
import type { ScriptedReply } from "../../src/knowledge/agent/engines/scripted-wire.test-kit.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

export type SentEvent = { id: number; event: string; data: Record<string, unknown> };

export const KINDS = ["anthropic", "openai", "localmodel"] as const;
export type Kind = (typeof KINDS)[number];

/** A secret that must be nowhere but in the headers that the provider is sent. */
export const PROVIDER_KEY = "sk-planted-0123456789abcdef";

/** A server, and the scripted provider that it asks. */
export type AskedEngine = {
  engine: Engine;
  home: string;
  env: Record<string, string>;
  provider: ScriptedProvider;
  /** Streamed requests take these in their order; a title or a summary is another matter. */
  play: (replies: readonly ScriptedReply[] | ((request: ProviderRequest, index: number) => ScriptedReply)) => void;
  /** The streamed requests. */
  asked: () => ProviderRequest[];
  remove: () => Promise<void>;
};

export async function startAsked(kind: Kind = "anthropic", more: Record<string, string> = {}): Promise<AskedEngine> {
  const provider = await startScriptedProvider();
  const { home, remove } = await temporaryHome();
  const env = {
    ENGINE_ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: PROVIDER_KEY,
    ENGINE_OPENAI_BASE_URL: provider.url,
    OPENAI_API_KEY: PROVIDER_KEY,
    ENGINE_LOCALMODEL_HOST: provider.url,
    ...more,
  };
  const engine = await startEngine({ home, env });
  await setEngine(engine.url, kind, more["ENGINE_AUTH_TOKENS"] === undefined ? {} : { Authorization: "Bearer adm" });
  let streamed = 0;
  return {
    engine,
    home,
    env,
    provider,
    play: (replies) => {
      streamed = 0;
      provider.play((request) => {
        if (request.body?.["stream"] !== true) return { text: ["A title of the model"] };
        const index = streamed++;
        return (typeof replies === "function" ? replies(request, index) : replies[index]) ?? { status: 500 };
      });
    },
    asked: () => provider.requests.filter(({ body }) => body?.["stream"] === true),
    remove: async () => {
      await engine.stop("SIGKILL");
      await provider.close();
      await remove();
    },
  };
}

export async function setEngine(url: string, kind: Kind, headers: Record<string, string> = {}): Promise<void> {
  const body = { kind, model: "scripted-1", credential_id: null, host: null, extras: {} };
  const response = await send(url, "PUT", "/v1/agent/engine", body, headers);
  if (response.status !== 200) throw new Error(`the engine was not set: ${await response.text()}`);
}

export function send(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(`${url}${path}`, {
    method,
    headers: { "Content-Type": "application/json", ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  });
}

/** All events of a question; the stream must come to its end. */
export async function ask(
  url: string,
  body: Record<string, unknown> | string,
  headers: Record<string, string> = {},
): Promise<SentEvent[]> {
  const asked = typeof body === "string" ? { question: body } : body;
  const response = await send(url, "POST", "/v1/agent/ask", asked, headers);
  if (response.status !== 200)
    throw new Error(`the question was refused with ${response.status}: ${await response.text()}`);
  return eventsOf(await response.text());
}

export function eventsOf(text: string): SentEvent[] {
  return text
    .split("\n\n")
    .map((block) =>
      Object.fromEntries(
        block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
      ),
    )
    .filter((fields) => fields["event"] !== undefined)
    .map(({ id, event, data }) => ({
      id: Number(id),
      event: event ?? "",
      data: JSON.parse(data ?? "") as Record<string, unknown>,
    }));
}

/** The data of the events of that name. */
export function dataOf(events: readonly SentEvent[], name: string): Record<string, unknown>[] {
  return events.filter(({ event }) => event === name).map(({ data }) => data);
}

export function only(events: readonly SentEvent[], name: string): Record<string, unknown> {
  const [first, ...more] = dataOf(events, name);
  if (first === undefined || more.length > 0)
    throw new Error(`there are ${more.length + Number(first !== undefined)} of ${name}`);
  return first;
}

export function sql(query: string): NonNullable<ScriptedReply["toolCalls"]>[number] {
  return { name: "query_sql", input: { query } };
}

export async function storedRun(
  url: string,
  runId: unknown,
  headers: Record<string, string> = {},
): Promise<Record<string, unknown>> {
  const response = await send(url, "GET", `/v1/agent/runs/${String(runId)}`, undefined, headers);
  return (await response.json()) as Record<string, unknown>;
}
