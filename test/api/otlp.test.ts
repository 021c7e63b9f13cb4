import { gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../src/core/waiting.test-kit.ts";
import { rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { installed, python } from "./otlp.test-kit.ts";

/** OTLP logs as clients send them: over gRPC and HTTP, by the official packages and by hand. */

let engine: Engine;
let grpc: string;
let remove: () => Promise<void>;

beforeAll(async () => {
  const place = await temporaryHome();
  remove = place.remove;
  const port = await freePort();
  grpc = `127.0.0.1:${port}`;
  engine = await startEngine({
    home: place.home,
    env: { ENGINE_OTLP_ADDR: grpc, ENGINE_OTLP_DATABASE: "telemetry", ENGINE_GRPC_ADDR: "off" },
  });
}, 120_000);
afterAll(async () => {
  await engine.stop();
  await remove();
});

const PROTOBUF = "application/x-protobuf";

function send(body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}): Promise<Response> {
  const type = typeof body === "string" ? "application/json" : PROTOBUF;
  return fetch(`${engine.url}/v1/logs`, { method: "POST", body, headers: { "Content-Type": type, ...headers } });
}

const logOf = (text: string) =>
  `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"severityText":${JSON.stringify(text)}}]}]}]}`;

async function count(where: string): Promise<number> {
  const [row] = await rowsOf(engine.url, `SELECT count(*) AS n FROM otel_logs WHERE ${where}`, "telemetry");
  return Number(row?.["n"]);
}

describe.skipIf(installed.status !== 0)("the official packages", { timeout: 120_000 }, () => {
  test.each(["grpc", "http"])("a program that logs over %s", async (protocol) => {
    await python(["session", protocol, protocol === "grpc" ? grpc : engine.url, ""]);
    const rows = await rowsOf(
      engine.url,
      "SELECT * FROM otel_logs WHERE service_name = 'checkout' ORDER BY otel_logs.at",
      "telemetry",
    );
    expect(rows.length).toBe(protocol === "grpc" ? 25 : 50);
    const at = (time: string) => rows.findLast((row) => row["at"] === time) ?? {};
    const { resource, ...first } = at("2026-01-02T03:04:05Z");
    expect(first).toMatchObject({
      at: "2026-01-02T03:04:05Z",
      label: "log",
      body: '{"cart":0,"items":[1,2.5,null,"x","AP8="]}',
      severity_number: 13,
      severity_text: "WARN",
      scope_name: "shop.cart",
      scope_version: "2.1",
      scope_schema_url: "https://example.com/schema",
      scope: { beta: true },
      attributes: { n: 0, ratio: 0.1, ok: true, tags: ["a", "b"] },
    });
    expect(resource).toMatchObject({ "service.name": "checkout", "host.cpus": 4, "telemetry.sdk.language": "python" });
    expect(at("2026-01-02T03:04:05.000000001Z")).toMatchObject({ label: "cart.changed", body: "cart 1" });
    const [big] = await rowsOf(
      engine.url,
      "SELECT attributes->>'big' AS big FROM otel_logs WHERE body = 'cart 7'",
      "telemetry",
    );
    expect(big).toEqual({ big: String(2n ** 62n + 7n) });
  });

  test.each(["grpc", "http"])("ten thousand records over %s, once with a key", async (protocol) => {
    const endpoint = protocol === "grpc" ? grpc : engine.url;
    const before = await count("service_name = 'bench'").catch(() => 0);
    for (let i = 0; i < 2; i++) {
      const answer = await python(["batch", protocol, endpoint, "10000", `key ${protocol}`.replace(" ", "-")]);
      expect(JSON.parse(answer.toString())).toEqual({ rejected: 0, message: "" });
    }
    expect(await count("service_name = 'bench'")).toBe(before + 10_000);
    const [row] = await rowsOf(
      engine.url,
      "SELECT * FROM otel_logs WHERE body = 'GET /api/items/9999 took 8 ms' LIMIT 1",
      "telemetry",
    );
    expect(row).toMatchObject({
      at: "2026-01-02T03:04:05.000009999Z",
      observed_at: "2026-01-02T03:04:05.000010999Z",
      trace_id: "0000000000000001000000000000270f",
      span_id: "000000000000270f",
      flags: 1,
      attributes: { "http.method": "GET", "http.status": 204, latency: 1249.875 },
    });
  });

  test("read a failure as a status with its details", async () => {
    const reason = { reason: "bad_request_body", code: 3, message: expect.stringContaining("not valid protobuf") };
    const overGrpc = JSON.parse((await python(["failure", "grpc", grpc, ""])).toString()) as unknown;
    expect(overGrpc).toEqual({ name: "INVALID_ARGUMENT", ...reason });
    const overHttp = JSON.parse((await python(["failure", "http", engine.url, ""])).toString()) as unknown;
    expect(overHttp).toEqual({ name: "400", ...reason });
  });
});

describe("over HTTP", () => {
  test("JSON, in any coding, is answered in JSON", async () => {
    const codings: [string, (bytes: Buffer) => Buffer][] = [
      ["gzip", gzipSync],
      ["zstd", zstdCompressSync],
    ];
    for (const [coding, pack] of codings) {
      const body = Uint8Array.from(pack(Buffer.from(logOf(coding))));
      const answer = await send(body, { "Content-Type": "application/json", "Content-Encoding": coding });
      expect([answer.status, answer.headers.get("content-type"), await answer.json()]).toEqual([
        200,
        "application/json",
        {},
      ]);
      expect(await count(`severity_text = '${coding}'`)).toBe(1);
    }
  });

  test("a request without records is fine, and stores nothing", async () => {
    for (const body of ["{}", Uint8Array.of()]) expect((await send(body)).status).toBe(200);
  });

  test("what cannot be kept is counted, and the rest is stored", async () => {
    const deep = `${'{"arrayValue":{"values":['.repeat(1_200)}${"]}}".repeat(1_200)}`;
    const records = `{"severityText":"kept"},{"body":${deep}},{"severityText":"kept"}`;
    const answer = await send(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[${records}]}]}]}`);
    expect(await answer.json()).toEqual({
      partialSuccess: {
        rejectedLogRecords: "1",
        errorMessage: "record 2 is not stored: its values are nested deeper than 1000 levels",
      },
    });
    expect(await count("severity_text = 'kept'")).toBe(2);
  });

  test("a key makes a retry exact", async () => {
    const headers = { "X-Idempotency-Key": "otlp-1" };
    for (let i = 0; i < 3; i++) expect((await send(logOf("keyed"), headers)).status).toBe(200);
    expect(await count("severity_text = 'keyed'")).toBe(1);
    const refused = await send(logOf("keyed"), { "X-Idempotency-Key": "two words" });
    expect([refused.status, await refused.json()]).toEqual([400, expect.objectContaining({ code: 3 })]);
  });

  test.each<[string, string | Uint8Array<ArrayBuffer>, Record<string, string>, number, number]>([
    ["no JSON", "{", {}, 400, 3],
    ["an id that is no hex", '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"xy"}]}]}]}', {}, 400, 3],
    ["no protobuf", Uint8Array.of(255), {}, 400, 3],
    ["a body that is no gzip", Uint8Array.of(1, 2, 3), { "Content-Encoding": "gzip" }, 400, 3],
    ["another type", "x", { "Content-Type": "text/plain" }, 415, 3],
    ["too much", new Uint8Array(64 * 1024 * 1024 + 1), {}, 413, 8],
  ])("%s is refused with a status in the encoding of the request", async (_name, body, headers, status, code) => {
    const before = await count("true");
    const answer = await send(body, headers);
    const isJson = typeof body === "string" && headers["Content-Type"] === undefined;
    expect(answer.status).toBe(status);
    expect(answer.headers.get("content-type")).toBe(isJson ? "application/json" : PROTOBUF);
    const said = Buffer.from(await answer.arrayBuffer());
    // The code is the first field of a Status in protobuf, too.
    const start = isJson ? `{"code":${code},` : String.fromCharCode(8, code);
    expect(said.toString("latin1").startsWith(start)).toBe(true);
    expect(await count("true")).toBe(before);
  });
});
