import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { FailureLimit } from "../../src/auth/failure-limit.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { createLog } from "../../src/core/log.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import { systemRandom } from "../../src/core/random.ts";
import { uwsProblem } from "../../src/io/http/http.test-kit.ts";
import { serveApp } from "../../src/server/app.test-kit.ts";
import { QUIET, startEdge, startRawPeer, stopAll } from "./edge.test-kit.ts";
import { healthRoute } from "../../src/server/service.ts";
import { bindRoute, plainRoute, jsonResponse, type Route } from "../../src/server/route.ts";

afterEach(() => stopAll());

type Line = { level: number; msg: string; [field: string]: unknown };

function keptLog() {
  const text: string[] = [];
  const log = createLog("info", { write: (line: string) => void text.push(line) });
  const answered = () => text.map((line) => JSON.parse(line) as Line).filter(({ msg }) => msg === "answered");
  return { log, answered, text };
}

async function* pieces(count: number, fails: boolean): AsyncGenerator<Uint8Array> {
  for (let i = 0; i < count; i++) yield await Promise.resolve(Buffer.alloc(1_000, "x"));
  if (fails) throw new Error("broken off");
}

async function* endless(): AsyncGenerator<Uint8Array> {
  for (;;) {
    await sleep(systemClock, 5);
    yield Buffer.alloc(10, "x");
  }
}

function row(path: string, body: () => NonNullable<Awaited<ReturnType<Route["handle"]>>["body"]>): Route {
  return plainRoute({
    method: "GET",
    path,
    role: "read",
    tag: "t",
    summary: "s",
    responses: [{ status: 200, description: "d" }],
    errors: [],
    handle: () => Promise.resolve({ status: 200, headers: {}, body: body() }),
  });
}

async function serve(driver: "node" | "uws") {
  const kept = keptLog();
  const metrics = createMetrics();
  const ports = { clock: systemClock, random: systemRandom, log: kept.log, metrics };
  const authenticator = createAuthenticator({ isOn: false, backends: [], failures: new FailureLimit(ports) });
  const routes = [
    row("/things/{id}", () => "ä"),
    row("/stream", () => pieces(5, false)),
    row("/breaks", () => pieces(2, true)),
    row("/endless", () => endless()),
    bindRoute(healthRoute, { metrics, authenticator, version: "1.2.3", isDraining: () => false }),
    plainRoute({
      method: "POST",
      path: "/things",
      role: "read",
      tag: "t",
      summary: "s",
      responses: [{ status: 201, description: "d", type: "application/json" }],
      errors: [],
      handle: () => Promise.resolve(jsonResponse(201, { ok: true })),
    }),
  ];
  const newId = uuidV7Source(systemClock, systemRandom);
  const server = await serveApp({ ...ports, routes, authenticator, newId }, driver);
  onTestFinished(() => server.close());
  return { ...kept, url: server.url };
}

const DRIVERS = uwsProblem === undefined ? (["node", "uws"] as const) : (["node"] as const);

describe.each(DRIVERS)("each request on %s", (driver) => {
  test("is a line with its route, and nothing that only its sender should know", async () => {
    const { url, answered, text } = await serve(driver);
    const headers = { "X-Request-ID": "r-1", Authorization: "Bearer hunter2", Cookie: "c=hunter2" };
    await (await fetch(`${url}/things/hunter2?token=hunter2`, { headers })).text();
    await (await fetch(`${url}/hunter2?q=hunter2`)).text();
    await (await fetch(`${url}/things`, { method: "POST", body: "hunter2" })).text();
    await (await fetch(`${url}/things/hunter2`, { method: "DELETE" })).text();
    await expect.poll(() => answered().length).toBe(4);
    const lines = answered();
    expect(lines.map(({ method, route, status, level }) => [method, route, status, level])).toEqual([
      ["GET", "/things/{id}", 200, 30],
      ["GET", "unmatched", 404, 30],
      ["POST", "/things", 201, 30],
      ["DELETE", "unmatched", 405, 30],
    ]);
    expect(lines[0]).toMatchObject({ bytes: 2, requestId: "r-1", durationMs: expect.any(Number) as number });
    expect(lines[2]?.["bytes"]).toBe('{"ok":true}'.length);
    expect(text.join("")).not.toContain("hunter2");
  });

  test("that is answered by a stream is logged at its end, with the bytes that went out", async () => {
    const { url, answered } = await serve(driver);
    await (await fetch(`${url}/stream`)).text();
    await expect.poll(() => answered().at(-1)).toMatchObject({ route: "/stream", bytes: 5_000, status: 200 });
    await expect(fetch(`${url}/breaks`).then((response) => response.text())).rejects.toThrow(/terminated|fetch failed/);
    await expect.poll(() => answered().at(-1)).toMatchObject({ route: "/breaks", bytes: 2_000 });
    const abort = new AbortController();
    const response = await fetch(`${url}/endless`, { signal: abort.signal });
    await response.body?.getReader().read();
    expect(answered()).toHaveLength(2);
    abort.abort();
    await expect.poll(() => answered().at(-1)).toMatchObject({ route: "/endless" });
    expect(answered()).toHaveLength(3);
  });

  test("about health is none", async () => {
    const { url, answered } = await serve(driver);
    await (await fetch(`${url}/health`)).text();
    await (await fetch(`${url}/things/1`)).text();
    await expect.poll(() => answered().map(({ route }) => route)).toEqual(["/things/{id}"]);
  });

  test("through an edge is one, of the same id as the peer's", async () => {
    let id: unknown;
    const peer = await startRawPeer((request, response) => {
      id = request.headers["x-request-id"];
      request.resume().on("end", () => response.end("12345"));
    });
    const kept = keptLog();
    const edge = await startEdge({ driver, query: [peer.url], ingest: [peer.url], times: QUIET, log: kept.log });
    await (await fetch(`${edge.url}/v1/query`, { method: "POST", body: "SELECT 'hunter2'" })).text();
    await expect.poll(() => kept.answered().length).toBe(1);
    expect(kept.answered()[0]).toMatchObject({
      method: "POST",
      route: "/v1/query",
      status: 200,
      bytes: 5,
      requestId: id,
    });
    expect(kept.text.join("")).not.toContain("hunter2");
  });
});
