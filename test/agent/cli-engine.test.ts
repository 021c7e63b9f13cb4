import { readdir } from "node:fs/promises";
import { dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { ingest, ndjson } from "../support/client.ts";
import { callTool, mcpClient } from "../api/mcp.test-kit.ts";
import { ask, dataOf, only, send, storedRun } from "./agent.test-kit.ts";
import { CLI_ENGINE, isAlive, startCli, type CliServer } from "./cli-engine.test-kit.ts";

/** The engine `cli` over HTTP, with a scripted program that speaks ACP: its wire, its cage and its end. */
let cli: CliServer;
let url = "";

beforeAll(async () => {
  cli = await startCli({
    ENGINE_AGENT_COMMAND_ENV: "AGENT_KEY",
    AGENT_KEY: "planted-agent-key-1",
    ANTHROPIC_API_KEY: "planted-server-key-2",
    ENGINE_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
  });
  ({ url } = cli);
  const rows = Array.from({ length: 300 }, (_, n) => ({ n, level: n % 3 === 0 ? "error" : "info" }));
  expect((await ingest(url, "logs", ndjson(rows))).status).toBe(200);
});
afterAll(() => cli.remove());

type Session = { mcpServers: { url: string; headers: { value: string }[] }[] };

const sql = (query: string) => ({ name: "query_sql", arguments: { query } });
const textOf = (events: Parameters<typeof dataOf>[0], name: string) =>
  dataOf(events, name)
    .map(({ text }) => text)
    .join("");

/** The program that gives a session its title comes after the answer. */
async function expectNoFolders(): Promise<void> {
  await eventually(async () => {
    return !(await readdir(dirname(cli.engine.home))).some((name) => name.startsWith("engine-agent-"));
  });
}

async function areAlive(pids: readonly unknown[]): Promise<boolean[]> {
  return await Promise.all(pids.map(isAlive));
}

/** What the program noted last under that name, once it has. */
async function soonNoted(name: string): Promise<unknown> {
  await eventually(async () => (await cli.noted(name)).length > 0);
  return (await cli.noted(name)).at(-1);
}

describe("an answer", () => {
  test("has what a query found; the run has it whole", async () => {
    await cli.play([
      { think: "I should count." },
      { say: "I look." },
      { calls: [sql("SELECT count(*) AS c FROM logs WHERE level = 'error'")] },
      { say: "There are " },
      { say: "**100** errors." },
    ]);
    const events = await ask(url, { question: "How many errors are there?", include_thinking: true });
    expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => i + 1));
    expect(only(events, "run_started")).toMatchObject({ engine: { kind: "cli", model: "default" } });
    expect(textOf(events, "thinking_delta")).toBe("I should count.");
    expect(only(events, "tool_call")).toMatchObject({ name: "query_sql", index: 1 });
    expect(only(events, "tool_result")).toMatchObject({ ok: true, rows: 1, total_rows: 1 });
    expect(only(events, "answer_final")).toMatchObject({
      text: "I look.\n\nThere are **100** errors.",
      citations: { queries: [{ language: "sql", database: "default", total_rows: 1 }] },
    });
    const usage = { input_tokens: 30, output_tokens: 5, total_tokens: 35 };
    expect(only(events, "run_finished")).toMatchObject({ status: "done", tool_calls: 1, usage });
    const [answer] = (await cli.noted("answer")) as { result: { content: { text: string }[]; isError: boolean } }[];
    expect(answer?.result.isError).toBe(false);
    // Rows are data, in the marks of this run, as for any other engine.
    expect(answer?.result.content[0]?.text).toMatch(/^<<data [0-9a-f]{24} from query_sql>>\n\{.*100.*\}\n<<end /s);
    const run = await storedRun(url, only(events, "run_started")["run_id"]);
    expect(run).toMatchObject({ status: "done", tool_calls: 1 });
    expect((run["events"] as unknown[]).length).toBe(events.length);
  });

  test("is asked for with our instructions first and the question last; a session goes on", async () => {
    await cli.play([{ say: "The first answer." }]);
    const first = await ask(url, "What is first?");
    await cli.play([{ say: "The second answer." }]);
    await ask(url, { question: "What is second?", session_id: only(first, "session")["sessionId"] });
    const [prompt] = (await cli.noted("prompt")) as string[];
    expect(prompt).toMatch(/^You answer questions about the data/);
    expect(prompt).toContain('"logs" (300 rows)');
    const places = ["What is first?", "The first answer.", "What is second?"].map(
      (text) => prompt?.indexOf(text) ?? -1,
    );
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places).not.toContain(-1);
    expect(prompt).toMatch(/What is second\?$/);
  });

  test("loses its images and unknown links, as every answer does", async () => {
    await cli.play([{ say: "See ![x](https://evil.example/" }, { say: "p.png?q=secret) and <b>." }]);
    const events = await ask(url, "Show me.");
    expect(textOf(events, "answer_delta")).toBe("See [x] {link removed} and < b>.");
  });

  test("gives a session its title, with a program of its own", async () => {
    await cli.play([{ say: "Yes." }]);
    const events = await ask(url, "Is it so?");
    const session = `/v1/agent/sessions/${String(only(events, "session")["sessionId"])}`;
    await eventually(async () => {
      const { title } = (await (await send(url, "GET", session)).json()) as { title: string };
      return title === "A title of the agent";
    });
  });
});

describe("limits", () => {
  test("end the run at its 13th call, which is not made", async () => {
    await cli.play([
      { calls: Array.from({ length: 5 }, (_, n) => sql(`SELECT ${n} AS a`)) },
      { calls: Array.from({ length: 5 }, (_, n) => sql(`SELECT ${n} AS b`)) },
      { calls: Array.from({ length: 5 }, (_, n) => sql(`SELECT ${n} AS c`)) },
      { say: "never" },
    ]);
    const events = await ask(url, "Ask on and on.");
    expect(dataOf(events, "tool_result").map(({ ok }) => ok)).toEqual(Array.from({ length: 12 }, () => true));
    expect(only(events, "run_error")).toMatchObject({ code: "tool_loop" });
    expect(only(events, "run_finished")).toMatchObject({ status: "failed", tool_calls: 12 });
    expect(textOf(events, "answer_delta")).not.toContain("never");
    await expectNoFolders();
  });

  test("hold for the database, for unknown tools, and for those that a run has not", async () => {
    const other = { name: "query_sql", arguments: { query: "SELECT 1", database: "other" } };
    await cli.play([
      { calls: [other] },
      { calls: [{ name: "ask", arguments: { question: "Go on?" } }] },
      { calls: [{ name: "ingest_rows", arguments: {} }] },
      { calls: [{ name: "forget_memory", arguments: {} }] },
      { say: "Done." },
    ]);
    const events = await ask(url, "Reach further.");
    const results = dataOf(events, "tool_result");
    expect(results.map(({ ok }) => ok)).toEqual([false, false, false, false]);
    expect(JSON.stringify(results[0])).toContain("the question is about the database");
    expect(only(events, "run_finished")).toMatchObject({ status: "done", tool_calls: 4 });
  });

  test("let a writer save what is derived, and shorten what a query finds", async () => {
    await cli.play([
      { calls: [{ name: "save_memory", arguments: { content: "Errors are a third of the logs." } }] },
      { calls: [sql("SELECT * FROM logs ORDER BY n")] },
      { say: "Saved." },
    ]);
    const events = await ask(url, "Remember it.");
    const [saved, found] = dataOf(events, "tool_result");
    expect(saved).toMatchObject({ ok: true });
    expect(found).toMatchObject({ ok: true, total_rows: 300 });
    expect(Number(found?.["rows"])).toBeLessThanOrEqual(200);
    const output = saved?.["output"] as { id: string } | undefined;
    const memory = await (await send(url, "GET", `/v1/agent/memory/nodes/${output?.id}`)).json();
    expect(JSON.stringify(memory)).toContain("derived");
  });
});

describe("the cage", () => {
  test("is an empty folder and a bare environment, and is gone afterwards", async () => {
    await cli.play([{ look: true }, { say: "Seen." }]);
    only(await ask(url, "Look around."), "answer_final");
    const [[env], [cwd], [files]] = await Promise.all([cli.noted("env"), cli.noted("cwd"), cli.noted("files")]);
    expect(files).toEqual([]);
    const names = Object.keys(env as object).toSorted();
    expect(names).toEqual(["AGENT_KEY", "HOME", "LANG", "PATH", "TMPDIR"]);
    expect(env).toMatchObject({ AGENT_KEY: "planted-agent-key-1", HOME: cwd, TMPDIR: cwd });
    await expectNoFolders();
  });

  test("has no files, no terminal, and no permission but for our tools", async () => {
    await cli.play([
      { request: { method: "fs/read_text_file", params: { path: "/etc/hostname" } } },
      { request: { method: "fs/write_text_file", params: { path: "/tmp/x", content: "x" } } },
      { request: { method: "terminal/create", params: { command: "id" } } },
      { permission: { title: "rm -rf /", kind: "execute" } },
      { permission: { title: "query_sql", kind: "execute" } },
      { permission: { title: "Run query_sql", kind: "other" } },
      { permission: { title: "mcp__other__query_sql" } },
      { permission: { title: "mcp__engine__query_sql" } },
      { permission: { title: "query_sql", kind: "other" } },
      { say: "Done." },
    ]);
    const events = await ask(url, "Break out.");
    expect(dataOf(events, "tool_call")).toEqual([]);
    only(events, "answer_final");
    const refused = await cli.noted("refused");
    expect(refused).toHaveLength(3);
    for (const each of refused) expect(each).toMatchObject({ code: -32_601 });
    const chosen = (await cli.noted("permission")) as { outcome: { optionId: string } }[];
    expect(chosen.map(({ outcome }) => outcome.optionId)).toEqual([
      "reject_once",
      "reject_once",
      "reject_once",
      "reject_once",
      "allow_once",
      "allow_once",
    ]);
  });

  test("ends with all its children, also those that leave the process group, when the run ends", async () => {
    await cli.play([{ sleepers: ["child", "setsid"] }, { say: "Started." }]);
    only(await ask(url, "Start something."), "answer_final");
    const pids = (await soonNoted("pids")) as number[];
    expect(pids).toHaveLength(3);
    await eventually(async () => !(await areAlive(pids)).includes(true));
  });

  test("ends within a second after the client has left", async () => {
    await cli.play([{ sleepers: ["child", "setsid"] }, { say: "I wait." }, { hang: true }]);
    const leave = new AbortController();
    const response = await send(url, "POST", "/v1/agent/ask", { question: "Wait." }, {}, leave.signal);
    const reader = response.body?.getReader();
    const pids = (await soonNoted("pids")) as number[];
    expect(await areAlive(pids)).toEqual([true, true, true]);
    leave.abort();
    const leftMs = performance.now();
    await eventually(async () => !(await areAlive(pids)).includes(true));
    expect(performance.now() - leftMs).toBeLessThan(1_000);
    await reader?.cancel().catch(() => undefined);
    await expectNoFolders();
  });
});

describe("the token of a run", () => {
  test("is dead after the run, and good for MCP alone while it lasts", async () => {
    await cli.play([{ calls: [sql("SELECT 1 AS a")] }, { say: "I wait." }, { hang: true }]);
    const leave = new AbortController();
    const response = await send(url, "POST", "/v1/agent/ask", { question: "Wait." }, {}, leave.signal);
    await soonNoted("answer");
    const { mcpServers } = (await soonNoted("session")) as Session;
    expect(mcpServers[0]?.url).toBe(`${url}/mcp/v1`);
    const Authorization = mcpServers[0]?.headers[0]?.value ?? "";
    expect(Authorization).toMatch(/^Bearer engine_run_\w{49}$/);
    const list = () =>
      send(
        url,
        "POST",
        "/mcp/v1",
        { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} },
        {
          Authorization,
          Accept: "application/json, text/event-stream",
        },
      );
    const listed = JSON.stringify(await (await list()).json());
    expect(listed).toContain("query_sql");
    expect(listed).not.toContain('"ask"');
    // Authentication is off here, and still it opens nothing else.
    for (const path of ["/v1/agent/sessions", "/v1/agent/engine", "/v1/agent/skills"]) {
      expect([path, (await send(url, "GET", path, undefined, { Authorization })).status]).toEqual([path, 401]);
    }
    expect((await send(url, "GET", "/mcp/v1", undefined, { Authorization, Accept: "text/event-stream" })).status).toBe(
      405,
    );
    leave.abort();
    await response.body?.cancel().catch(() => undefined);
    await eventually(async () => (await list()).status === 401);
    expect(cli.engine.log()).not.toContain(Authorization.slice("Bearer ".length));
  });
});

test.each(["legacy", "2026-07-28"] as const)("the official client, %s, has the tools of a run", async (era) => {
  await cli.play([{ say: "I wait." }, { hang: true }]);
  const leave = new AbortController();
  const response = await send(url, "POST", "/v1/agent/ask", { question: "Wait." }, {}, leave.signal);
  const { mcpServers } = (await soonNoted("session")) as Session;
  const token = mcpServers[0]?.headers[0]?.value.slice("Bearer ".length);
  const client = await mcpClient(url, { era, token });
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toContain("query_sql");
  const { text } = await callTool(client, "query_sql", { query: "SELECT 41 + 1 AS answer" });
  expect(text).toMatch(/^<<data .*42/s);
  const { isError } = await callTool(client, "query_sql", { query: "SELECT nothing FROM logs" });
  expect(isError).toBe(true);
  leave.abort();
  await response.body?.cancel().catch(() => undefined);
  await eventually(async () => {
    const listed = client.listTools().then(() => true);
    return !(await listed.catch(() => false));
  });
  await client.close();
});

describe("a program that fails", () => {
  test.each([
    ["says garbage", [{ raw: "Segmentation fault\n" }], "no message of the protocol: Segmentation fault"],
    ["ends", [{ say: "I be" }, { error: "out of luck: planted-agent-key-1\n" }, { exit: 3 }], "exit code 3"],
    ["closes its output", [{ mute: true }, { hang: true }], "it closed its output"],
    ["floods without a line", [{ raw: "x".repeat(65_536), times: 100 }], "more than 4194304 bytes"],
    [
      "says an update that is none",
      [{ raw: '{"jsonrpc":"2.0","method":"session/update","params":{}}\n' }],
      "an update",
    ],
  ] as const)("%s: the run fails, and says why", async (_what, steps, words) => {
    await cli.play([...steps]);
    const events = await ask(url, "Fail.");
    const { code, message } = only(events, "run_error");
    expect(code).toBe("engine_failed");
    expect(message).toContain(words);
    expect(message).not.toContain("planted-agent-key-1");
    expect(only(events, "run_finished")).toMatchObject({ status: "failed" });
    await expectNoFolders();
  });

  test("answers more than there is room for", async () => {
    const chunk = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "word ".repeat(20_000) } };
    const params = { sessionId: "s", update: chunk };
    const raw = `${JSON.stringify({ jsonrpc: "2.0", method: "session/update", params })}\n`;
    await cli.play([{ raw, times: 100 }]);
    const events = await ask(url, "Talk.");
    expect(only(events, "run_error")).toMatchObject({ code: "engine_failed" });
    expect(textOf(events, "answer_delta").length).toBeLessThan(5 * 1024 * 1024);
  });

  test("refuses, or ends for no good reason", async () => {
    await cli.play([], { stopReason: "refusal" });
    expect(only(await ask(url, "No?"), "run_error")).toMatchObject({ message: "it refused to answer" });
    await cli.play([], { stopReason: "max_turn_requests" });
    expect(only(await ask(url, "No?"), "run_error")["message"]).toContain("max_turn_requests");
  });

  test("takes no tools over HTTP", async () => {
    await cli.play([], { http: false });
    expect(only(await ask(url, "No?"), "run_error")["message"]).toContain("ENGINE_AGENT_MCP_URL=off");
  });
});

describe("the routes of engines", () => {
  test("list it, and test it by a prompt", async () => {
    const { engines } = (await (await send(url, "GET", "/v1/agent/engines")).json()) as { engines: unknown[] };
    expect(engines).toContainEqual({
      kind: "cli",
      models: ["default"],
      source: "built_in",
      has_operator_key: true,
      hosts: [],
    });
    await cli.play([{ say: "OK" }]);
    const tested = await send(url, "POST", "/v1/agent/engine/test", CLI_ENGINE);
    expect([tested.status, await tested.json()]).toEqual([200, { ok: true, kind: "cli", model: "default" }]);
    await cli.play([{ error: "no key was given\n" }, { exit: 1 }]);
    const failed = await send(url, "POST", "/v1/agent/engine/test", CLI_ENGINE);
    expect(failed.status).toBe(502);
    expect(await failed.json()).toMatchObject({
      error: { code: "engine_failed", message: "it ended with exit code 1; its last line: no key was given" },
    });
    await expectNoFolders();
  });

  test("choose a model where the program offers some", async () => {
    const models = ["small", "large"];
    await cli.play([{ say: "OK" }], { models });
    const large = { ...CLI_ENGINE, model: "large" };
    expect((await send(url, "POST", "/v1/agent/engine/test", large)).status).toBe(200);
    expect(await cli.noted("chosen")).toMatchObject([{ configId: "m", value: "large" }]);
    const huge = await send(url, "POST", "/v1/agent/engine/test", { ...CLI_ENGINE, model: "huge" });
    expect(JSON.stringify(await huge.json())).toContain("it does not offer the model huge; it offers small, large");
  });

  test("take no credential, host or extras for it", async () => {
    const refusals = await Promise.all(
      [
        { credential_id: "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11" },
        { host: "http://127.0.0.1:1" },
        { extras: { temperature: 1 } },
      ].map(async (field) => {
        const answer = await send(url, "PUT", "/v1/agent/engine", { ...CLI_ENGINE, ...field });
        const { error } = (await answer.json()) as { error: { message: string } };
        return [answer.status, error.message.split(":")[0]];
      }),
    );
    expect(refusals).toEqual([
      [400, "credential_id"],
      [400, "host"],
      [400, "extras.temperature"],
    ]);
  });
});
