import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openToAll } from "../../auth/access.test-kit.ts";
import type { Caller } from "../../auth/caller.ts";
import { ManualClock, systemClock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { silentLog } from "../../core/log.ts";
import { createMetrics } from "../../core/metrics.ts";
import { systemRandom } from "../../core/random.ts";
import { eventually } from "../../core/waiting.test-kit.ts";
import { localSignals, type Signals } from "../../db/signals.ts";
import { serveApp } from "../../server/app.test-kit.ts";
import { bindRoute } from "../../server/route.ts";
import type { McpDeps } from "./deps.ts";
import { McpHttp } from "./http.ts";
import { MCP_LIMITS } from "./limits.ts";
import { ListChanges } from "./list-changes.ts";
import { MCP_ROUTES } from "./routes/mcp.ts";

const TOPIC = "mcp_tools";
const CHANGED = { jsonrpc: "2.0", method: "notifications/tools/list_changed" };

describe("a node of another version that starts", () => {
  let signals: Signals;
  let mcp: McpHttp;
  let served: Awaited<ReturnType<typeof serveApp>>;
  beforeEach(async () => {
    signals = localSignals();
    const [clock, log, metrics] = [systemClock, silentLog, createMetrics()];
    const newId = uuidV7Source(clock, systemRandom);
    // No tool is called.
    mcp = new McpHttp({ signals, clock, log, metrics } as McpDeps);
    const routes = MCP_ROUTES.map((route) => bindRoute(route, { mcp }));
    served = await serveApp({ routes, authenticator: openToAll(), clock, newId, log, metrics });
  });
  afterEach(async () => {
    mcp.close();
    await served.close();
  });

  test("is told of on a GET, this version is not, and the stream ends when the server drains", async () => {
    const answer = await fetch(`${served.url}/mcp/v1`, { headers: { Accept: "text/event-stream" } });
    expect(answer.headers.get("content-type")).toMatch(/^text\/event-stream/);
    await mcp.announce();
    await signals.send(TOPIC, "another version");
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes("data:")) text += (await reader?.read())?.value ?? "";
    mcp.endStreams();
    for (let step = await reader?.read(); step?.done === false; step = await reader?.read()) text += step.value;
    const events = Array.from(text.matchAll(/^data: (.*)$/gm), ([, data = ""]) => JSON.parse(data) as unknown);
    expect(events).toEqual([CHANGED]);
    expect((await fetch(`${served.url}/mcp/v1`)).status).toBe(503);
  });

  test.each([["legacy"] as const, [{ pin: "2026-07-28" }] as const])(
    "reaches the official client, %o",
    async (mode) => {
      let heard = 0;
      const client = new Client(
        { name: "test", version: "1" },
        {
          versionNegotiation: { mode },
          listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => void heard++ } },
        },
      );
      await client.connect(new StreamableHTTPClientTransport(new URL(`${served.url}/mcp/v1`)));
      // The stream opens by itself, a moment after the client is connected.
      await eventually(async () => {
        await signals.send(TOPIC, "another version");
        return heard > 0;
      });
      await client.close();
    },
  );
});

test("a page of another origin may not ask while nobody needs a token", async () => {
  const [clock, log, metrics] = [systemClock, silentLog, createMetrics()];
  const mcp = new McpHttp({ signals: localSignals(), clock, log, metrics } as McpDeps);
  const routes = MCP_ROUTES.map((route) => bindRoute(route, { mcp }));
  const newId = uuidV7Source(clock, systemRandom);
  const { url, close } = await serveApp({ routes, authenticator: openToAll(), clock, newId, log, metrics });
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  const post = (origin: string) =>
    fetch(`${url}/mcp/v1`, { method: "POST", headers: { "Content-Type": "application/json", Origin: origin }, body });
  expect((await post("http://evil.example")).status).toBe(403);
  expect((await post(url)).status).toBe(200);
  const stream = await fetch(`${url}/mcp/v1`, { headers: { Origin: "http://evil.example" } });
  expect(stream.status).toBe(403);
  mcp.close();
  await close();
});

const ANN: Caller = { subject: "ann", kind: "session", role: "read", databases: undefined };

function changesOn(clock: ManualClock): ListChanges {
  return new ListChanges({ signals: localSignals(), clock, log: silentLog });
}

test("another role of the reader is a change, and a token that is not good any more ends the stream", async () => {
  const clock = new ManualClock();
  const changes = changesOn(clock);
  let now: Caller | EngineError = ANN;
  const authenticateAgain = async () => {
    if (now instanceof EngineError) throw now;
    return now;
  };
  const stream = changes.open({ caller: ANN, authenticateAgain });
  const next = stream.next();
  now = { ...ANN, role: "write" };
  clock.advance(30_000);
  expect(await next).toEqual({ done: false, value: { data: CHANGED } });
  // A catalog that is away says nothing about a token.
  now = new EngineError("unavailable", "the catalog is away");
  clock.advance(30_000);
  await Promise.resolve();
  now = new EngineError("unauthorized", "the token is not valid");
  const last = stream.next();
  await eventually(() => {
    clock.advance(30_000);
    return stream.ended.aborted;
  });
  expect(await last).toEqual({ done: true, value: undefined });
  expect(changes.count).toBe(0);
});

test("one caller has a share of the streams, and leaving makes room", async () => {
  const changes = changesOn(new ManualClock());
  const open = (subject: string) => changes.open({ caller: { ...ANN, subject }, authenticateAgain: async () => ANN });
  const own = Array.from({ length: MCP_LIMITS.streamsPerCaller }, () => open("ann"));
  expect(() => open("ann")).toThrow(expect.objectContaining({ code: "too_many_requests" }));
  open("bob");
  await own[0]?.return();
  open("ann");
  expect(changes.count).toBe(MCP_LIMITS.streamsPerCaller + 1);
});
