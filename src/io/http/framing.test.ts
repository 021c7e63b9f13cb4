import { afterEach, describe, expect, test } from "vitest";
import { checkHead, headerText } from "./framing.ts";
import { CHUNKED, RawClient, start, stopAll, text } from "./http.test-kit.ts";
import { delay, eventually } from "../../core/waiting.test-kit.ts";

afterEach(stopAll);

describe("a head", () => {
  const head = { method: "GET", version: "1.1", target: "/a?b=?c", names: ["host"], values: ["a"] };

  test("says where it goes, as a path or a URL", () => {
    expect(checkHead(head)).toEqual({ path: "/a", query: "b=?c" });
    expect(checkHead({ ...head, target: "http://A/a?b=?c" })).toEqual({ path: "/a", query: "b=?c" });
    expect(checkHead({ ...head, version: "1.0", names: [], values: [] })).toEqual({ path: "/a", query: "b=?c" });
  });

  test.each([
    ["two lengths", ["host", "content-length", "content-length"], ["a", "5", "5"]],
    ["a length and chunks", ["host", "content-length", "transfer-encoding"], ["a", "5", "chunked"]],
    ["a coding that hides chunks", ["host", "transfer-encoding"], ["a", "chunked, identity"]],
    ["two hosts", ["host", "host"], ["a", "a"]],
  ])("may not have %s, whatever the parser thinks", (_what, names, values) => {
    expect(() => checkHead({ ...head, names, values })).toThrow(expect.objectContaining({ status: 400 }));
  });

  test("has text that is UTF-8, byte for byte", () => {
    const wire = (value: string) => Buffer.from(value).toString("latin1");
    for (const value of ["plain", "é", "commande-é", "\u{1f600}", "\ufeffx", "\u00a0x\u00a0"]) {
      expect(headerText("x", wire(value))).toBe(value);
    }
    for (const bytes of ["\xe9", "\xc3", "\xed\xa0\x80", "\xc0\xaf", "\xf5\x80\x80\x80"]) {
      expect(() => headerText("x-table", bytes)).toThrow(/x-table is not UTF-8/);
    }
  });
});

async function* broken(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("part");
  await delay(50);
  throw new Error("the rest is lost");
}

describe("what proxies that speak HTTP/1.0 get", () => {
  test("an answer that breaks off does not end like one that is complete", async () => {
    const { port, failures } = await start("node", async () => ({ status: 200, headers: {}, body: broken() }));
    const raw = new RawClient(port);
    raw.send("GET / HTTP/1.0\r\n\r\n");
    await raw.until("part");
    await raw.closed;
    expect(raw.socket.errored).toMatchObject({ code: "ECONNRESET" });
    expect(String(failures[0])).toContain("the rest is lost");
  });

  test("a streamed answer without chunks, and the end of the connection", async () => {
    const whole = async function* () {
      yield Buffer.from("one ");
      yield Buffer.from("two");
    };
    const { port } = await start("node", async () => ({ status: 200, headers: {}, body: whole() }));
    const raw = new RawClient(port);
    raw.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    await raw.closed;
    expect(raw.received).toMatch(/\r\n\r\none two$/);
    expect(raw.received).not.toMatch(/chunked/);
    expect(raw.socket.errored).toBeNull();
  });
});

describe("requests that are not what they seem", () => {
  const offer =
    "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

  test.each([
    ["a length", "Content-Length: 5\r\n\r\nhello"],
    ["chunks", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"],
  ])("one for a WebSocket that has a body with %s gets none, and its body is a body", async (_what, rest) => {
    const seen: unknown[] = [];
    const { port } = await start("node", async (request) => {
      seen.push(request.webSocket, Buffer.from(await request.body(100)).toString());
      return text("plain");
    });
    const raw = new RawClient(port);
    raw.send(offer + rest);
    await raw.until("plain");
    expect(seen).toEqual([undefined, "hello"]);
  });

  test("one that is good is answered though rubbish comes behind it", async () => {
    const { port } = await start("node", async () => {
      await delay(50);
      return text("answered");
    });
    const raw = new RawClient(port);
    raw.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nrubbish\r\n\r\n");
    await raw.closed;
    expect(raw.received).toMatch(/^HTTP\/1\.1 200 [^]*\r\nConnection: close\r\n[^]*answered$/);
  });

  test("nothing more is read of a connection whose body broke", async () => {
    const served: string[] = [];
    const { port } = await start("node", async (request) => {
      served.push(request.path);
      await request.body(1_000);
      return text("whole");
    });
    const raw = new RawClient(port);
    raw.send(`${CHUNKED}5\r\nhelloXX`);
    await raw.until("HTTP/1.1 400");
    raw.send("0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
    await raw.closed;
    expect(served).toEqual(["/"]);
    expect(raw.received).not.toContain("200");
  });

  test("connections beyond the bound are closed, and those before go on", async () => {
    let refused = 0;
    const { port } = await start("node", async () => text("served"), {
      maxConnections: 2,
      reportRefused: () => refused++,
    });
    const [first, second] = [new RawClient(port), new RawClient(port)];
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await first.until("served");
    const third = new RawClient(port);
    await third.closed;
    expect([refused, third.received]).toEqual([1, ""]);
    second.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await second.until("served");
    first.socket.destroy();
    await eventually(() => first.isClosed);
    await delay(20);
    const fourth = new RawClient(port);
    fourth.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await fourth.until("served");
  });
});
