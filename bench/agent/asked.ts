import {
  startScriptedProvider,
  type ScriptedProvider,
} from "../../src/knowledge/agent/engines/scripted-provider.test-kit.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";

const SQL = "SELECT count(*) AS c FROM events WHERE n::BIGINT % 3 = 0";
const ROWS = 10_000;
const ANSWER = "There are 3,334 of them.";
export const QUESTION = "How many events have a number that three divides?";
/** What the model says, and what its query found. */
export const EXPECTED = { answer: ANSWER, rows: "[[3334]]" };

export type AskedServer = { server: BenchServer; provider: ScriptedProvider; close: () => Promise<void> };

/** A server whose engine is a scripted model without delay, in this process, which asks for one query and then answers. */
export async function startAsked(entry: string | undefined): Promise<AskedServer> {
  const provider = await startScriptedProvider((request) => {
    if (request.body?.["stream"] !== true) return { text: ["A title"] };
    const isSecond = rolesIn(request.body).includes("tool");
    return isSecond
      ? { text: ["There are ", "3,334 ", "of them."] }
      : { toolCalls: [{ name: "query_sql", input: { query: SQL } }] };
  });
  const server = await startBenchServer({
    env: { ENGINE_LOCALMODEL_HOST: provider.url },
    entry,
  });
  const close = async () => {
    await server.stop();
    await provider.close();
  };
  try {
    await prepare(server);
    return { server, provider, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function prepare({ url }: BenchServer): Promise<void> {
  const body = Array.from({ length: ROWS }, (_, n) => `{"n":${n}}\n`).join("");
  const headers = { "Content-Type": "application/x-ndjson", "X-Table": "events" };
  await accepted(fetch(`${url}/v1/ingest`, { method: "POST", headers, body }));
  const engine = { kind: "localmodel", model: "scripted-1", credential_id: null, host: null, extras: {} };
  const json = { "Content-Type": "application/json" };
  await accepted(fetch(`${url}/v1/agent/engine`, { method: "PUT", headers: json, body: JSON.stringify(engine) }));
}

export async function accepted(response: Promise<Response>): Promise<Response> {
  const { ok, status } = await response;
  if (!ok) throw new Error(`answered ${status}: ${await (await response).text()}`);
  return await response;
}

export type Asked = { answer: string; rows: string; firstMs: number; wholeMs: number; events: number };

/** Asks, and reads all events; throws when one is missing. */
export async function askEngine({ url }: Pick<BenchServer, "url">): Promise<Asked> {
  const startedMs = performance.now();
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ question: QUESTION });
  const response = await accepted(fetch(`${url}/v1/agent/ask`, { method: "POST", headers, body }));
  let [firstMs, text] = [0, ""];
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (firstMs === 0 && text.includes("event:")) firstMs = performance.now() - startedMs;
  }
  const wholeMs = performance.now() - startedMs;
  const ids = [...text.matchAll(/^id: (\d+)$/gmu)].map(([, id]) => Number(id));
  if (ids.some((id, i) => id !== i + 1) || !text.includes("event: run_finished"))
    throw new Error(`events are missing: ${text}`);
  const answer = /event: answer_final\nid: \d+\ndata: (.*)/u.exec(text)?.[1] ?? "{}";
  const result = /event: tool_result\nid: \d+\ndata: (.*)/u.exec(text)?.[1] ?? "{}";
  const { output } = JSON.parse(result) as { output?: { rows?: unknown } };
  return {
    answer: String((JSON.parse(answer) as { text?: unknown }).text),
    rows: JSON.stringify(output?.rows),
    firstMs,
    wholeMs,
    events: ids.length,
  };
}

function rolesIn(body: Record<string, unknown>): string[] {
  return (body["messages"] as { role: string }[]).map(({ role }) => role);
}
