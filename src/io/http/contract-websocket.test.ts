import { createHash } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket, type ClientOptions } from "ws";
import { EngineError } from "../../core/errors.ts";
import { drawnRandom } from "../../core/drawn-seed.test-kit.ts";
import type { HttpHandler } from "./http.ts";
import {
  driverOf,
  MIB,
  RawClient,
  start,
  stopAll,
  text,
  TRANSPORTS,
  uwsProblem,
  type TestServer,
} from "./http.test-kit.ts";
import { WebSocketClosedError, type WebSocketAnswer, type WebSocketConnection } from "./websocket.ts";
import { delay, eventually } from "../../core/waiting.test-kit.ts";

const clients = new Set<WebSocket>();
afterEach(async () => {
  for (const client of clients) client.terminate();
  clients.clear();
  await stopAll();
});

const upgrade = (answer: Partial<WebSocketAnswer> & Pick<WebSocketAnswer, "run">): HttpHandler => {
  return async (request) =>
    request.webSocket === undefined
      ? text("no WebSocket")
      : { status: 101, headers: { "X-Here": "yes" }, webSocket: answer };
};

const echo = async (connection: WebSocketConnection) => {
  for await (const message of connection.messages()) await connection.send(message);
};

/** Runs until the connection is over. */
const idle = async (connection: WebSocketConnection) => void (await connection.closed);

async function dial({ url }: TestServer, protocols: string[] = [], options: ClientOptions = {}): Promise<WebSocket> {
  const client = new WebSocket(url.replace("http", "ws"), protocols, { perMessageDeflate: false, ...options });
  clients.add(client);
  client.on("error", () => undefined);
  await new Promise<void>((resolve, reject) => {
    client.once("open", resolve);
    client.once("error", reject);
  });
  return client;
}

function closingOf(client: WebSocket): Promise<[number, string]> {
  return new Promise((resolve) => {
    client.once("close", (code, reason) => resolve([code, reason.toString()]));
  });
}

const TESTED = TRANSPORTS.filter((transport) => uwsProblem === undefined || driverOf(transport) === "node");

const HANDSHAKE =
  "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n" +
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

describe.each(TESTED)("WebSockets by %s", (transport) => {
  const isUws = driverOf(transport) === "uws";

  it("carry text and bytes both ways, under the protocol that the handler chose", async () => {
    const server = await start(transport, upgrade({ protocol: "b", run: echo }));
    const client = new WebSocket(server.url.replace("http", "ws"), ["a", "b"]);
    clients.add(client);
    let here: unknown;
    client.on("upgrade", ({ headers }) => (here = headers["x-here"]));
    const received: [string, boolean][] = [];
    client.on("message", (data: Buffer, isBinary) => received.push([data.toString("latin1"), isBinary]));
    await new Promise((resolve) => client.once("open", resolve));
    expect([client.protocol, client.extensions, here]).toEqual(["b", "", "yes"]);
    client.send("text");
    client.send(Buffer.from([0, 255, 7]));
    client.send("");
    await eventually(() => received.length === 3);
    expect(received).toEqual([
      ["text", false],
      ["\0\xff\x07", true],
      ["", false],
    ]);
    const closing = closingOf(client);
    client.close(4_001, "enough");
    expect(await closing).toEqual([4_001, "enough"]);
    expect(server.failures).toEqual([]);
  });

  it("stay open, however long the handler took to answer", async () => {
    const answer = upgrade({ run: echo });
    const server = await start(transport, async (request) => {
      await delay(20);
      return await answer(request);
    });
    const all = await Promise.all(Array.from({ length: 40 }, () => dial(server)));
    await delay(200);
    expect(all.filter(({ readyState }) => readyState !== WebSocket.OPEN)).toEqual([]);
  });

  it("are refused by any other answer", async () => {
    const server = await start(transport, () => Promise.reject(new EngineError("forbidden", "no")));
    const client = new WebSocket(server.url.replace("http", "ws"));
    clients.add(client);
    const [status, body] = await new Promise<[number | undefined, string]>((resolve, reject) => {
      client.on("error", reject);
      client.on("unexpected-response", (_request, response) => {
        let received = "";
        response.on("data", (piece: Buffer) => (received += piece.toString()));
        response.on("end", () => resolve([response.statusCode, received]));
      });
    });
    expect([status, body]).toEqual([403, '{"code":"forbidden"}']);
  });

  it("are not what other requests ask for", async () => {
    const server = await start(transport, upgrade({ run: echo }));
    const others = [
      HANDSHAKE.replace("Version: 13", "Version: 8"),
      HANDSHAKE.replace("dGhl", "!!!!"),
      HANDSHAKE.replace("Upgrade: websocket", "Upgrade: h2c"),
      HANDSHAKE.replace("keep-alive, Upgrade", "keep-alive"),
      HANDSHAKE.replace("\r\n\r\n", "\r\nSec-WebSocket-Protocol: a b\r\n\r\n"),
      HANDSHAKE.replace("GET", "DELETE"),
    ];
    for (const request of others) {
      const client = new RawClient(server.port);
      client.send(request);
      expect(await client.until("no WebSocket")).toContain("HTTP/1.1 200 OK");
      // The connection takes another request.
      client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await client.until((received) => received.split("no WebSocket").length === 3);
      client.socket.destroy();
    }
  });

  it("that nobody asked for are a failure of the handler", async () => {
    const server = await start(transport, async () => ({ status: 101, headers: {}, webSocket: { run: echo } }));
    expect((await fetch(server.url)).status).toBe(500);
    const other = await start(transport, upgrade({ protocol: "c", run: echo }));
    await expect(dial(other, ["a"])).rejects.toThrow("500");
  });

  it("make a sender wait for a client that does not read, and lose nothing", async () => {
    const piece = Buffer.alloc(64 * 1024, "abcdefgh");
    let mostBytes = 0;
    let sentBytes = 0;
    const run = async (connection: WebSocketConnection) => {
      for (let i = 0; i < 512; i++) {
        await connection.send(i % 2 === 0 ? piece : piece.subarray(i));
        sentBytes += piece.length;
        mostBytes = Math.max(mostBytes, connection.bufferedBytes);
      }
    };
    const server = await start(transport, upgrade({ run }));
    const client = await dial(server);
    client.pause();
    const hash = createHash("sha1");
    client.on("message", (data: Buffer) => hash.update(data));
    await delay(200);
    expect(sentBytes).toBeLessThan(16 * MIB);
    const closing = closingOf(client);
    client.resume();
    expect(await closing).toEqual([1_000, ""]);
    const expected = createHash("sha1");
    for (let i = 0; i < 512; i++) expected.update(i % 2 === 0 ? piece : piece.subarray(i));
    expect(hash.digest("hex")).toBe(expected.digest("hex"));
    expect(mostBytes).toBeLessThan(MIB);
  });

  const checkCutOff = async (): Promise<void> => {
    const server = await start(transport, upgrade({ limits: { maxWaitingBytes: 2 * MIB }, run: idle }));
    const client = await dial(server);
    const closing = closingOf(client);
    for (let i = 0; i < 256; i++) client.send(Buffer.alloc(64 * 1024));
    expect(await closing).toEqual([1_008, "more was sent than is read here"]);
  };

  const checkWait = async (): Promise<void> => {
    const begin = Promise.withResolvers<void>();
    let takenBytes = 0;
    const run = async (connection: WebSocketConnection) => {
      await begin.promise;
      for await (const message of connection.messages()) takenBytes += message.length;
    };
    const server = await start(transport, upgrade({ limits: { maxWaitingBytes: 2 * MIB }, run }));
    const client = await dial(server);
    const closing = closingOf(client);
    for (let i = 0; i < 256; i++) client.send(Buffer.alloc(64 * 1024));
    await delay(200);
    expect(client.bufferedAmount).toBeGreaterThan(MIB);
    begin.resolve();
    client.close();
    await closing;
    expect(takenBytes).toBe(16 * MIB);
  };

  it(`${isUws ? "cut off" : "make wait"} a client that sends far ahead of a reader that does not come`, async () =>
    await (isUws ? checkCutOff() : checkWait()));

  it("take no message that is too large", async () => {
    const server = await start(transport, upgrade({ limits: { maxMessageBytes: 1_000 }, run: echo }));
    const client = await dial(server);
    const closing = closingOf(client);
    client.send(Buffer.alloc(1_001));
    expect((await closing)[0]).toBe(1_009);
  });

  it("end when the other side is dead, and not when it is only silent", async () => {
    const endings: number[] = [];
    const run = async (connection: WebSocketConnection) => void endings.push((await connection.closed).code);
    const server = await start(transport, upgrade({ limits: { pingEveryMs: 50, deadAfterMs: 400 }, run }));
    const silent = await dial(server);
    const dead = await dial(server, [], { autoPong: false });
    await closingOf(dead);
    await eventually(() => endings.length > 0);
    expect(endings).toEqual([1_006]);
    await delay(300);
    expect(silent.readyState).toBe(WebSocket.OPEN);
  });

  it("tell the handler how the other side left", async () => {
    const seen: unknown[] = [];
    const run = async (connection: WebSocketConnection) => {
      try {
        for await (const message of connection.messages()) seen.push(message);
        seen.push("end");
      } catch (error) {
        seen.push(error);
      }
      expect(connection.signal.aborted).toBe(true);
      seen.push((await connection.closed).code);
      await expect(connection.send("more")).rejects.toThrow(WebSocketClosedError);
    };
    const server = await start(transport, upgrade({ run }));
    const polite = await dial(server);
    polite.send("last words");
    polite.close(4_002, "good-bye");
    await eventually(() => seen.length === 3);
    expect(seen.splice(0)).toEqual(["last words", "end", 4_002]);
    (await dial(server)).terminate();
    await eventually(() => seen.length === 2);
    expect(seen).toEqual([expect.any(WebSocketClosedError), 1_006]);
    expect(server.failures).toEqual([]);
  });

  it("say which failure of the handler closed them, to the server's log alone", async () => {
    const failure = new Error("a secret of the server");
    const server = await start(transport, upgrade({ run: () => Promise.reject(failure) }));
    const client = await dial(server);
    expect(await closingOf(client)).toEqual([1_011, "internal error"]);
    expect(server.failures).toEqual([failure]);
  });

  it("are closed by a server that drains, which waits for what used them", async () => {
    let isDone = false;
    const run = async (connection: WebSocketConnection) => {
      await connection.closed;
      await delay(100);
      isDone = true;
    };
    const server = await start(transport, upgrade({ run }));
    const closing = closingOf(await dial(server));
    await server.server.drain(5_000);
    expect(isDone).toBe(true);
    expect(await closing).toEqual([1_001, "the server is about to stop"]);
  });

  it("end with the server, those that are being asked for among them", async () => {
    const asked = Promise.withResolvers<void>();
    const handler = upgrade({ run: idle });
    const server = await start(transport, async (request) => {
      if (request.path !== "/late") return await handler(request);
      asked.resolve();
      return await new Promise(() => undefined);
    });
    const closing = closingOf(await dial(server));
    const late = new RawClient(server.port);
    late.send(HANDSHAKE.replace("GET /", "GET /late"));
    await asked.promise;
    await server.server.close();
    expect((await closing)[0]).toBe(1_006);
    await late.closed;
  });

  it("survive any bytes", async () => {
    const server = await start(transport, upgrade({ run: echo }));
    const neighbour = await dial(server);
    const random = drawnRandom();
    for (let round = 0; round < 40; round++) {
      const client = new RawClient(server.port);
      client.send(HANDSHAKE);
      await client.until("\r\n\r\n");
      const noise = Buffer.from(Array.from({ length: 1 + Math.floor(random.next() * 300) }, () => random.next() * 256));
      // Half of them begin as a frame does.
      if (round % 2 === 0) noise[0] = 0x80 | (round % 11);
      client.send(noise);
      if (round % 3 === 0) await Promise.race([client.closed, delay(20)]);
      client.reset();
    }
    const received = new Promise<string>((resolve) =>
      neighbour.once("message", (data: Buffer) => resolve(data.toString())),
    );
    neighbour.send("still here");
    expect(await received).toBe("still here");
    await delay(50);
    expect(server.failures).toEqual([]);
  });
});
