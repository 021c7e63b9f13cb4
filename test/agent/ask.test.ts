import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ingest, ndjson, query, rowsOf } from "../support/client.ts";
import { delay, eventually } from "../../src/core/waiting.test-kit.ts";
import {
  ask,
  dataOf,
  eventsOf,
  KINDS,
  only,
  PROVIDER_KEY,
  send,
  setEngine,
  sql,
  startAsked,
  storedRun,
  type AskedEngine,
} from "./agent.test-kit.ts";

/** Questions over HTTP, answered by scripted providers: this shows wires, limits and safety, and nobody's wisdom. */
let asked: AskedEngine;
let url = "";

beforeAll(async () => {
  asked = await startAsked();
  url = asked.engine.url;
  const rows = Array.from({ length: 300 }, (_, n) => ({ n, level: n % 3 === 0 ? "error" : "info", host: `h${n % 5}` }));
  expect((await ingest(url, "logs", ndjson(rows))).status).toBe(200);
});
afterAll(() => asked.remove());

const textOf = (events: Parameters<typeof dataOf>[0], name: string) =>
  dataOf(events, name)
    .map(({ text }) => text)
    .join("");

describe.each(KINDS)("the engine %s", (kind) => {
  beforeAll(() => setEngine(url, kind));
  afterAll(() => setEngine(url, "anthropic"));

  test("answers with what a query found, and all of it is stored", async () => {
    asked.play([
      {
        text: ["I look."],
        toolCalls: [sql("SELECT count(*) AS c FROM logs WHERE level = 'error'")],
        usage: { input: 100, output: 20 },
      },
      { text: ["There are ", "**100** errors."], usage: { input: 200, output: 10 } },
    ]);
    const events = await ask(url, "How many errors are there?");
    expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => i + 1));
    expect(events.slice(0, 2).map(({ event }) => event)).toEqual(["session", "run_started"]);
    expect(events.slice(-2).map(({ event }) => event)).toEqual(["answer_final", "run_finished"]);
    const started = only(events, "run_started");
    expect(started).toMatchObject({
      database: "default",
      engine: { kind, model: "scripted-1" },
      limits: { tool_calls: 12 },
    });
    expect(only(events, "tool_call")).toMatchObject({ name: "query_sql", index: 1 });
    expect(only(events, "tool_result")).toMatchObject({
      name: "query_sql",
      ok: true,
      rows: 1,
      total_rows: 1,
      snapshot_id: expect.stringMatching(/^[1-9]\d*$/),
      truncated: false,
      output: { columns: ["c"], rows: [[100]] },
    });
    expect(textOf(events, "answer_delta")).toBe("I look.\n\nThere are **100** errors.");
    expect(only(events, "answer_final")).toMatchObject({
      text: "I look.\n\nThere are **100** errors.",
      citations: { queries: [{ language: "sql", database: "default", total_rows: 1 }], memories: [] },
    });
    expect(only(events, "run_finished")).toMatchObject({
      status: "done",
      tool_calls: 1,
      usage: { input_tokens: 300, output_tokens: 30, total_tokens: 330 },
    });
    const run = await storedRun(url, started["run_id"]);
    expect(run).toMatchObject({ status: "done", error: null, session_id: started["session_id"], has_more: false });
    const stored = run["events"] as { seq: number; event: string; data: unknown }[];
    expect(stored.map(({ seq, event, data }) => ({ id: seq, event, data }))).toEqual(events);
    // Whoever asks at that snapshot finds what the model was told.
    const [found] = run["queries"] as { text: string; snapshot_id: string }[];
    expect(found?.snapshot_id).toBe(only(events, "tool_result")["snapshot_id"]);
    const then = `SELECT count(*) AS c FROM logs AT (VERSION => ${found?.snapshot_id}) WHERE level = 'error'`;
    expect(await rowsOf(url, then)).toEqual([{ c: 100 }]);
  });

  test("is told what is wrong with a call, and may mend it", async () => {
    asked.play([
      {
        toolCalls: [
          sql("SELECT levl FROM logs"),
          { name: "no_such_tool", input: {} },
          { name: "query_sql", rawText: '{"query": "SELECT 1' },
          { name: "query_sql", input: { query: "SELECT 1", database: "other" } },
          { name: "query_sql", input: { query: "DROP TABLE logs" } },
        ],
      },
      { text: ["Mended."] },
    ]);
    const events = await ask(url, "What levels are there?");
    // They are called at once, and answered as they are done.
    const order = dataOf(events, "tool_call").map(({ id }) => id);
    const results = dataOf(events, "tool_result").toSorted((a, b) => order.indexOf(a["id"]) - order.indexOf(b["id"]));
    expect(results.map(({ ok }) => ok)).toEqual([false, false, false, false, false]);
    const wrongs = results.map(({ output }) => (output as { error: { message: string; suggestion?: string } }).error);
    expect(wrongs.map(({ message }) => message)).toEqual([
      expect.stringContaining("levl"),
      expect.stringContaining("no_such_tool"),
      expect.stringContaining("JSON"),
      expect.stringContaining("no other"),
      expect.any(String),
    ]);
    expect(wrongs[0]?.suggestion).toBe("level");
    expect(only(events, "run_finished")).toMatchObject({ status: "done", tool_calls: 5 });
    const sent = JSON.stringify(asked.asked().at(-1)?.body);
    for (const { message } of wrongs) expect(sent).toContain(message.slice(0, 12));
  });

  test("that thinks is shown to those who ask for that", async () => {
    const reply = { thinking: ["Let me ", "think."], text: ["Thought."] };
    asked.play([reply, reply]);
    const shown = await ask(url, { question: "Think!", include_thinking: true });
    expect(textOf(shown, "thinking_delta")).toBe("Let me think.");
    expect(dataOf(await ask(url, "Think!"), "thinking_delta")).toEqual([]);
  });

  test("that refuses ends the run with its words, and without the key", async () => {
    asked.play([
      {
        status: 401,
        errorBody: { error: { type: "authentication_error", message: `the key ${PROVIDER_KEY} is wrong` } },
      },
    ]);
    const events = await ask(url, "Anything?");
    const { code, message, retryable } = only(events, "run_error");
    expect([code, retryable]).toEqual(["engine_failed", false]);
    expect(message).toContain("401");
    // The engine of this machine is sent no key, so what it says is none.
    expect(JSON.stringify(events).includes(PROVIDER_KEY)).toBe(kind === "localmodel");
    expect(events.at(-1)).toMatchObject({ event: "run_finished", data: { status: "failed" } });
  });

  test("that cuts its answer ends the run, whose part is kept", async () => {
    asked.play([
      { text: ["The answer is forty", " two and much more than that"], cutAfterBytes: kind === "openai" ? 900 : 700 },
    ]);
    const events = await ask(url, "What is the answer?");
    expect(only(events, "run_error")).toMatchObject({ code: "engine_failed" });
    const run = await storedRun(url, only(events, "run_started")["run_id"]);
    expect(run["answer"] ?? "").toBe(textOf(events, "answer_delta"));
  });
});

describe("limits", () => {
  test("the thirteenth call is not made, however many come at once", async () => {
    const five = { toolCalls: Array.from({ length: 5 }, () => sql("SELECT 1 AS one")) };
    asked.play([five, five, five, { text: ["never"] }]);
    const events = await ask(url, "Loop!");
    expect(dataOf(events, "tool_call")).toHaveLength(12);
    expect(dataOf(events, "tool_result")).toHaveLength(12);
    expect(only(events, "run_error")).toMatchObject({ code: "tool_loop", retryable: false });
    expect(events.at(-1)).toMatchObject({ event: "run_finished", data: { status: "failed", tool_calls: 12 } });
  });

  test("a model is told 200 rows at most, and of how many", async () => {
    asked.play([
      { toolCalls: [{ name: "query_sql", input: { query: "SELECT * FROM logs", limit: 1_000 } }] },
      { text: ["ok"] },
    ]);
    const events = await ask(url, "Everything!");
    expect(only(events, "tool_result")).toMatchObject({ rows: 200, total_rows: 300, truncated: true });
  });

  test("a model is told 32 KiB at most", async () => {
    asked.play([{ toolCalls: [sql("SELECT repeat('x', 1000) AS x FROM range(200)")] }, { text: ["ok"] }]);
    const result = only(await ask(url, "Long!"), "tool_result");
    expect(result).toMatchObject({ total_rows: 200, truncated: true });
    expect(JSON.stringify(result["output"]).length).toBeLessThanOrEqual(32 * 1024);
    expect(result["rows"]).toBeGreaterThan(25);
  });

  test("a model that does not stop is stopped", async () => {
    asked.play([{ thinking: Array.from({ length: 160 }, () => "hm ".repeat(22_000)), text: ["done"] }]);
    const events = await ask(url, "Think for ever!");
    expect(only(events, "run_error")).toMatchObject({
      code: "engine_failed",
      message: expect.stringContaining("bytes"),
    });
  });

  test("a query of a run has what is left of the run, and not more than 20 s", async () => {
    asked.play([
      { toolCalls: [sql("SELECT count(*) FROM range(100000000000) a, range(1000000) b")] },
      { text: ["too long"] },
    ]);
    const events = await ask(url, "Count!");
    const result = only(events, "tool_result");
    expect(result).toMatchObject({ ok: false, output: { error: { code: "budget_exceeded" } } });
    expect(result["duration_ms"]).toBeGreaterThan(15_000);
    expect(result["duration_ms"]).toBeLessThan(30_000);
  });
});

describe("a provider that is busy", () => {
  test("is asked once more, where it had said nothing", async () => {
    asked.play([{ status: 529 }, { text: ["Back."] }]);
    expect(only(await ask(url, "There?"), "answer_final")).toMatchObject({ text: "Back." });
    asked.play([{ status: 429, headers: { "Retry-After": "1" } }, { text: ["Back."] }]);
    expect(only(await ask(url, "There?"), "answer_final")).toMatchObject({ text: "Back." });
  });

  test("and is then left alone", async () => {
    asked.play([{ status: 529 }, { status: 529 }, { text: ["never"] }]);
    expect(only(await ask(url, "There?"), "run_error")).toMatchObject({ code: "rate_limited", retryable: true });
    asked.play([{ status: 429, headers: { "Retry-After": "60" } }, { text: ["never"] }]);
    expect(only(await ask(url, "There?"), "run_error")).toMatchObject({ code: "rate_limited" });
  });
});

describe("whoever leaves", () => {
  test("ends the run and what the provider is asked, and the part answered is kept", async () => {
    asked.play([{ text: ["The first part, ", "and then "], hang: true }]);
    const leaving = new AbortController();
    const response = await send(url, "POST", "/v1/agent/ask", { question: "Slowly" }, {}, leaving.signal);
    let text = "";
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString();
      if (text.includes("answer_delta")) break;
    }
    const started = only(eventsOf(text), "run_started");
    const leftAtMs = performance.now();
    leaving.abort();
    const request = asked.asked().at(-1);
    await request?.clientLeft;
    expect(performance.now() - leftAtMs).toBeLessThan(1_000);
    await eventually(async () => (await storedRun(url, started["run_id"]))["status"] === "cancelled");
    const run = await storedRun(url, started["run_id"]);
    expect(run).toMatchObject({ error: { code: "cancelled" }, answer: expect.stringContaining("The first part") });
    const turns = await send(url, "GET", `/v1/agent/sessions/${String(started["session_id"])}/turns`);
    expect(await turns.json()).toMatchObject({
      turns: [{ role: "user" }, { role: "assistant", content: run["answer"] }],
    });
  });
});

describe("a session", () => {
  test("goes on with what was said, and gets a title of the model", async () => {
    asked.play([{ text: ["Blue."] }, { text: ["You asked for a color."] }]);
    const { sessionId } = only(await ask(url, { question: "Which color?", source: "test" }), "session");
    const events = await ask(url, { question: "What did I ask?", session_id: sessionId });
    expect(only(events, "session")).toEqual({ sessionId });
    const sent = JSON.stringify(asked.asked().at(-1)?.body);
    expect(sent).toContain("Which color?");
    expect(sent).toContain("Blue.");
    const path = `/v1/agent/sessions/${String(sessionId)}`;
    await eventually(async () =>
      ((await (await send(url, "GET", path)).json()) as { title: string }).title.includes("model"),
    );
    expect(await (await send(url, "GET", path)).json()).toMatchObject({ source: "test", turn_count: 4 });
  });

  test("answers one question at a time", async () => {
    asked.play([{ text: ["slow"], delayMs: 2_000 }, { text: ["next"] }]);
    const response = await send(url, "POST", "/v1/agent/ask", { question: "Slowly" });
    const reader = response.body?.getReader();
    let text = "";
    while (!text.includes("sessionId")) text += Buffer.from((await reader?.read())?.value ?? []).toString();
    const { sessionId } = only(eventsOf(`${text}\n\n`).slice(0, 1), "session");
    const second = await send(url, "POST", "/v1/agent/ask", { question: "And?", session_id: sessionId });
    expect([second.status, await second.json()]).toMatchObject([409, { error: { code: "conflict" } }]);
    while ((await reader?.read())?.done === false);
    expect(only(await ask(url, { question: "Now?", session_id: sessionId }), "run_finished")).toMatchObject({
      status: "done",
    });
  });
});

test("what was asked and answered is an observation, too, unless the settings say no", async () => {
  asked.play([{ text: ["Noted: the key is sk-ant-REDACTED00000000000000."] }, { text: ["Not noted."] }]);
  const events = await ask(url, "Which key?");
  const { run_id: runId } = only(events, "run_started");
  const noted = async (id: unknown) =>
    (await rowsOf(
      url,
      `SELECT role, body FROM firehose WHERE run_id = '${String(id)}' ORDER BY role DESC`,
    )) as unknown[];
  await eventually(async () => (await query(url, "SELECT 1 FROM firehose LIMIT 1")).status === 200);
  await eventually(async () => (await noted(runId)).length === 2);
  expect(await noted(runId)).toMatchObject([{ role: "user", body: "Which key?" }, { role: "assistant" }]);
  const settings = { agent: { firehose_turns: false } };
  expect((await send(url, "PUT", "/v1/agent/memory/settings", settings)).status).toBe(200);
  const quiet = only(await ask(url, "And now?"), "run_started")["run_id"];
  await delay(500);
  expect(await noted(quiet)).toEqual([]);
});

test("agents ask over MCP, and get the whole answer at once", async () => {
  asked.play([{ toolCalls: [sql("SELECT 42 AS x")] }, { text: ["It is 42."] }, { status: 401 }]);
  const call = async (name: string, args: object) => {
    const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } };
    const response = await send(url, "POST", "/mcp/v1", body, { Accept: "application/json, text/event-stream" });
    return ((await response.json()) as { result: { structuredContent?: object; content: { text: string }[] } }).result;
  };
  expect((await call("ask", { question: "What is it?" })).structuredContent).toMatchObject({
    answer: "It is 42.",
    queries: ["SELECT 42 AS x"],
  });
  expect(JSON.parse((await call("ask", { question: "And?" })).content[0]?.text ?? "")).toMatchObject({
    error: { code: "engine_failed" },
  });
});

test.each([
  [{}, 400, "question"],
  [{ question: "  " }, 400, "empty"],
  [{ question: "x".repeat(32 * 1024 + 1) }, 400, "32768"],
  [{ question: "x", session_id: "not-a-uuid" }, 400, "session_id"],
  [{ question: "x", session_id: "01900000-0000-7000-8000-000000000000" }, 404, "session"],
  [{ question: "x", database: "nowhere" }, 404, "nowhere"],
  [{ question: "x", model: "other" }, 400, "model"],
  [{ question: "x\u0000y" }, 400, "NUL"],
])("%j is refused with %i, which says %s", async (body, status, says) => {
  const response = await send(url, "POST", "/v1/agent/ask", body);
  expect(response.status).toBe(status);
  expect(((await response.json()) as { error: { message: string } }).error.message).toContain(says);
});

test("the key is in no log", () => {
  expect(asked.engine.log()).not.toContain(PROVIDER_KEY);
});
