import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runHere, type Outcome } from "../../src/cli/cli.test-kit.ts";
import { endsWithThisProcess } from "../../src/core/child-processes.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { StdioAgent } from "../api/mcp-stdio.test-kit.ts";
import { called } from "../api/mcp.test-kit.ts";
import { cleanEnv, startEngine, temporaryHome } from "../support/engine.ts";

/** `recall`, `remember`, `entity` and `distill` where no server was chosen: they ask the engine of the home. */
const PROGRAM = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));
let home = "";
let remove: () => Promise<void>;

beforeEach(async () => ({ home, remove } = await temporaryHome()));
afterEach(() => remove());

async function run(argv: readonly string[], input = "", env: Record<string, string> = {}): Promise<Outcome> {
  const child = endsWithThisProcess(
    spawn(process.execPath, [PROGRAM, ...argv], { env: { ...cleanEnv(), ENGINE_HOME: home, ...env } }),
  );
  const outcome: Outcome = { code: null, stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (outcome.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (outcome.stderr += text));
  child.stdin.end(input);
  await once(child, "close");
  return { ...outcome, code: child.exitCode };
}

async function jsonOf(argv: readonly string[], input = ""): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await run([...argv, "--json"], input);
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout) as Record<string, unknown>;
}

describe("where nobody listens", () => {
  test("each command opens the engine of the home, and closes it", async () => {
    const saved = await jsonOf(["remember", "The billing queue is called mauve"]);
    expect(saved).toMatchObject({ outcome: "created" });
    expect(readdirSync(home)).not.toContain("mcp.sock");
    const { id } = await jsonOf(["entity", "Ann", "--kind", "person", "--link", String(saved["id"])]);
    expect(await jsonOf(["distill", "--session", "s"], "User: we decided to ship")).toMatchObject({ firehose_rows: 1 });
    const { memories, entities } = await jsonOf(["recall", "what did Ann decide about the billing queue?"]);
    expect(memories).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ id: saved["id"] }),
        expect.objectContaining({ content: "we decided to ship" }),
      ]),
    );
    expect(entities).toMatchObject([{ id }]);
    const before = await jsonOf(["recall", "the billing queue", "--as-of", "2020-01-01T00:00:00Z"]);
    expect(before["memories"]).toEqual([]);
    const unknown = await jsonOf(["recall", "the billing queue", "--known-at", "2020-01-01T00:00:00Z"]);
    expect(unknown["memories"]).toEqual([]);
    const refused = await run(["recall", "x", "--as-of", "yesterday"]);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/^error: as_of: .*RFC 3339/)]);
  });

  test("two at the same time share one engine, and both are answered", async () => {
    const contents = ["the first thing", "the second thing", "the third thing"];
    const outcomes = await Promise.all(contents.map((content) => run(["remember", content])));
    for (const { code, stderr } of outcomes) expect([code, stderr]).toEqual([0, ""]);
    const { memories } = await jsonOf(["recall", "thing"]);
    expect(memories).toHaveLength(3);
  });

  test("what the engine refuses is told as a server would", async () => {
    const missing = await run(["recall", "x", "--db", "nowhere"]);
    expect([missing.code, missing.stdout]).toEqual([1, ""]);
    expect(missing.stderr).toMatch(/^error: [^\n]*nowhere[^\n]*\n$/);
    const long = await run(["remember", "x ".repeat(20_000)]);
    expect(long.code).toBe(1);
    expect(long.stderr).toMatch(/^error: content: [^\n]*\n$/);
  });

  test("an engine that cannot start is an error, not a wait", async () => {
    writeFileSync(join(home, "mcp.sock"), "no socket");
    const { code, stdout, stderr } = await run(["recall", "x"]);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("mcp.sock is no socket");
    const deep = { ENGINE_HOME: join(home, "d".repeat(120)) };
    const tooLong = await run(["recall", "x"], "", deep);
    expect(tooLong.code).toBe(2);
    expect(tooLong.stderr).toMatch(/^error: .* is too long for a socket/);
  });
});

test("an `engine mcp` that listens is asked, and stays", async () => {
  const agent = await StdioAgent.start(home);
  try {
    await eventually(() => agent.isEngine);
    await called(agent.client, "save_memory", { content: "said by the agent about pelicans" });
    expect((await jsonOf(["recall", "pelicans"]))["memories"]).toHaveLength(1);
    await jsonOf(["remember", "said by the command about pelicans"]);
    expect((await called(agent.client, "recall_memory", { query: "pelicans" }))["memories"]).toHaveLength(2);
    expect(agent.isEngine).toBe(true);
  } finally {
    await agent.close();
  }
});

test("a server of the home that asks for tokens answers at the socket; --db names its database", async () => {
  const engine = await startEngine({ home, env: { ENGINE_AUTH_TOKENS: "secret-of-the-test:admin" } });
  await jsonOf(["remember", "said beside the server"]);
  expect((await jsonOf(["recall", "beside the server"]))["memories"]).toHaveLength(1);
  const created = await fetch(`${engine.url}/v1/ingest`, {
    method: "POST",
    headers: {
      Authorization: "Bearer secret-of-the-test",
      "X-Database": "team",
      "X-Table": "t",
      "X-Auto-Create": "true",
      "Content-Type": "application/x-ndjson",
    },
    body: '{"a":1}\n',
  });
  expect(created.status).toBe(200);
  expect((await jsonOf(["recall", "beside the server", "--db", "team"]))["memories"]).toEqual([]);
  expect(await engine.stop()).toEqual({ code: 0, signal: null });
});

describe("a server that was chosen is asked, and the home is left alone", () => {
  const REFUSED = "http://127.0.0.1:9";

  test.for([
    ["--server", ["--server", REFUSED], {}],
    ["ENGINE_SERVER_URL", [], { ENGINE_SERVER_URL: REFUSED }],
    ["--token", ["--token", "t"], {}],
    ["ENGINE_TOKEN", [], { ENGINE_TOKEN: "t" }],
  ] as const)("by %s", async ([, flags, env]) => {
    const { code, stderr } = await runHere(["recall", "x", ...flags], { env: { ENGINE_HOME: home, ...env } });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: (no engine answers|the connection|what answers) /);
    expect(existsSync(join(home, "mcp.sock.lock"))).toBe(false);
  });

  test("by engine connect, whose file counts also when it is damaged", async () => {
    const env = { ENGINE_HOME: home };
    expect((await runHere(["connect", REFUSED], { env })).code).toBe(0);
    expect((await runHere(["recall", "x"], { env })).stderr).toContain(`no engine answers at ${REFUSED}`);
    writeFileSync(join(home, "client.json"), "{");
    chmodSync(join(home, "client.json"), 0o600);
    expect((await runHere(["recall", "x"], { env })).stderr).toContain("client.json is damaged");
    expect(existsSync(join(home, "mcp.sock.lock"))).toBe(false);
  });
});
