import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { readFileSync } from "node:fs";
import { status as STATUS } from "@grpc/grpc-js";
import { afterEach, describe, expect, test } from "vitest";
import { systemClock, type Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { delay, eventually } from "../../core/waiting.test-kit.ts";
import { readTlsPair } from "../http/tls.ts";
import { certificateFolder, makeCertificate } from "../http/tls.test-kit.ts";
import type { GrpcCall, GrpcReply, GrpcServer } from "./grpc.ts";
import { failureOfCall, messagesOf, rawClient, type RawClient } from "./grpc-client.test-kit.ts";
import { createGrpcServer, type GrpcServerOptions } from "./server.ts";
import { GrpcError } from "./status.ts";

const ECHO = "/test.Echo/Echo";
const COUNT = "/test.Echo/Count";

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

type Handler = (call: GrpcCall, message: Uint8Array) => Promise<GrpcReply>;

async function serve(
  { one, many }: { one?: Handler; many?: Handler },
  options: Partial<GrpcServerOptions> = {},
): Promise<{ server: GrpcServer; address: string; client: RawClient }> {
  const echo: Handler = (_, message) => Promise.resolve({ messages: message });
  const server = createGrpcServer({
    services: [
      {
        name: "test.Echo",
        methods: { Echo: { streams: false, handle: one ?? echo }, Count: { streams: true, handle: many ?? echo } },
      },
    ],
    maxReceiveBytes: 4096,
    maxCallsPerConnection: 100,
    ...options,
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  closers.push(() => server.close());
  const address = `127.0.0.1:${port}`;
  const client = rawClient(address);
  closers.push(() => client.close());
  return { server, address, client };
}

async function* pieces(count: number, sizeBytes: number, taken: (n: number) => void = () => {}) {
  for (let i = 0; i < count; i++) {
    taken(i + 1);
    yield Buffer.alloc(sizeBytes, i);
  }
}

describe("a call", () => {
  test("is answered with one message, or with a stream and its metadata", async () => {
    const many: Handler = (call) =>
      Promise.resolve({ metadata: { "x-rows": call.header("x-count") ?? "" }, messages: pieces(3, 5) });
    const { client } = await serve({ many });
    expect((await client.unary(ECHO, Buffer.from("hello"))).toString()).toBe("hello");
    const stream = client.stream(COUNT, Buffer.alloc(0), { metadata: { "x-count": "3" } });
    const metadata = new Promise((resolve) => stream.once("metadata", (got) => resolve(got.get("x-rows"))));
    expect((await messagesOf(stream)).map((message) => message[0])).toEqual([0, 1, 2]);
    expect(await metadata).toEqual(["3"]);
  });

  test("of a method that nobody has is UNIMPLEMENTED", async () => {
    const { client } = await serve({});
    const failure = await failureOfCall(client.unary("/test.Echo/Nothing", Buffer.alloc(1)));
    expect(failure.code).toBe(STATUS.UNIMPLEMENTED);
    expect((await failureOfCall(messagesOf(client.stream("/other.Service/X", Buffer.alloc(1))))).code).toBe(
      STATUS.UNIMPLEMENTED,
    );
  });

  test("fails with the status of what its method rejects with", async () => {
    const failures: unknown[] = [
      new EngineError("table_not_found", 'there is no table "t"'),
      new EngineError("budget_exceeded", "too much", { headers: { "X-Engine-Budget-Limit": "wall_clock_ms=10" } }),
      new GrpcError({ status: "UNAVAILABLE", message: "later", details: Buffer.from("details") }),
      new EngineError("snapshot_expired", "too old"),
      new EngineError("too_many_requests", "later", { headers: { "Retry-After": "3" } }),
      new Error("a secret"),
    ];
    const { client } = await serve({ one: () => Promise.reject(failures.shift()) });
    const call = () => failureOfCall(client.unary(ECHO, Buffer.alloc(1)));
    expect(await call()).toMatchObject({ code: STATUS.NOT_FOUND, details: 'there is no table "t"' });
    const exceeded = await call();
    expect(exceeded.code).toBe(STATUS.RESOURCE_EXHAUSTED);
    expect(exceeded.metadata.get("x-engine-budget-limit")).toEqual(["wall_clock_ms=10"]);
    expect(exceeded.metadata.get("x-engine-error-code")).toEqual(["budget_exceeded"]);
    const unavailable = await call();
    expect(unavailable.code).toBe(STATUS.UNAVAILABLE);
    expect(unavailable.metadata.get("grpc-status-details-bin")).toEqual([Buffer.from("details")]);
    expect((await call()).code).toBe(STATUS.FAILED_PRECONDITION);
    const later = await call();
    expect([later.code, later.metadata.get("retry-after")]).toEqual([STATUS.RESOURCE_EXHAUSTED, ["3"]]);
    expect(await call()).toMatchObject({ code: STATUS.INTERNAL, details: "unexpected failure" });
  });

  test("can fail in the middle of its messages", async () => {
    const many: Handler = () =>
      Promise.resolve({
        messages: (async function* () {
          yield Buffer.from("first");
          throw new EngineError("query_failed", "half way");
        })(),
      });
    const { client } = await serve({ many });
    const seen: string[] = [];
    const stream = client.stream(COUNT, Buffer.alloc(0));
    const failure = failureOfCall(
      (async () => {
        for await (const message of stream as AsyncIterable<Buffer>) seen.push(message.toString());
      })(),
    );
    expect(await failure).toMatchObject({ code: STATUS.INTERNAL, details: "half way" });
    expect(seen).toEqual(["first"]);
  });

  test("carries messages that no header can: half a surrogate pair, line breaks, more than clients take", async () => {
    const texts = ["\ud800 alone", "two\r\nlines: ü%", "x".repeat(100_000)];
    const { client } = await serve({
      one: () => Promise.reject(new EngineError("invalid_query", texts.shift() ?? "")),
    });
    const details = async () => (await failureOfCall(client.unary(ECHO, Buffer.alloc(1)))).details;
    expect(await details()).toBe("\ufffd alone");
    expect(await details()).toBe("two\r\nlines: ü%");
    expect(await details()).toMatch(/^x{1000}…$/);
  });

  test("leaves out metadata that HTTP/2 cannot carry", async () => {
    const metadata = {
      connection: "close",
      "content-type": "text/html",
      "x-bad": "ü",
      "Not-Lower": "x",
      "x-good": "yes",
    };
    const { client } = await serve({ many: () => Promise.resolve({ metadata, messages: pieces(1, 1) }) });
    const stream = client.stream(COUNT, Buffer.alloc(0));
    const got = new Promise<Record<string, unknown>>((resolve) => stream.once("metadata", (m) => resolve(m.getMap())));
    await messagesOf(stream);
    const map = await got;
    expect(map["x-good"]).toBe("yes");
    expect(Object.keys(map)).not.toContain("x-bad");
    expect(map["content-type"]).toBe("application/grpc+proto");
  });
});

describe("the end of a call", () => {
  test("reaches the method when the client cancels, and its messages are given up", async () => {
    let reason: unknown;
    let isGivenUp = false;
    const many: Handler = ({ signal }) => {
      signal.addEventListener("abort", () => (reason = signal.reason));
      return Promise.resolve({
        messages: (async function* () {
          try {
            for (;;) yield Buffer.alloc(100_000);
          } finally {
            isGivenUp = true;
          }
        })(),
      });
    };
    const { client } = await serve({ many });
    const stream = client.stream(COUNT, Buffer.alloc(0));
    stream.on("error", () => {});
    stream.once("data", () => stream.cancel());
    await eventually(() => isGivenUp);
    expect(reason).toMatchObject({ reason: "cancelled" });
  });

  test("reaches the method when the client's process dies", async () => {
    const aborted = Promise.withResolvers<unknown>();
    const many: Handler = ({ signal }) => {
      signal.addEventListener("abort", () => aborted.resolve(signal.reason));
      return new Promise(() => {});
    };
    const { address } = await serve({ many });
    const session = connectHttp2(`http://${address}`);
    session.on("error", () => {});
    const request = session.request({
      ":method": "POST",
      ":path": COUNT,
      "content-type": "application/grpc",
      te: "trailers",
    });
    request.on("error", () => {});
    request.end(Buffer.from([0, 0, 0, 0, 0]));
    await new Promise((resolve) => setTimeout(resolve, 100));
    session.destroy();
    expect(await aborted.promise).toMatchObject({ reason: "cancelled" });
  });

  test("comes with the deadline, before an answer and while the client takes nothing of one", async () => {
    const reasons: unknown[] = [];
    const watch: Handler = ({ signal }) => {
      signal.addEventListener("abort", () => reasons.push((signal.reason as { reason: string }).reason));
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
    };
    const endless: Handler = async (call) => {
      void watch(call, Buffer.alloc(0)).catch(() => {});
      return { messages: pieces(Number.POSITIVE_INFINITY, 1_000_000) };
    };
    const { client } = await serve({ one: watch, many: endless });
    const failure = await failureOfCall(client.unary(ECHO, Buffer.alloc(1), { deadlineMs: 200 }));
    expect(failure.code).toBe(STATUS.DEADLINE_EXCEEDED);
    await eventually(() => reasons.length === 1);
    const stream = client.stream(COUNT, Buffer.alloc(0), { deadlineMs: 300 });
    stream.on("error", () => {});
    await eventually(() => reasons.length === 2);
    expect(reasons[1]).toMatch(/deadline|cancelled/);
  });

  test("is not seen by a method whose call ended well", async () => {
    const signals: AbortSignal[] = [];
    const { client, server } = await serve({
      one: (call, message) => {
        signals.push(call.signal);
        return Promise.resolve({ messages: message });
      },
      many: (call) => {
        signals.push(call.signal);
        return Promise.resolve({ messages: pieces(2, 10) });
      },
    });
    await client.unary(ECHO, Buffer.from("x"));
    await messagesOf(client.stream(COUNT, Buffer.alloc(0)));
    client.close();
    await server.close();
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
  });
});

describe("pace and limits", () => {
  test("a client that takes nothing is sent a bounded number of messages", async () => {
    let taken = 0;
    const { address } = await serve({
      many: () => Promise.resolve({ messages: pieces(1_000, 256 * 1024, (n) => (taken = n)) }),
    });
    const session = connectHttp2(`http://${address}`);
    closers.push(() => session.destroy());
    const request = session.request({
      ":method": "POST",
      ":path": COUNT,
      "content-type": "application/grpc",
      te: "trailers",
    });
    request.end(Buffer.from([0, 0, 0, 0, 0]));
    await eventually(() => taken > 0);
    await new Promise((resolve) => setTimeout(resolve, 500));
    // One that waits, and one that was made meanwhile.
    expect(taken).toBeLessThanOrEqual(3);
    let bytes = 0;
    for await (const piece of request as AsyncIterable<Buffer>) bytes += piece.byteLength;
    expect([taken, bytes]).toEqual([1_000, 1_000 * (5 + 256 * 1024)]);
  });

  /** Time that passes so many times as fast. */
  const fast = (times: number): Clock => ({
    ...systemClock,
    after: (delayMs, task, options) => systemClock.after(delayMs / times, task, options),
  });

  /** A connection and a call on it that is given these bytes, and of whose answer nothing is taken. */
  function begin(address: string, bytes: readonly number[], isWhole = true) {
    const session = connectHttp2(`http://${address}`).on("error", () => {});
    closers.push(() => session.destroy());
    const headers = { ":method": "POST", ":path": COUNT, "content-type": "application/grpc", te: "trailers" };
    const call = session.request(headers).on("error", () => {});
    if (isWhole) call.end(Buffer.from(bytes));
    else call.write(Buffer.from(bytes));
    return { session, call };
  }

  test("a client that takes nothing of an answer loses its connection, not only the call", async () => {
    const many: Handler = () => Promise.resolve({ messages: pieces(1_000, 256 * 1024) });
    const { address, client } = await serve({ many }, { clock: fast(500) });
    const { session } = begin(address, [0, 0, 0, 0, 0]);
    await eventually(() => session.closed);
    expect((await client.unary(ECHO, Buffer.from("still there"))).toString()).toBe("still there");
  });

  test("a client that ends a call, of which something was not taken, keeps its connection", async () => {
    const many: Handler = () => Promise.resolve({ messages: pieces(1_000, 256 * 1024) });
    const { address } = await serve({ many }, { clock: fast(300) });
    const { session, call } = begin(address, [0, 0, 0, 0, 0]);
    await new Promise((resolve) => call.once("response", resolve));
    call.close();
    await delay(500);
    expect(session.closed).toBe(false);
  });

  test.each([
    ["all of a message", [0, 0, 0]],
    ["the end of a message", [0, 0, 0, 0, 0]],
  ])("a client that does not send %s in time loses its connection", async (_, bytes) => {
    const { address } = await serve({}, { clock: fast(50) });
    const { session } = begin(address, bytes, false);
    const startedMs = performance.now();
    await eventually(() => session.closed);
    expect(performance.now() - startedMs).toBeGreaterThan(300);
  });

  test("further calls on a connection than allowed wait for others to end", async () => {
    const goOn = Promise.withResolvers<void>();
    let running = 0;
    const one: Handler = async (_, message) => {
      running++;
      await goOn.promise;
      return { messages: message };
    };
    const { client } = await serve({ one }, { maxCallsPerConnection: 2 });
    // The client hears of the limit with the first answer of the server.
    const first = client.unary(ECHO, Buffer.from("0"));
    await eventually(() => running === 1);
    const others = ["1", "2", "3"].map((text) => client.unary(ECHO, Buffer.from(text)));
    await eventually(() => running === 2);
    await delay(200);
    expect(running).toBe(2);
    goOn.resolve();
    expect((await Promise.all([first, ...others])).map(String)).toEqual(["0", "1", "2", "3"]);
  });

  test("a message in a coding that the server does not have is UNIMPLEMENTED", async () => {
    const { address } = await serve({});
    expect(await sendPacked(address, zstdCompressSync(Buffer.from("x")), "zstd")).toBe(String(STATUS.UNIMPLEMENTED));
  });

  test("a request above the limit, and one that becomes so when it is unpacked, is RESOURCE_EXHAUSTED", async () => {
    const { client, address } = await serve({});
    expect((await client.unary(ECHO, Buffer.alloc(4096))).byteLength).toBe(4096);
    expect((await failureOfCall(client.unary(ECHO, Buffer.alloc(4097)))).code).toBe(STATUS.RESOURCE_EXHAUSTED);
    const bomb = gzipSync(Buffer.alloc(100_000_000));
    const frames = [bomb.subarray(0, 4000), gzipSync(Buffer.alloc(3_000_000)), Buffer.from("this is no gzip")];
    const statuses: unknown[] = [];
    for (const packed of frames) statuses.push(await sendPacked(address, packed));
    expect(statuses.every((code) => code === "8" || code === "13")).toBe(true);
    expect(statuses[1]).toBe("8");
    expect((await client.unary(ECHO, Buffer.from("still there"))).toString()).toBe("still there");
  });

  test("bytes that are no HTTP/2 end their connection, not the server", async () => {
    const { address, client } = await serve({});
    const port = Number(address.split(":")[1]);
    const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const garbage = ["GET / HTTP/1.1\r\n\r\n", "\0".repeat(1000), preface + "\xff".repeat(500), preface.slice(0, 10)];
    for (const text of garbage) {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => {});
      socket.end(Buffer.from(text, "latin1"));
      await new Promise((resolve) => socket.once("close", resolve).resume());
    }
    expect((await client.unary(ECHO, Buffer.from("still there"))).toString()).toBe("still there");
  });

  test("further connections than allowed are closed", async () => {
    const { address } = await serve({}, { maxConnections: 2 });
    const port = Number(address.split(":")[1]);
    const sockets = Array.from({ length: 3 }, () => connect(port, "127.0.0.1").on("error", () => {}));
    let closed = 0;
    for (const socket of sockets) socket.once("close", () => closed++).resume();
    await eventually(() => closed === 1);
    for (const socket of sockets) socket.destroy();
  });
});

describe("stopping", () => {
  test("an address that is taken is a system error", async () => {
    const { address } = await serve({});
    const other = createGrpcServer({ services: [], maxReceiveBytes: 1, maxCallsPerConnection: 1 });
    const port = Number(address.split(":")[1]);
    await expect(other.listen({ host: "127.0.0.1", port })).rejects.toMatchObject({ code: "EADDRINUSE" });
    await other.close();
  });

  test("drain finishes what runs, and takes nothing new", async () => {
    const go = Promise.withResolvers<void>();
    const { server, address, client } = await serve({
      one: async (_, message) => {
        await go.promise;
        return { messages: message };
      },
    });
    const running = client.unary(ECHO, Buffer.from("slow"));
    await new Promise((resolve) => setTimeout(resolve, 100));
    let isDrained = false;
    const drained = server.drain(20_000).then(() => (isDrained = true));
    const late = rawClient(address);
    closers.push(() => late.close());
    const refused = await failureOfCall(late.unary(ECHO, Buffer.from("late"), { deadlineMs: 5_000 }));
    expect([STATUS.UNAVAILABLE, STATUS.DEADLINE_EXCEEDED]).toContain(refused.code);
    expect(isDrained).toBe(false);
    go.resolve();
    expect((await running).toString()).toBe("slow");
    await drained;
  });

  test("drain gives up after its time, and close ends what is left", async () => {
    const { server, client } = await serve({ one: () => new Promise(() => {}) });
    const running = failureOfCall(client.unary(ECHO, Buffer.from("never")));
    await new Promise((resolve) => setTimeout(resolve, 100));
    await server.drain(100);
    await server.close();
    expect([STATUS.UNAVAILABLE, STATUS.CANCELLED, STATUS.INTERNAL]).toContain((await running).code);
  });
});

describe("with a certificate", () => {
  test("it speaks TLS, and a renewed certificate is served to new connections", async () => {
    const folder = certificateFolder();
    const first = await makeCertificate(folder, "first");
    const second = await makeCertificate(folder, "second");
    const { server, address } = await serve({}, { tls: readTlsPair(first) });
    const ask = async (certPath: string) => {
      const client = rawClient(address, readFileSync(certPath, "utf8"));
      closers.push(() => client.close());
      return (await client.unary(ECHO, Buffer.from("safe"), { deadlineMs: 5_000 })).toString();
    };
    expect(await ask(first.certPath)).toBe("safe");
    const plain = rawClient(address);
    closers.push(() => plain.close());
    await failureOfCall(plain.unary(ECHO, Buffer.from("x"), { deadlineMs: 2_000 }));
    await expect(ask(second.certPath)).rejects.toThrow(/UNAVAILABLE|DEADLINE_EXCEEDED/);
    server.useTlsPair(readTlsPair(second));
    expect(await ask(second.certPath)).toBe("safe");
  });
});

/** Sends a message that says it is packed that way; gives the status. */
function sendPacked(address: string, packed: Uint8Array, coding = "gzip"): Promise<unknown> {
  const session = connectHttp2(`http://${address}`);
  session.on("error", () => {});
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(1, 0);
  prefix.writeUInt32BE(packed.byteLength, 1);
  return new Promise((resolve, reject) => {
    const request = session.request({
      ":method": "POST",
      ":path": ECHO,
      "content-type": "application/grpc",
      "grpc-encoding": coding,
      te: "trailers",
    });
    request.on("response", (headers) => headers["grpc-status"] !== undefined && resolve(headers["grpc-status"]));
    request.on("trailers", (trailers) => resolve(trailers["grpc-status"]));
    request.on("error", reject);
    request.resume();
    request.end(Buffer.concat([prefix, packed]));
  }).finally(() => session.close());
}
