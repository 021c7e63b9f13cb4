import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";
import { called, callTool, refusedCall, type Era } from "./mcp.test-kit.ts";
import { StdioAgent, StdioProcess } from "./mcp-stdio.test-kit.ts";

/** `engine mcp`: several on one home, behind the official client. */
let home = "";
let remove: () => Promise<void>;
const agents: StdioAgent[] = [];

beforeEach(async () => ({ home, remove } = await temporaryHome()));
afterEach(async () => {
  await Promise.all(agents.splice(0).map((agent) => agent.close()));
  await remove();
});

async function start(era: Era = "2026-07-28", env: Record<string, string> = {}): Promise<StdioAgent> {
  const agent = await StdioAgent.start(home, era, env);
  agents.push(agent);
  return agent;
}

const request = (id: unknown, method: string, params: object = {}) => ({ jsonrpc: "2.0", id, method, params });
const call = (id: unknown, name: string, args: object) => request(id, "tools/call", { name, arguments: args });

describe.each<Era>(["legacy", "2026-07-28"])("an agent of the protocol %s", (era) => {
  test("has all tools, and nothing but the protocol on standard output", async () => {
    const { client, problems, log } = await start(era);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain("ingest_rows");
    const saved = await called(client, "save_memory", { content: "The gateway listens on 8080" });
    const { memories } = await called(client, "recall_memory", { query: "gateway port" });
    expect(memories).toMatchObject([{ id: saved["id"] }]);
    const rows = [{ a: 1 }, { a: 2 }];
    expect(await called(client, "ingest_rows", { table: "t", rows })).toMatchObject({ rows_ingested: 2 });
    expect(await called(client, "query_sql", { query: "SELECT count(*) AS c FROM t" })).toMatchObject({ row_count: 1 });
    expect(await refusedCall(client, "get_memory", { id: "nothing" })).toMatchObject({ code: expect.any(String) });
    await expect(callTool(client, "no töol = ?base64?")).rejects.toThrow("there is no tool");
    expect([problems, log.includes('"level":50')]).toEqual([[], false]);
  });

  test("goes on without a gap when the process that has the engine is killed", async () => {
    const first = await start(era);
    await eventually(() => first.isEngine);
    const second = await start(era);
    await called(first.client, "save_memory", { content: "said before the kill" });
    expect([first.isEngine, second.isEngine]).toEqual([true, false]);
    await called(second.client, "ingest_rows", { table: "t", rows: [{ n: -1 }] });
    const calls = Array.from({ length: 60 }, async (_, n) => {
      if (n % 3 === 0) return await called(second.client, "ingest_rows", { table: "t", rows: [{ n }] });
      if (n % 3 === 1) return await called(second.client, "save_memory", { content: `statement number ${n}` });
      return await called(second.client, "recall_memory", { query: "said before the kill" });
    });
    await Promise.race(calls);
    first.kill("SIGKILL");
    await Promise.all(calls);
    expect(second.isEngine).toBe(true);
    const sql = "SELECT count(*) AS c, count(DISTINCT n) AS d FROM t";
    expect(await called(second.client, "query_sql", { query: sql })).toMatchObject({ rows: [[21, 21]] });
    expect(await called(second.client, "memory_overview")).toMatchObject({ memories: 21 });
    const { memories } = await called(second.client, "recall_memory", { query: "said before the kill" });
    expect(memories).toContainEqual(expect.objectContaining({ content: "said before the kill" }));
    expect(second.problems).toEqual([]);
  });
});

describe("several processes on one home", () => {
  test("one has the engine at a time, whatever is killed, and nothing acknowledged is lost", async () => {
    let all: StdioAgent[] = await Promise.all([start(), start(), start()]);
    const acknowledged: string[] = [];
    for (let round = 0; round < 3; round++) {
      await eventually(() => all.some(({ isEngine }) => isEngine));
      const engines = all.filter(({ isEngine }) => isEngine);
      expect(engines).toHaveLength(1);
      const [engine] = engines;
      const others = all.filter((agent) => agent !== engine);
      const calls = others.flatMap(({ client }, i) =>
        Array.from({ length: 10 }, async (_, n) => {
          const content = `round ${round} agent ${i} says ${n}`;
          await called(client, "save_memory", { content });
          acknowledged.push(content);
        }),
      );
      await Promise.race(calls);
      engine?.kill("SIGKILL");
      await Promise.all(calls);
      all = [...others, await start()];
    }
    const client = all.at(-1)?.client;
    const query = "SELECT content FROM system.memory_nodes ORDER BY content";
    const { rows } = client === undefined ? { rows: [] } : await called(client, "query_sql", { query });
    expect(rows).toEqual(acknowledged.toSorted().map((content) => [content]));
    expect(acknowledged).toHaveLength(60);
  });

  test("the next takes over when the client of the first leaves", async () => {
    const first = await start();
    await eventually(() => first.isEngine);
    const second = await start();
    await called(first.client, "save_memory", { content: "handed over" });
    const calls = Array.from({ length: 20 }, () => called(second.client, "recall_memory", { query: "handed over" }));
    await first.close();
    for (const { memories } of await Promise.all(calls)) expect(memories).toHaveLength(1);
    await called(second.client, "recall_memory", { query: "handed over" });
    await eventually(() => second.isEngine);
    expect(readdirSync(home)).toContain("mcp.sock");
    await second.close();
    expect(readdirSync(home)).not.toContain("mcp.sock");
  });

  test("the socket is its user's alone, and one that was left is replaced", async () => {
    const first = await start();
    await eventually(() => first.isEngine);
    expect(statSync(join(home, "mcp.sock")).mode & 0o777).toBe(0o600);
    first.kill("SIGKILL");
    const second = await start();
    expect(await called(second.client, "memory_overview")).toMatchObject({ memories: 0 });
    expect(statSync(join(home, "mcp.sock")).mode & 0o777).toBe(0o600);
  });
});

test("beside engine serve it passes on, and takes over when that ends", async () => {
  const env = { ENGINE_AUTH_TOKENS: "secret-of-the-test:admin" };
  const engine = await startEngine({ home, env });
  const { client, isEngine, ...agent } = await start("2026-07-28", env);
  const { id } = await called(client, "save_memory", { content: "said over stdio" });
  expect(isEngine).toBe(false);
  const answer = await fetch(`${engine.url}/v1/agent/memory/nodes/${String(id)}`, {
    headers: { Authorization: "Bearer secret-of-the-test" },
  });
  expect(await answer.json()).toMatchObject({ content: "said over stdio" });
  const calls = Array.from({ length: 20 }, () => called(client, "get_memory", { id }));
  await Promise.race(calls);
  expect(await engine.stop()).toEqual({ code: 0, signal: null });
  for (const { memory } of await Promise.all(calls)) expect(memory).toMatchObject({ content: "said over stdio" });
  expect(await called(client, "get_memory", { id })).toMatchObject({ memory: { content: "said over stdio" } });
  expect(agents[0]?.isEngine).toBe(true);
  expect(agent.problems).toEqual([]);
});

describe("lines", () => {
  test("that are no requests are answered with errors, and the others as if they were not there", async () => {
    const agent = new StdioProcess(home);
    const deep = "[".repeat(100_000);
    agent.send("nonsense", deep, "null", '"text"', "[1]", request(null, "ping"), request({}, "ping"));
    agent.send({ jsonrpc: "2.0", id: 7, result: {} }, { jsonrpc: "2.0", method: "notifications/cancelled", params: 1 });
    agent.send(request("a\u001b\n", "ping"), request(0, "no/such"), request(1, "ping", { _meta: { __proto__: 1 } }));
    agent.send('{"jsonrpc":"1.0","id":9,"method":"ping"}', '{"id":10,"method":5}');
    expect(await agent.end()).toBe(0);
    const errors = agent.messages.filter(({ id }) => id === null);
    const codes = errors.map(({ error }) => (error as { code: number }).code).toSorted((a, b) => a - b);
    expect(codes).toEqual([-32_700, -32_700, -32_600, -32_600, -32_600, -32_600, -32_600]);
    const byId = new Map(agent.messages.map((message) => [message["id"], message]));
    expect(byId.get("a\u001b\n")).toMatchObject({ result: {} });
    expect(byId.get(0)).toMatchObject({ error: { code: -32_601 } });
    expect(byId.get(1)).toMatchObject({ result: {} });
    for (const id of [9, 10]) expect(byId.get(id)).toMatchObject({ error: { code: expect.any(Number) } });
    expect(byId.has(7)).toBe(false);
  });

  test("that ask are answered though the input ends at once, and one that is too long ends it", async () => {
    const agent = new StdioProcess(home);
    agent.send(call(1, "save_memory", { content: "in a hurry" }), call(2, "query_sql", { query: "SELECT 42 AS x" }));
    expect(await agent.end()).toBe(0);
    expect(new Set(agent.messages.map(({ id }) => id))).toEqual(new Set([1, 2]));
    expect(agent.messages).toHaveLength(2);
    const long = new StdioProcess(home);
    long.send("x".repeat(5 * 1024 * 1024));
    expect(await long.end()).toBe(1);
    expect([long.stdout, long.stderr]).toEqual(["", expect.stringContaining("error: a message on standard input")]);
  });

  test("that take a request back have it unanswered", async () => {
    const agent = new StdioProcess(home);
    agent.send(call(1, "query_sql", { query: "SELECT count(*) AS c FROM range(100000000000) a, range(1000000000) b" }));
    agent.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } }, request(2, "ping"));
    await eventually(() => agent.messages.some(({ id }) => id === 2));
    expect(await agent.end()).toBe(0);
    expect(agent.messages.map(({ id }) => id)).toEqual([2]);
  });
});

describe("where there can be no engine it says why, and ends", () => {
  test("a home whose path is too long for a socket", async () => {
    const agent = new StdioProcess(join(home, "x".repeat(120)));
    expect(await agent.end()).toBe(2);
    expect(agent.stderr).toContain("is too long for a socket: set ENGINE_HOME to a shorter one");
  });

  test("something else where the socket is to be", async () => {
    mkdirSync(join(home, "mcp.sock"));
    const agent = new StdioProcess(home);
    agent.send(request(1, "ping"));
    expect(await agent.end()).toBe(1);
    expect(agent.stderr).toContain("mcp.sock is no socket");
  });

  test("a catalog that is none", async () => {
    writeFileSync(join(home, "catalog.db"), "no catalog, and long enough to be told from one".repeat(50));
    const agent = new StdioProcess(home);
    agent.send(request(1, "ping"));
    expect(await agent.end()).toBe(1);
    expect(agent.stderr).toMatch(/error: .*catalog/);
    expect(agent.stdout === "" || agent.messages.every(({ error }) => error !== undefined)).toBe(true);
  });
});
