import { afterAll, describe, expect, test } from "vitest";
import {
  driverOf,
  TRANSPORTS,
  bodyWithin,
  CHUNKED,
  GET,
  MIB,
  post,
  RawClient,
  start,
  stopAll,
  text,
  uwsProblem,
} from "./http.test-kit.ts";
import { delay, eventually } from "../../core/waiting.test-kit.ts";

// These wait for seconds, so they do it at the same time.
afterAll(stopAll);

describe.concurrent.each(TRANSPORTS)("time limits: %s", (transport) => {
  const driver = driverOf(transport);
  const it = driver === "uws" && uwsProblem !== undefined ? test.skip : test;

  it("ends a connection that goes on sending after its last answer", async () => {
    const { port } = await start(transport, bodyWithin(1000));
    const raw = new RawClient(port);
    raw.send(CHUNKED);
    const startedMs = performance.now();
    while (!raw.isClosed) {
      raw.send("1000\r\n");
      raw.send(Buffer.alloc(4096));
      raw.send("\r\n");
      await delay(5);
    }
    expect(raw.received).toContain("413");
    expect(performance.now() - startedMs).toBeLessThan(8_000);
  });

  it("ends connections that send their head too slowly, or nothing", async () => {
    const { port } = await start(transport, async () => text("ok"), { headersTimeoutMs: 400, idleTimeoutMs: 400 });
    const slow = new RawClient(port);
    const nothing = new RawClient(port);
    const kept = new RawClient(port);
    kept.send(GET);
    slow.send("GET / HTTP/1.1\r\nHost: a\r\n");
    const dripping = setInterval(() => slow.send("X-A: b\r\n"), 100);
    // uWebSockets.js has its own, fixed times; see http.ts.
    const withinMs = driver === "uws" ? 13_000 : 3_000;
    const startedMs = performance.now();
    await Promise.all([slow.closed, nothing.closed, kept.closed]);
    clearInterval(dripping);
    expect(performance.now() - startedMs).toBeLessThan(withinMs);
    expect(kept.received).toContain("ok");
    if (driver === "node") expect(slow.received).toContain("request_timeout");
  });

  it("waits for a next request as long as it is told to", async () => {
    const limits = { headersTimeoutMs: 400, idleTimeoutMs: 400, keepAliveMs: 3_000 };
    const { port } = await start(transport, async () => text("ok"), limits);
    const kept = new RawClient(port);
    kept.send(GET);
    await kept.until("ok");
    await delay(2_000);
    expect(kept.isClosed).toBe(false);
    kept.send(GET);
    await eventually(() => kept.received.split("\r\n\r\nok").length === 3);
    const answeredMs = performance.now();
    await kept.closed;
    // uWebSockets.js has its own, fixed time; see http.ts.
    if (driver === "node") expect(performance.now() - answeredMs).toBeGreaterThan(2_500);
  });

  it("keeps waiting, as long as it is told to, for bodies, handlers and readers", async () => {
    // Longer than uWebSockets.js waits of its own accord.
    const longMs = 14_000;
    const { port } = await start(
      transport,
      async (request) => {
        if (request.path === "/late") await delay(100);
        const taken = (await request.body(MIB)).length;
        if (request.path === "/body") return text("x");
        if (request.path === "/large") return { status: 200, headers: {}, body: new Uint8Array(60 * MIB) };
        if (request.path !== "/gap") await delay(longMs);
        return { status: 200, headers: {}, body: gap(longMs, taken) };
      },
      { idleTimeoutMs: 20_000 },
    );
    const open = (path: string, bodyBytes: number, reading = true) => {
      const raw = new RawClient(port, { reading });
      raw.send(post(bodyBytes).replace("/", path));
      return raw;
    };
    const body = open("/body", 4);
    const large = open("/large", 0, false);
    const slow = open("/slow", 3);
    slow.send("abc");
    const late = open("/late", 700_000);
    late.send(new Uint8Array(700_000));
    const stream = open("/gap", 0);
    await delay(longMs - 1_000);
    expect([body, large, slow, late, stream].map((raw) => raw.isClosed)).toEqual(Array(5).fill(false));
    body.send("body");
    await body.until("\r\n\r\nx");
    await stream.until("after 0");
    await slow.until("before 3");
    await late.until("before 700000");
    large.read();
    await eventually(() => large.receivedBytes > 60 * MIB);
  });
});

async function* gap(gapMs: number, taken: number): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`before ${taken};`);
  await delay(gapMs);
  yield Buffer.from(`after ${taken};`);
}
