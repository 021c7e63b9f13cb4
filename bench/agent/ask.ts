import { fileURLToPath } from "node:url";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { jsonSchema, isStepCount, streamText, tool } from "ai";
import {
  startScriptedProvider,
  type ScriptedProvider,
} from "../../src/knowledge/agent/engines/scripted-provider.test-kit.ts";
import { readArguments } from "../support/arguments.ts";
import { machine, median, printTable, quantile, shown } from "../support/report.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";

/**
 * Question: what does a question to the agent with one SQL query take beyond the model, against the bare library's own loop
 * that runs the same query over HTTP; how soon does the first event come; and do all events come when 100 ask at once?
 *
 *     node bench/agent/ask.ts [--rounds 50] [--warmup 5] [--clients 100]
 *
 * The model is a scripted one without delay, in this process. Both sides are asked in turn; the answers must agree before a
 * time counts. Wisdom is not measured.
 */
const OPTIONS = {
  rounds: { type: "string", default: "50" },
  warmup: { type: "string", default: "5" },
  clients: { type: "string", default: "100" },
} as const;

const SQL = "SELECT count(*) AS c FROM events WHERE n::BIGINT % 3 = 0";
const ROWS = 10_000;
const ANSWER = "There are 3,334 of them.";
const QUESTION = "How many events have a number that three divides?";

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  const provider = await startScriptedProvider((request) => {
    if (request.body?.["stream"] !== true) return { text: ["A title"] };
    const isSecond = rolesIn(request.body).includes("tool");
    return isSecond
      ? { text: ["There are ", "3,334 ", "of them."] }
      : { toolCalls: [{ name: "query_sql", input: { query: SQL } }] };
  });
  const server = await startBenchServer({ env: { ENGINE_LOCALMODEL_HOST: provider.url } });
  try {
    await prepare(server);
    await compare(server, provider, options.count("rounds"), options.count("warmup"));
    await crowd(server, options.count("clients"));
  } finally {
    await server.stop();
    await provider.close();
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

async function accepted(response: Promise<Response>): Promise<Response> {
  const { ok, status } = await response;
  if (!ok) throw new Error(`answered ${status}: ${await (await response).text()}`);
  return await response;
}

type Asked = { answer: string; rows: string; firstMs: number; wholeMs: number; events: number };

async function askEngine({ url }: BenchServer): Promise<Asked> {
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

/** The library's loop as its documentation has it, with the query as its only tool. */
async function askLibrary({ url }: BenchServer, provider: ScriptedProvider): Promise<Asked> {
  const startedMs = performance.now();
  let [firstMs, rows] = [0, ""];
  const model = createOpenAICompatible({ name: "local", baseURL: `${provider.url}/v1` })("scripted-1");
  const schema = jsonSchema<{ query: string }>({ type: "object", properties: { query: { type: "string" } } });
  const result = streamText({
    model,
    messages: [{ role: "user", content: QUESTION }],
    stopWhen: isStepCount(4),
    maxRetries: 0,
    tools: {
      query_sql: tool({
        description: "Runs one SELECT.",
        inputSchema: schema,
        execute: async ({ query }) => {
          const headers = { "Content-Type": "application/sql" };
          const text = await (
            await accepted(fetch(`${url}/v1/query`, { method: "POST", headers, body: query }))
          ).text();
          rows = JSON.stringify(
            text
              .trim()
              .split("\n")
              .map((line) => Object.values(JSON.parse(line) as object)),
          );
          return text;
        },
      }),
    },
  });
  let answer = "";
  for await (const part of result.fullStream) {
    if (firstMs === 0) firstMs = performance.now() - startedMs;
    if (part.type === "text-delta") answer += part.text;
  }
  return { answer, rows, firstMs, wholeMs: performance.now() - startedMs, events: 0 };
}

async function compare(server: BenchServer, provider: ScriptedProvider, rounds: number, warmup: number): Promise<void> {
  const ours: Asked[] = [];
  const theirs: Asked[] = [];
  const cpuBefore = { value: 0 };
  for (let round = -warmup; round < rounds; round++) {
    if (round === 0) cpuBefore.value = server.cpuSeconds();
    const [a, b] = [await askEngine(server), await askLibrary(server, provider)];
    if (a.answer !== ANSWER || b.answer !== ANSWER || a.rows !== b.rows) {
      throw new Error(`the answers differ: ${JSON.stringify([a, b])}`);
    }
    if (round < 0) continue;
    ours.push(a);
    theirs.push(b);
  }
  const cpuMs = ((server.cpuSeconds() - cpuBefore.value) * 1000) / rounds;
  const row = (name: string, asked: readonly Asked[]) => {
    const whole = Float64Array.from(asked, ({ wholeMs }) => wholeMs).toSorted();
    const first = Float64Array.from(asked, ({ firstMs }) => firstMs).toSorted();
    return [name, shown(quantile(whole, 0.5)), shown(quantile(whole, 0.95)), shown(quantile(first, 0.5))];
  };
  printTable(["a question", "p50 ms", "p95 ms", "first event ms"], [row("agent", ours), row("library", theirs)]);
  const ratios = ours.map(({ wholeMs }, i) => wholeMs / (theirs[i]?.wholeMs ?? Number.NaN));
  console.log(`agent/library ${shown(median(ratios))}×; CPU of the server for both ${shown(cpuMs)} ms a round`);
}

async function crowd(server: BenchServer, clients: number): Promise<void> {
  const startedMs = performance.now();
  const asked = await Promise.all(Array.from({ length: clients }, () => askEngine(server)));
  const tookMs = performance.now() - startedMs;
  const wrong = asked.filter(({ answer }) => answer !== ANSWER).length;
  const events = asked.reduce((sum, one) => sum + one.events, 0);
  console.log(`${clients} at once: ${shown(tookMs)} ms, ${events} events, none missing, ${wrong} wrong answers`);
}

function rolesIn(body: Record<string, unknown>): string[] {
  return (body["messages"] as { role: string }[]).map(({ role }) => role);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
