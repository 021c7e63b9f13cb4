import { connect } from "node:http2";
import { afterAll, beforeAll, expect, test } from "vitest";
import { status as STATUS } from "@grpc/grpc-js";
import { freePort } from "../../src/core/waiting.test-kit.ts";
import { member, len, request, text } from "../../src/format/otlp/wire.test-kit.ts";
import { failureOfCall, rawClient, type RawClient } from "../../src/io/grpc/grpc-client.test-kit.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** Who may send logs, and what is said to those who send too many. */
const EXPORT = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
const [READER, WRITER] = ["a-token-that-reads", "a-token-that-writes"];
const BODY = request(Buffer.concat([len(5, text("x")), len(6, member("k", text("v")))]));

let engine: Engine;
let port: number;
let client: RawClient;
let remove: () => Promise<void>;

beforeAll(async () => {
  const place = await temporaryHome();
  remove = place.remove;
  port = await freePort();
  engine = await startEngine({
    home: place.home,
    env: {
      ENGINE_OTLP_ADDR: `127.0.0.1:${port}`,
      ENGINE_AUTH_TOKENS: `${READER}:read,${WRITER}:write`,
      ENGINE_INGEST_RATE_RPS: "1",
      ENGINE_INGEST_RATE_BURST: "1",
      ENGINE_GRPC_ADDR: "off",
    },
  });
  client = rawClient(`127.0.0.1:${port}`);
}, 120_000);
afterAll(async () => {
  client.close();
  await engine.stop();
  await remove();
});

function send(token: string | undefined, message: Uint8Array = BODY, more: Record<string, string> = {}) {
  const metadata = { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...more };
  return client.unary(EXPORT, message, { metadata, deadlineMs: 60_000 });
}

function post(token: string | undefined): Promise<Response> {
  const headers = { "Content-Type": "application/x-protobuf", ...(token && { Authorization: `Bearer ${token}` }) };
  return fetch(`${engine.url}/v1/logs`, { method: "POST", headers, body: Uint8Array.from(BODY) });
}

test("a token of the role write is asked for on both ways", async () => {
  expect((await failureOfCall(send(undefined))).code).toBe(STATUS.UNAUTHENTICATED);
  expect((await failureOfCall(send("wrong"))).code).toBe(STATUS.UNAUTHENTICATED);
  expect((await failureOfCall(send(READER))).code).toBe(STATUS.PERMISSION_DENIED);
  const anonymous = await post(undefined);
  expect([anonymous.status, anonymous.headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="engine"']);
  expect([...new Uint8Array(await anonymous.arrayBuffer()).subarray(0, 2)]).toEqual([8, STATUS.UNAUTHENTICATED]);
  expect((await post(READER)).status).toBe(403);
  expect((await failureOfCall(send(WRITER, BODY, { "x-idempotency-key": "two words" }))).code).toBe(
    STATUS.INVALID_ARGUMENT,
  );
});

test("a call without a token is refused before any of its message is read", async () => {
  const session = connect(`http://127.0.0.1:${port}`);
  const stream = session.request({
    ":method": "POST",
    ":path": EXPORT,
    "content-type": "application/grpc",
    te: "trailers",
  });
  // The beginning of a message of 60 MiB, and no more.
  stream.write(Buffer.from([0, 3, 192, 0, 0]));
  const told = Promise.withResolvers<unknown>();
  for (const event of ["response", "trailers"] as const) {
    stream.on(event, (headers: Record<string, unknown>) => {
      if (headers["grpc-status"] !== undefined) told.resolve(headers["grpc-status"]);
    });
  }
  stream.on("error", told.reject);
  stream.resume();
  expect(Number(await told.promise)).toBe(STATUS.UNAUTHENTICATED);
  session.destroy();
});

test("who sends more than may be taken is told when to come back", async () => {
  const failures: Awaited<ReturnType<typeof failureOfCall>>[] = [];
  for (let i = 0; i < 50 && failures.length === 0; i++) {
    await send(WRITER).catch((error: (typeof failures)[number]) => failures.push(error));
  }
  const [failure] = failures;
  expect(failure?.code).toBe(STATUS.UNAVAILABLE);
  const details = Buffer.from((failure?.metadata.get("grpc-status-details-bin")[0] as Buffer | undefined) ?? []);
  expect(details.toString("latin1")).toContain("type.googleapis.com/google.rpc.RetryInfo");
  expect(details.toString("latin1")).toContain("too_many_requests");
  const answers = await Promise.all(Array.from({ length: 20 }, () => post(WRITER)));
  const refused = answers.find(({ status }) => status !== 200);
  expect([refused?.status, Number(refused?.headers.get("retry-after")) > 0]).toEqual([503, true]);
});
