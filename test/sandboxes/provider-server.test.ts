import { connect } from "node:net";
import { afterEach, expect, it } from "vitest";
import type { ModelStep } from "./provider-formats.ts";
import { ProviderServer } from "./provider-server.ts";

const STEPS: readonly ModelStep[] = [{ tool: "write", input: { path: "a" } }, { text: "Done." }];

const servers: ProviderServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function begin(): Promise<{ server: ProviderServer; post: (path: string, body: unknown) => Promise<string> }> {
  const server = await new ProviderServer({ steps: STEPS }).start();
  servers.push(server);
  const post = async (path: string, body: unknown) => {
    const request = { method: "POST", body: JSON.stringify(body), headers: { "x-api-key": "k" } };
    return await (await fetch(`http://127.0.0.1:${server.port}/base${path}`, request)).text();
  };
  return { server, post };
}

/** The same conversation in each format: a question, and then the result of the tool. */
const CONVERSATIONS = [
  {
    path: "/v1/messages",
    first: { stream: true, tools: [{ name: "write" }], messages: [] },
    second: { stream: true, tools: [{ name: "write" }], messages: [{ content: [{ type: "tool_result" }] }] },
    asks: '"partial_json":"{\\"path\\":\\"a\\"}"',
    ends: "event: message_stop",
  },
  {
    path: "/v1/responses",
    first: { stream: true, tools: [{ name: "write" }], input: [] },
    second: { stream: true, tools: [{ name: "write" }], input: [{ type: "function_call_output" }] },
    asks: '"type":"function_call","arguments":"{\\"path\\":\\"a\\"}"',
    ends: "event: response.completed",
  },
  {
    path: "/v1beta/models/m:streamGenerateContent?alt=sse",
    first: { tools: [{ functionDeclarations: [{ name: "write" }] }], contents: [] },
    second: {
      tools: [{ functionDeclarations: [{ name: "write" }] }],
      contents: [{ parts: [{ functionResponse: {} }] }],
    },
    asks: '"name":"write","args":{"path":"a"}',
    ends: '"finishReason":"STOP"',
  },
];

it("asks for a tool, and then has its say, in the format of each provider", async () => {
  for (const { path, first, second, asks, ends } of CONVERSATIONS) {
    const { server, post } = await begin();
    const asked = await post(path, first);
    expect(asked).toContain(asks);
    expect(asked).toContain(ends);
    expect(await post(path, second)).toContain("Done.");
    expect(server.requests.map(({ tools, headers }) => [tools, headers["x-api-key"]])).toEqual([
      [["write"], "k"],
      [["write"], "k"],
    ]);
  }
});

it("answers at once, and with a text where no tools are offered", async () => {
  const { post } = await begin();
  expect(JSON.parse(await post("/v1/messages", { messages: [] }))).toMatchObject({
    content: [{ type: "text", text: "A title" }],
    stop_reason: "end_turn",
  });
  const format = { type: "json_schema" };
  expect(await post("/v1/responses", { tools: [{ name: "write" }], text: { format } })).toContain("A title");
  expect(await post("/v1beta/models/m:generateContent", {})).toContain("A title");
});

it("upgrades no connection", async () => {
  const { server } = await begin();
  const socket = connect(server.port, "127.0.0.1");
  socket.write("GET /v1/responses HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  let answer = "";
  for await (const piece of socket.setEncoding("latin1")) answer += String(piece);
  expect(answer).toMatch(/^HTTP\/1\.1 426 /);
  expect(server.requests).toHaveLength(1);
});
