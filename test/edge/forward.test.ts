import { randomBytes } from "node:crypto";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { afterEach, describe, expect, test } from "vitest";
import { uwsProblem } from "../../src/io/http/http.test-kit.ts";
import { ask, metric, MIB, QUIET, startEdge, startPeer, stopAll } from "./edge.test-kit.ts";

afterEach(stopAll);

const DRIVERS = uwsProblem === undefined ? (["node", "uws"] as const) : (["node"] as const);

describe.each(DRIVERS)("an edge on %s", (driver) => {
  test("forwards each group of routes to its own peers", async () => {
    const [query, ingest] = [await startPeer(), await startPeer()];
    const edge = await startEdge({ driver, query: [query.url], ingest: [ingest.url], times: QUIET });
    await ask(`${edge.url}/v1/query`, { body: "SELECT 1" });
    await ask(`${edge.url}/v1/catalog/schema?x=%C3%A9&y`, { method: "GET" });
    await ask(`${edge.url}/v1/ingest`, { headers: { "x-table": "t" }, body: "{}" });
    await ask(`${edge.url}/v1/admin/databases/d/tables/t`, { method: "POST" });
    await ask(`${edge.url}/v1/admin/databases/d%20e/tables/t`, { method: "GET" });
    await ask(`${edge.url}/v1/database/d/table/t/cleanup?before=now`);
    const lines = (seen: typeof query.seen) => seen.map((one) => `${one.method} ${one.url} ${one.body.toString()}`);
    expect(lines(query.seen)).toEqual(["POST /v1/query SELECT 1", "GET /v1/catalog/schema?x=%C3%A9&y "]);
    expect(lines(ingest.seen)).toEqual([
      "POST /v1/ingest {}",
      "POST /v1/admin/databases/d/tables/t ",
      "GET /v1/admin/databases/d%20e/tables/t ",
      "POST /v1/database/d/table/t/cleanup?before=now ",
    ]);
  });

  test("answers by itself what is about itself", async () => {
    const peer = await startPeer();
    const edge = await startEdge({ driver, query: [peer.url], ingest: [peer.url], times: QUIET });
    const health = await ask(`${edge.url}/health`, { method: "GET" });
    expect(JSON.parse(health.body.toString())).toEqual({ status: "ok", version: "1.2.3" });
    expect((await ask(`${edge.url}/metrics`, { method: "GET" })).body.toString()).toContain("engine_edge_in_flight");
    expect((await ask(`${edge.url}/v1/openapi.json`, { method: "GET" })).body.toString()).toContain("/v1/ingest");
    expect((await ask(`${edge.url}/v1/nothing`)).status).toBe(404);
    expect((await ask(`${edge.url}/v1/ingest`, { method: "PUT" })).status).toBe(405);
    expect(peer.begun).toBe(0);
  });

  const big = randomBytes(5 * MIB + 17);
  test.each([
    ["empty", Buffer.alloc(0), {}],
    ["small", Buffer.from('{"body":"é"}\n'), {}],
    ["large", big, {}],
    ["gzip", gzipSync(big), { "content-encoding": "gzip" }],
    ["zstd", zstdCompressSync(big), { "content-encoding": "zstd" }],
    ["chunked", big, { "transfer-encoding": "chunked" }],
  ])("passes a body byte for byte both ways: %s", async (_name, body, headers) => {
    const peer = await startPeer((seen, response) => {
      response.writeHead(200, { "content-encoding": "x-mine", "content-type": "application/x-ndjson" }).end(seen.body);
    });
    const edge = await startEdge({ driver, ingest: [peer.url], query: [peer.url], times: QUIET });
    const answer = await ask(`${edge.url}/v1/ingest`, { headers: { "x-table": "t", ...headers }, body });
    expect(peer.seen[0]?.body.equals(body)).toBe(true);
    expect(peer.seen[0]?.headers["content-encoding"]).toBe((headers as Record<string, string>)["content-encoding"]);
    const length = "transfer-encoding" in headers ? undefined : String(body.length);
    expect(peer.seen[0]?.headers["content-length"]).toBe(length);
    expect([answer.status, answer.complete, answer.body.equals(body)]).toEqual([200, true, true]);
    expect(answer.headers["content-encoding"]).toBe("x-mine");
  });

  test("passes headers on, and makes those of an intermediary", async () => {
    const peer = await startPeer();
    const edge = await startEdge({ driver, ingest: [peer.url], times: QUIET });
    const passed = {
      "x-table": "täble",
      "x-database": "d",
      "x-idempotency-key": "k",
      "x-auto-create": "false",
      authorization: "Bearer secret",
      "x-of-nobody-known": "a, b",
      "content-type": "application/x-ndjson",
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "x-forwarded-for": "192.0.2.1",
    };
    const own = { connection: "keep-alive, x-real-ip", "x-real-ip": "192.0.2.9", te: "trailers" };
    const latin1 = { ...passed, "x-table": Buffer.from("täble").toString("latin1") };
    await ask(`${edge.url}/v1/ingest`, { headers: { ...latin1, ...own }, body: "{}" });
    const headers = peer.seen[0]?.headers ?? {};
    expect({ ...headers, "x-table": Buffer.from(headers["x-table"] as string, "latin1").toString() }).toMatchObject({
      ...passed,
      "x-forwarded-for": "192.0.2.1, 127.0.0.1",
      "x-forwarded-host": `127.0.0.1:${edge.port}`,
      "x-forwarded-proto": "http",
      host: `127.0.0.1:${peer.port}`,
    });
    await ask(`${edge.url}/v1/ingest`, { headers: { "x-table": "t", expect: "100-continue" }, body: "{}" });
    for (const name of ["te", "x-real-ip"]) expect(headers[name]).toBeUndefined();
    expect(peer.seen[1]?.headers["expect"]).toBeUndefined();
    expect(headers["via"]).toMatch(/^1\.1 engine-[0-9a-f-]{36}$/);
  });

  test("X-Request-ID is the client's, else made here, and the same on both sides", async () => {
    const peer = await startPeer((_seen, response) => void response.writeHead(200, { "x-request-id": "peer's" }).end());
    const edge = await startEdge({ driver, query: [peer.url], times: QUIET });
    const mine = await ask(`${edge.url}/v1/query`, { headers: { "x-request-id": "mine-1" }, body: "q" });
    const none = await ask(`${edge.url}/v1/query`, { body: "q" });
    expect(mine.headers["x-request-id"]).toBe("mine-1");
    expect(none.headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
    const sent = peer.seen.map(({ headers }) => headers["x-request-id"]);
    expect(sent).toEqual(["mine-1", none.headers["x-request-id"]]);
  });

  test("answers pass unchanged, whatever their status", async () => {
    const replies: [number, Record<string, string | string[]>][] = [
      [400, {}],
      [429, { "Retry-After": "7", "X-Engine-Budget-Limit": "wall_clock_ms=5" }],
      [500, {}],
      [503, { "Retry-After": "3" }],
      [507, { Link: ["<a>", "<b>"] }],
    ];
    const peer = await startPeer((seen, response) => {
      const [status, headers] = replies[Number(seen.body.toString())] ?? [200, {}];
      response.writeHead(status, headers).end(`body of ${status}`);
    });
    const edge = await startEdge({ driver, query: [peer.url], times: QUIET });
    for (const [i, [status, headers]] of replies.entries()) {
      const answer = await ask(`${edge.url}/v1/query`, { body: String(i) });
      expect([answer.status, answer.body.toString()]).toEqual([status, `body of ${status}`]);
      for (const [name, value] of Object.entries(headers)) {
        expect(answer.headers[name.toLowerCase()]).toBe([value].flat().join(", "));
      }
    }
    expect(await metric(edge.metrics, "engine_edge_requests_total", { outcome: "answered" })).toBe(replies.length);
    expect(await metric(edge.metrics, "engine_edge_retries_total")).toBe(0);
    expect(edge.failures).toEqual([]);
  });

  test("who may read an answer is said by the edge alone", async () => {
    const peer = await startPeer(
      (_seen, response) => void response.writeHead(200, { "access-control-allow-origin": "*" }).end(),
    );
    const edge = await startEdge({ driver, query: [peer.url], times: QUIET, origins: ["https://a.example"] });
    const answer = await ask(`${edge.url}/v1/query`, { headers: { origin: "https://a.example" }, body: "q" });
    expect(answer.headers["access-control-allow-origin"]).toBe("https://a.example");
    const other = await ask(`${edge.url}/v1/query`, { headers: { origin: "https://b.example" }, body: "q" });
    expect(other.headers["access-control-allow-origin"]).toBeUndefined();
  });

  test("an answer has the length that the peer says, or is in chunks as the peer's", async () => {
    const peer = await startPeer((seen, response) => {
      if (seen.url === "/v1/query") response.setHeader("content-length", "6");
      response.write("abc");
      response.end("def");
    });
    const edge = await startEdge({ driver, query: [peer.url], ingest: [peer.url], times: QUIET });
    const known = await ask(`${edge.url}/v1/query`, { body: "q" });
    expect([known.body.toString(), known.headers["content-length"]]).toEqual(["abcdef", "6"]);
    expect(known.headers["transfer-encoding"]).toBeUndefined();
    const unknown = await ask(`${edge.url}/v1/ingest`, { body: "{}" });
    expect([unknown.body.toString(), unknown.headers["content-length"]]).toEqual(["abcdef", undefined]);
    expect(unknown.headers["transfer-encoding"]).toBe("chunked");
  });

  test("HEAD is forwarded as such", async () => {
    const peer = await startPeer((_seen, response) => void response.writeHead(200, { "content-length": "11" }).end());
    const edge = await startEdge({ driver, query: [peer.url], times: QUIET });
    const answer = await ask(`${edge.url}/v1/catalog/schema`, { method: "HEAD" });
    expect([answer.status, answer.headers["content-length"], answer.body.length]).toEqual([200, "11", 0]);
    expect(peer.seen[0]?.method).toBe("HEAD");
  });

  test("an edge that leads to itself says so instead of going round", async () => {
    const peer = await startPeer();
    const edge = await startEdge({ driver, query: [peer.url], times: QUIET });
    await ask(`${edge.url}/v1/query`, { headers: { via: "1.0 other" }, body: "q" });
    const via = peer.seen[0]?.headers["via"] ?? "";
    expect(via).toMatch(/^1\.0 other, 1\.1 engine-/);
    const again = await ask(`${edge.url}/v1/query`, { headers: { via: `${via}, 1.1 further` }, body: "q" });
    expect([again.status, again.body.toString()]).toEqual([503, expect.stringContaining("came back to this edge")]);
    expect(peer.begun).toBe(1);
  });
});
