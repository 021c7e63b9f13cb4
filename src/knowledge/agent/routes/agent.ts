import { z } from "zod";
import { eventStream, eventStreamResponse, mapEvents } from "../../../server/server-sent-events.ts";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import type { Clock } from "../../../core/clock.ts";
import { questionInput } from "../../mcp/question.ts";
import { AGENT_LIMITS } from "../limits.ts";
import { RUN_ERROR_CODES, RUN_STATUSES } from "../run/events.ts";
import type { StoredRun } from "../run/run-store.ts";
import type { AgentService } from "../run/service.ts";

/** What the routes of questions work with. */
export type AskRouteDeps = { agent: AgentService; clock: Clock };

const TAG = "Agent";

const uuid = z.uuid();

const askRoute = defineRoute({
  method: "POST",
  path: "/v1/agent/ask",
  role: "read",
  tag: TAG,
  summary: "Ask a question about the data and the memory",
  description:
    "A language model answers, with queries and recalls that run as the caller. The answer is a stream of events; the `id` of " +
    "each is its number in the run: `session`, `run_started`, then `thinking_delta`, `answer_delta`, `tool_call` and " +
    "`tool_result`, then `answer_final` or `run_error`, and `run_finished`, which is always the last. A run takes at most " +
    `${AGENT_LIMITS.runMs / 1_000} s and ${AGENT_LIMITS.toolCalls} calls of tools. Whoever leaves ends it.`,
  json: z.strictObject({
    question: questionInput.describe("In plain words."),
    database: z.string().max(128).default("default").describe("What the question is about."),
    include_thinking: z
      .boolean()
      .default(false)
      .describe("Sends what the model thinks, too, where its provider shows that."),
    session_id: uuid.optional().describe("Goes on with a session; without it a new one begins."),
    source: z.string().max(AGENT_LIMITS.sourceChars).optional().describe("A label of a new session: who or what asks."),
  }),
  responses: [eventStreamResponse("The run, as it goes.")],
  errors: [
    "database_not_found",
    "session_not_found",
    "conflict",
    "invalid_parameter",
    "too_many_requests",
    "insufficient_storage",
  ],
  handler:
    ({ agent, clock }: AskRouteDeps) =>
    async ({ caller, clientAddress: address, requestId, json }) => {
      const { question: text, database, include_thinking: includeThinking, session_id: sessionId, source } = json;
      const asked = { question: text, database, includeThinking, sessionId, source };
      const events = await agent.ask(asked, { caller, address, requestId });
      return eventStream({
        events: mapEvents(events, ({ seq, event, data }) => ({ event, id: String(seq), data })),
        clock,
      });
    },
});

const usage = z.object({ input_tokens: z.int(), output_tokens: z.int(), total_tokens: z.int() });

const runBody = z.object({
  run_id: z.string(),
  session_id: z.string().nullable().describe("Null where the session was deleted."),
  database: z.string(),
  question: z.string(),
  engine: z.object({ kind: z.string(), model: z.string() }).nullable(),
  status: z.enum(RUN_STATUSES),
  error: z.object({ code: z.enum(RUN_ERROR_CODES), message: z.string() }).nullable(),
  answer: z.string().nullable().describe("Also what was begun of one."),
  prompt_hash: z.string().nullable().describe("Runs with the same prompt have the same."),
  tool_calls: z.int(),
  usage,
  queries: z.array(
    z.object({
      language: z.string(),
      text: z.string(),
      database: z.string(),
      snapshot_id: z.string().optional().describe("The newest that it could read; runs of older servers have none."),
      total_rows: z.int(),
    }),
  ),
  started_at: z.string(),
  finished_at: z.string().nullable(),
  events: z.array(z.object({ seq: z.int(), event: z.string(), data: z.unknown(), at: z.string() })),
  has_more: z.boolean().describe("There are more events; ask again with `after`."),
});

/** Events of one answer. */
const EVENTS = 1_000;

const runRoute = defineRoute({
  method: "GET",
  path: "/v1/agent/runs/{run_id}",
  role: "read",
  tag: TAG,
  summary: "A run, under way or over",
  params: z.object({ run_id: uuid.describe("As `run_started` says it.") }),
  query: z.object({ after: z.coerce.number().int().min(0).default(0).describe("Only events with larger numbers.") }),
  responses: [
    {
      status: 200,
      description: "What was asked, what came of it, and every event.",
      type: "application/json",
      schema: runBody,
    },
  ],
  errors: ["not_found", "invalid_parameter"],
  handler:
    ({ agent }: AskRouteDeps) =>
    async ({ caller, params: { run_id: runId }, query: { after } }) => {
      const run = await agent.run(runId, caller);
      const events = await agent.events(runId, { after, limit: EVENTS + 1 });
      const shown = events
        .slice(0, EVENTS)
        .map(({ seq, event, data, atMs }) => ({ seq, event, data, at: isoOf(atMs) }));
      return jsonResponse(200, { ...wireOf(run), events: shown, has_more: events.length > EVENTS });
    },
});

function wireOf(run: StoredRun) {
  return {
    run_id: run.id,
    session_id: run.sessionId ?? null,
    database: run.database,
    question: run.question,
    engine: run.engine ?? null,
    status: run.status,
    error: run.error ?? null,
    answer: run.answer ?? null,
    prompt_hash: run.promptHash ?? null,
    tool_calls: run.toolCalls,
    usage: run.usage,
    queries: run.queries,
    started_at: isoOf(run.startedAtMs),
    finished_at: run.finishedAtMs === undefined ? null : isoOf(run.finishedAtMs),
  };
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}

export const ASK_ROUTES = [askRoute, runRoute] as const;
