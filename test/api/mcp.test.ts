import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { called, callTool, mcpClient, refusedCall, type Era } from "./mcp.test-kit.ts";
import { CalledServices } from "./services.test-kit.ts";

type Who = "ann" | "reader" | "root" | "scoped";

let services: CalledServices<Who>;
const clients: Client[] = [];

beforeAll(async () => {
  services = await CalledServices.start<Who>([
    ["ann", "write"],
    ["reader", "read"],
    ["root", "admin"],
  ]);
  await services.json("root", "POST", "/v1/admin/databases/team/tables/t");
  await services.limit("scoped", "admin", ["team"], "root");
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await services.close();
});

async function clientOf(who: Who, era: Era = "2026-07-28", database?: string): Promise<Client> {
  const client = await mcpClient(services.url, {
    era,
    token: services.tokens.get(who),
    ...(database !== undefined && { database }),
  });
  clients.push(client);
  return client;
}

const READERS = (
  "recall_memory get_memory memory_overview list_tables describe_table query_sql query_kql " +
  "list_graphs graph_search graph_neighbors graph_subgraph list_skills read_skill ask"
).split(" ");
const WRITERS =
  "save_memory save_memories invalidate_memory forget_memory ingest_entity distill_transcript ingest_rows".split(" ");

describe.each<Era>(["legacy", "2026-07-28"])("the official client, %s", (era) => {
  test("is told the tools that its role allows, in less than 16 KiB", async () => {
    const { tools } = await (await clientOf("ann", era)).listTools();
    expect(tools.map(({ name }) => name)).toEqual([...READERS, ...WRITERS]);
    expect(Buffer.byteLength(JSON.stringify({ tools }))).toBeLessThan(16 * 1024);
    const byName = new Map(tools.map((tool) => [tool.name, tool]));
    expect(byName.get("query_sql")?.annotations).toEqual({ readOnlyHint: true, openWorldHint: false });
    expect(byName.get("forget_memory")?.annotations).toEqual({ destructiveHint: true, openWorldHint: false });
    expect(byName.get("save_memory")?.annotations).toMatchObject({ destructiveHint: false, idempotentHint: true });
    for (const { inputSchema, outputSchema, description } of tools) {
      expect([inputSchema.type, outputSchema?.["type"]]).toEqual(["object", "object"]);
      expect(description).toMatch(/\.$/);
    }
    const shown = await (await clientOf("reader", era)).listTools();
    expect(shown.tools.map(({ name }) => name)).toEqual(READERS);
  });

  test("remembers, recalls, corrects and forgets", async () => {
    const client = await clientOf("ann", era);
    const topic = { topic_key: `port-${era}`, realm: `project:${era}` };
    const saved = await called(client, "save_memory", { content: `The ${era} gateway listens on 8080`, ...topic });
    expect(saved).toEqual({ id: expect.any(String), outcome: "created" });
    const again = await called(client, "save_memory", { content: `The ${era} gateway listens on 9090`, ...topic });
    expect(again).toEqual({ id: saved["id"], outcome: "updated" });
    const found = await called(client, "recall_memory", { query: "gateway port?", realms: [topic.realm] });
    expect(found["memories"]).toMatchObject([
      {
        id: saved["id"],
        content: `The ${era} gateway listens on 9090`,
        memory_type: "fact",
        score: expect.any(Number),
      },
    ]);
    const { history } = await called(client, "get_memory", { id: saved["id"], history: true });
    expect(history).toHaveLength(2);
    const { memory } = await called(client, "invalidate_memory", { id: saved["id"], reason: "moved" });
    expect(memory).toMatchObject({ invalidated_at: expect.any(String), invalidation_reason: "moved" });
    expect(await called(client, "forget_memory", { id: saved["id"] })).toEqual({ erased: 1 });
    expect(await refusedCall(client, "get_memory", { id: saved["id"] })).toMatchObject({ code: "not_found" });
  });

  test("stores rows and queries them", async () => {
    const client = await clientOf("ann", era);
    const table = `events_${era.replaceAll("-", "_")}`;
    const rows = [
      { body: "one", n: 1 },
      { body: "two", n: 2 },
    ];
    const stored = await called(client, "ingest_rows", { table, rows, idempotency_key: "k" });
    expect(stored).toMatchObject({ rows_ingested: 2, replayed: false });
    expect(await called(client, "ingest_rows", { table, rows, idempotency_key: "k" })).toMatchObject({
      replayed: true,
    });
    const sql = `SELECT body, 9007199254740993 AS large FROM ${table} ORDER BY body LIMIT 1`;
    expect(await called(client, "query_sql", { query: sql })).toEqual({
      columns: ["body", "large"],
      rows: [["one", "9007199254740993"]],
      row_count: 1,
    });
    const kql = await called(client, "query_kql", { query: `${table} | summarize n = count()` });
    expect(kql).toEqual({ columns: ["n"], rows: [[2]], row_count: 1 });
    const cut = await called(client, "query_sql", { query: `SELECT body FROM ${table}`, limit: 1 });
    expect(cut).toMatchObject({ row_count: 2, truncated: true });
    const { tables } = await called(client, "list_tables", { database: "default" });
    expect(tables).toContainEqual({
      database: "default",
      table,
      columns: expect.stringContaining("at timestamp, label string, body string"),
    });
    expect(await called(client, "describe_table", { table })).toMatchObject({ table, row_count: 2 });
  });

  test("hears of mistakes in the words of the routes", async () => {
    const client = await clientOf("ann", era);
    expect(await refusedCall(client, "query_sql", { query: "SELECT nothing FROM nowhere" })).toMatchObject({
      code: "table_not_found",
      request_id: expect.any(String),
    });
    expect(await refusedCall(client, "query_sql", { query: 7 })).toMatchObject({
      code: "bad_request_body",
      message: expect.stringMatching(/^query: /),
    });
    expect(await refusedCall(client, "recall_memory", { query: "x", wrong: 1 })).toMatchObject({
      code: "bad_request_body",
      message: expect.stringContaining("wrong"),
    });
    await expect(callTool(client, "no_such_tool")).rejects.toMatchObject({ code: -32602 });
    const reader = await clientOf("reader", era);
    expect(await refusedCall(reader, "save_memory", { content: "not for readers" })).toMatchObject({
      code: "forbidden",
    });
  });
});

test("save_memories saves each on its own and says which were refused", async () => {
  const client = await clientOf("ann");
  const memories = [{ content: "Builds take two minutes" }, { content: "" }, { content: "Builds take two minutes" }];
  const { saved, refused } = await called(client, "save_memories", { memories });
  expect(saved).toMatchObject([
    { index: 0, outcome: "created" },
    { index: 2, outcome: "confirmed" },
  ]);
  expect(refused).toEqual([{ index: 1, code: "bad_request_body", message: "content: is empty" }]);
  const realms = [{ content: "Ann's own", realm: "user:somebody else" }];
  expect((await called(client, "save_memories", { memories: realms }))["refused"]).toMatchObject([
    { code: "forbidden" },
  ]);
});

test("ingest_entity is idempotent and links", async () => {
  const client = await clientOf("ann");
  const { id: target } = await called(client, "ingest_entity", { name: "Billing", kind: "service" });
  const entity = { name: "Ada", kind: "person", props: { team: "core" }, links: [{ node_id: target, rel: "owns" }] };
  const made = await called(client, "ingest_entity", entity);
  expect(made).toMatchObject({ outcome: "created", edges: [{ outcome: "created" }] });
  const again = await called(client, "ingest_entity", { ...entity, name: "ADA" });
  expect(again).toMatchObject({ id: made["id"], outcome: "confirmed", edges: [{ outcome: "confirmed" }] });
  const { edges } = await called(client, "recall_memory", { query: "Ada Billing" });
  expect(edges).toContainEqual({ src: made["id"], rel: "owns", dst: target, namespace: "memory" });
  // Nothing is made where a link leads nowhere.
  const lost = { name: "Nobody", kind: "person", links: [{ node_id: "nowhere" }] };
  expect(await refusedCall(client, "ingest_entity", lost)).toMatchObject({ code: "not_found" });
  const { entities } = await called(client, "recall_memory", { query: "Nobody" });
  expect(entities).toEqual([]);
});

test("distill_transcript keeps the conversation and what its user states, once", async () => {
  const client = await clientOf("ann", "2026-07-28", "team");
  const transcript = [
    "User: Please remember that deploys need the word heron. Its password=hunter2hunter",
    "Assistant: Remember that I am an assistant. We decided to sing.",
    "User: We decided to use Postgres for billing.",
  ].join("\n");
  const first = await called(client, "distill_transcript", { transcript, session_id: "s1" });
  expect(first).toMatchObject({ firehose_rows: 3, replayed: false });
  expect(first["saved"]).toEqual([
    {
      id: expect.any(String),
      outcome: "created",
      memory_type: "fact",
      content: "deploys need the word heron.",
      turn: 1,
      trust: "stated",
    },
    {
      id: expect.any(String),
      outcome: "created",
      memory_type: "decision",
      content: "We decided to use Postgres for billing.",
      turn: 3,
      trust: "stated",
    },
  ]);
  const second = await called(client, "distill_transcript", { transcript, session_id: "s1" });
  expect(second).toMatchObject({ replayed: true, saved: [{ outcome: "confirmed" }, { outcome: "confirmed" }] });
  const rows = await called(client, "query_sql", { query: "SELECT role, body FROM firehose ORDER BY turn LIMIT 1" });
  expect(rows["rows"]).toEqual([["user", "Please remember that deploys need the word heron. Its password=[masked]"]]);
  expect(await called(client, "memory_overview")).toMatchObject({ firehose_rows: 3, memories: 2 });
  expect(await refusedCall(client, "distill_transcript", {})).toMatchObject({ code: "bad_request_body" });
});

test("answers are at most 48 KiB of text, and say when they are cut", async () => {
  const client = await clientOf("ann");
  const many = await callTool(client, "query_sql", {
    query: "SELECT repeat('x', 100) AS x FROM range(1000)",
    limit: 1000,
  });
  expect(Buffer.byteLength(many.text)).toBeLessThanOrEqual(48 * 1024);
  expect(JSON.parse(many.text)).toEqual(many.structuredContent);
  expect(many.structuredContent).toMatchObject({ truncated: true, row_count: 1000 });
  const { rows } = JSON.parse(many.text) as { rows: unknown[] };
  expect(rows.length).toBeGreaterThan(400);
  const long = await callTool(client, "query_sql", { query: "SELECT repeat('é', 200000) AS x" });
  expect(Buffer.byteLength(long.text)).toBeLessThanOrEqual(48 * 1024);
  expect(long.structuredContent).toMatchObject({ truncated: true, rows: [[expect.stringMatching(/^é{8192}…$/)]] });
  const huge = await refusedCall(client, "query_sql", { query: "SELECT repeat('x', 3000000) AS x" });
  expect(huge).toMatchObject({ code: "invalid_query", message: expect.stringContaining("select fewer columns") });
  // Each control character takes six bytes.
  const content = `a${"\u0001".repeat(16_000)}b`;
  const { id } = await called(client, "save_memory", { content });
  const memory = await callTool(client, "get_memory", { id, history: true });
  expect(Buffer.byteLength(memory.text)).toBeLessThanOrEqual(48 * 1024);
  expect(memory.structuredContent).toMatchObject({ truncated: true, memory: { id } });
});

const PROTOCOL = { "Content-Type": "application/json", "MCP-Protocol-Version": "2025-11-25" };
const LIST = { jsonrpc: "2.0", id: 1, method: "tools/list" };
const post = (body: unknown, headers: Record<string, string> = {}, who: Who = "ann") =>
  services.send(who, "POST", "/mcp/v1", typeof body === "string" ? body : JSON.stringify(body), {
    ...PROTOCOL,
    ...headers,
  });

describe("who may ask", () => {
  test("needs a token, and 401 says of which kind", async () => {
    for (const method of ["GET", "POST"]) {
      const answer = await fetch(`${services.url}/mcp/v1`, { method, headers: PROTOCOL });
      expect(answer.status).toBe(401);
      expect(answer.headers.get("www-authenticate")).toBe('Bearer realm="engine"');
      expect(await answer.json()).toMatchObject({
        jsonrpc: "2.0",
        id: null,
        error: { data: { code: "unauthorized" } },
      });
    }
  });

  test("is nobody whose token is limited to databases", async () => {
    expect((await post(LIST, {}, "scoped")).status).toBe(403);
    expect((await services.send("scoped", "GET", "/mcp/v1")).status).toBe(403);
  });
});

describe("hostile requests", () => {
  test.each([
    ["what is no JSON", "{", 400, -32700],
    ["nothing", "", 400, -32600],
    ["a number", "7", 400, -32600],
    ["an empty batch", "[]", 400, -32600],
    ["a batch of too many", JSON.stringify(Array.from({ length: 33 }, () => LIST)), 400, -32600],
    [
      "a key that changes prototypes",
      '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"__proto__":{}}}',
      400,
      -32600,
    ],
    ["a message that is none", '{"hello":1}', 400, undefined],
  ])("%s is refused", async (_, body, status, code) => {
    const answer = await post(body);
    expect(answer.status).toBe(status);
    const { error } = (await answer.json()) as { error: { code: number } };
    expect(error.code).toBe(code ?? error.code);
    expect(error.code).toBeLessThan(0);
  });

  test("more than 4 MiB is not read", async () => {
    const answer = await post({ ...LIST, params: { x: "x".repeat(4 * 1024 * 1024) } });
    expect(answer.status).toBe(413);
  });

  test("another media type is refused, and so are methods of sessions", async () => {
    expect((await post(LIST, { "Content-Type": "text/plain" })).status).toBe(415);
    expect((await services.send("ann", "DELETE", "/mcp/v1")).status).toBe(405);
  });

  test("clients that take JSON alone, or say nothing, are answered", async () => {
    for (const headers of [{ Accept: "application/json" }, {}]) {
      const answer = await post(LIST, headers);
      expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
      expect(await answer.json()).toMatchObject({ id: 1, result: { tools: expect.any(Array) } });
    }
  });

  test("a batch is answered message by message", async () => {
    const call = (id: number, name: string) => ({
      jsonrpc: "2.0",
      id,
      method: "tools/call",
      params: { name, arguments: {} },
    });
    const answer = await post([call(1, "memory_overview"), call(2, "nothing")], {
      "MCP-Protocol-Version": "2025-03-26",
    });
    const replies = (await answer.json()) as { id: number; result?: unknown; error?: unknown }[];
    const byId = Object.fromEntries(replies.map((reply) => [reply.id, reply]));
    expect(byId).toMatchObject({ 1: { result: expect.any(Object) }, 2: { error: { code: -32602 } } });
  });

  test("a session id is no right to anything, and none is given", async () => {
    const answer = await post(LIST, { "Mcp-Session-Id": "stolen" });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("mcp-session-id")).toBeNull();
  });

  test("values of tools may not be anything", async () => {
    const client = await clientOf("ann");
    const refusals: [string, Record<string, unknown>][] = [
      ["get_memory", { id: "../../etc/passwd" }],
      ["list_tables", { database: "no such" }],
      ["describe_table", { table: "'; DROP TABLE x; --" }],
      ["ingest_rows", { table: "system", rows: [{ a: 1 }] }],
      ["ingest_rows", { table: "t", rows: [] }],
      ["ingest_rows", { table: "t", rows: Array.from({ length: 1001 }, () => ({})) }],
      ["ingest_rows", { table: "t", rows: [{ a: 1 }], idempotency_key: "a b" }],
      ["query_sql", { query: "SELECT * FROM read_text('/etc/passwd')" }],
      ["query_sql", { query: "DELETE FROM t" }],
      ["query_sql", { query: " " }],
      ["query_sql", { query: "SELECT 1", limit: 1001 }],
      ["save_memory", { content: "x".repeat(20_000) }],
      ["save_memory", { content: "x", memory_type: "opinion" }],
      ["save_memory", { content: "x", importance: 2 }],
      ["save_memory", { content: "x", realm: "user:reader" }],
      ["invalidate_memory", { id: "nothing", valid_to: "tomorrow" }],
    ];
    for (const [name, args] of refusals) {
      const { code, message } = await refusedCall(client, name, args);
      expect([name, code]).not.toContain("internal");
      expect(message).not.toMatch(/\/work|\/tmp|node_modules|at .*\.ts/);
    }
  });
});
