import { setTimeout } from "node:timers/promises";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { jsonSchema, isStepCount, streamText, tool } from "ai";
import { z } from "zod";
import type { ScriptedProvider } from "../../src/knowledge/agent/engines/scripted-provider.test-kit.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { median } from "../../src/capacity/quantile.ts";
import type { BenchServer } from "../support/server.ts";
import { accepted, askEngine, EXPECTED, QUESTION, startAsked, type Asked } from "./asked.ts";

export const benchmark = defineBenchmark({
  name: "agent/ask",
  question:
    "What does a question to the agent with one SQL query take beyond the model, against the bare library's own loop that " +
    "runs the same query over HTTP, and how soon does the first event come?",
  notMeasured: "Wisdom, and a model's time: it is scripted, without delay, in the measuring process.",
  options: z.strictObject({
    questions: z.coerce.number().int().positive().default(10).describe("in one round, one after the other"),
    pause: z.coerce
      .number()
      .int()
      .nonnegative()
      .default(150)
      .describe("ms before each, in which the server does what it does after an answer, as naming the session"),
  }),
  measures: {
    whole: { unit: "ms", better: "less", doc: "until the answer is complete; median of the round's questions" },
    first: { unit: "ms", better: "less", doc: "until the first event; median of the round's questions" },
  },
  rounds: 9,
  hasPeers: true,
  startsServer: true,
  open: async ({ questions, pause }, { entry }) => {
    const { server, provider, close } = await startAsked(entry);
    const sideOf = (name: string, ask: () => Promise<Asked>) => ({
      name,
      answers: async () => said(await ask()),
      round: async () => {
        const asked: Asked[] = [];
        for (let i = 0; i < questions; i++) {
          await setTimeout(pause);
          asked.push(await ask());
        }
        return {
          whole: median(asked.map(({ wholeMs }) => wholeMs)),
          first: median(asked.map(({ firstMs }) => firstMs)),
        };
      },
      processes: () => ({ server: server.pid }),
    });
    return {
      sides: [
        sideOf("agent", () => askEngine(server)),
        sideOf("library", () => askLibrary(server, provider)),
        { name: "script", answers: async () => EXPECTED, round: async () => ({}) },
      ],
      close,
    };
  },
});

function said({ answer, rows }: Asked): typeof EXPECTED {
  return { answer, rows };
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
