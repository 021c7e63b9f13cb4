import { readdir } from "node:fs/promises";
import { dirname } from "node:path";
import { afterEach, expect, test } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { ingest, ndjson } from "../support/client.ts";
import { ask, dataOf, only, send } from "./agent.test-kit.ts";
import { CLI_ENGINE, isAlive, startCli, type CliServer } from "./cli-engine.test-kit.ts";

/** Servers of the engine `cli` that are set up in other ways, each for one test. */
let started: CliServer | undefined;
afterEach(async () => {
  await started?.remove();
  started = undefined;
});

async function start(env: Record<string, string> = {}): Promise<CliServer> {
  started = await startCli(env, env["ENGINE_AUTH_TOKENS"] === undefined ? {} : as("adm"));
  return started;
}

const TOKENS = { ENGINE_AUTH_TOKENS: "adm:admin,wri:write,rea:read" };
const as = (token: string) => ({ Authorization: `Bearer ${token}` });
const save = { name: "save_memory", arguments: { content: "It rains." } };

test("a run has the rights of the one who asks, and its token is nobody else's", async () => {
  const cli = await start(TOKENS);
  await cli.play([{ calls: [save] }, { say: "Done." }]);
  const reader = await ask(cli.url, "Save it.", as("rea"));
  expect(dataOf(reader, "tool_result").map(({ ok }) => ok)).toEqual([false]);
  const writer = await ask(cli.url, "Save it.", as("wri"));
  expect(dataOf(writer, "tool_result").map(({ ok }) => ok)).toEqual([true]);

  // Several at a time: each has its own count and its own answers.
  await cli.play([{ calls: [{ name: "query_sql", arguments: { query: "SELECT 1 AS a" } }] }, { say: "Done." }]);
  const runs = await Promise.all(Array.from({ length: 3 }, () => ask(cli.url, "Ask.", as("rea"))));
  for (const run of runs) expect(only(run, "run_finished")).toMatchObject({ status: "done", tool_calls: 1 });
  const sessions = (await cli.noted("session")) as { mcpServers: { headers: { value: string }[] }[] }[];
  const tokens = sessions.map(({ mcpServers }) => mcpServers[0]?.headers[0]?.value ?? "");
  expect(new Set(tokens).size).toBe(3);
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
  for (const Authorization of tokens) {
    expect((await send(cli.url, "POST", "/mcp/v1", list, { Authorization })).status).toBe(401);
    expect((await send(cli.url, "GET", "/v1/nowhere", undefined, { Authorization })).status).toBe(401);
  }
});

test("a server that stops ends its programs with all that they started", async () => {
  const cli = await start();
  await cli.play([{ say: "I wait." }, { sleepers: ["child", "setsid"] }, { hang: true }]);
  const asked = ask(cli.url, "Wait.").catch(() => []);
  await eventually(async () => (await cli.noted("pids")).length > 0);
  const [pids = []] = (await cli.noted("pids")) as number[][];
  expect(await Promise.all(pids.map(isAlive))).toEqual([true, true, true]);
  await cli.engine.stop("SIGTERM");
  expect(await Promise.all(pids.map(isAlive))).toEqual([false, false, false]);
  const names = await readdir(dirname(cli.engine.home));
  expect(names.filter((name) => name.startsWith("engine-agent-"))).toEqual([]);
  await asked;
});

test("without an address for tools a program has none, and is told so", async () => {
  const cli = await start({ ENGINE_AGENT_MCP_URL: "off" });
  await cli.play([{ say: "From what I know." }], { http: false });
  only(await ask(cli.url, "What is there?"), "answer_final");
  expect(await cli.noted("session")).toMatchObject([{ mcpServers: [] }]);
  expect((await cli.noted("prompt"))[0]).toContain("You have no tools here.");
});

test("the operator may name another address for the tools", async () => {
  const cli = await start({ ENGINE_AGENT_MCP_URL: "http://engine.example:8080/mcp/v1" });
  await cli.play([{ say: "Yes." }]);
  only(await ask(cli.url, "Is it so?"), "answer_final");
  expect(await cli.noted("session")).toMatchObject([{ mcpServers: [{ url: "http://engine.example:8080/mcp/v1" }] }]);
});

test("a program that cannot be run fails the test of the engine, and the question", async () => {
  const cli = await start({ ENGINE_AGENT_COMMAND: "/nowhere/agent --acp" });
  const tested = await send(cli.url, "POST", "/v1/agent/engine/test", CLI_ENGINE);
  const message = "the program of ENGINE_AGENT_COMMAND cannot be run: ENOENT";
  expect([tested.status, await tested.json()]).toMatchObject([502, { error: { code: "engine_failed", message } }]);
  expect(only(await ask(cli.url, "Is it so?"), "run_error")).toMatchObject({ code: "engine_failed", message });
});

test("a dream has its proposals as one JSON object, checked like those of any model", async () => {
  const cli = await start();
  const path = "/v1/agent/memory/dreaming";
  const dream = async (): Promise<Record<string, unknown>> => {
    await ingest(cli.url, "firehose", ndjson([{ label: "transcript", body: "The gateway listens on port 8080." }]));
    await eventually(async () => (await send(cli.url, "POST", `${path}/run`, {})).status === 202);
    let run: Record<string, unknown> = {};
    await eventually(async () => {
      const { runs } = (await (await send(cli.url, "GET", `${path}/runs?limit=1`)).json()) as { runs: (typeof run)[] };
      run = runs[0] ?? {};
      return ["done", "failed"].includes(String(run["status"]));
    });
    return run;
  };
  const content = "The gateway listens on port 8080.";
  const proposal = { action: "add", reason: "It says so.", evidence: ["e1"], content };
  const answer = JSON.stringify({ reasoning: "As the events say.", proposals: [proposal] });
  await cli.play([{ say: "Here it is:\n```json\n" }, { say: answer }, { say: "\n```" }]);
  expect(await dream()).toMatchObject({ status: "done", engine: "cli", memories_written: 1 });
  const [prompt] = (await cli.noted("prompt")) as string[];
  expect(prompt).toContain("In the place of a call of the tool propose_memories");
  expect(await cli.noted("session")).toMatchObject([{ mcpServers: [] }]);
  await cli.play([{ say: "I would rather not." }]);
  expect(await dream()).toMatchObject({ memories_written: 0, stats: { proposals: 0 } });
});
