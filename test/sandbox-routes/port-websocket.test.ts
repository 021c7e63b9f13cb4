import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { WebSocket, WebSocketServer, type ClientOptions } from "ws";
import { startLiveWorld, type LiveServer, type LiveWorld } from "./live.test-kit.ts";

let world: LiveWorld;
let server: LiveServer;
let program: Server;
let port: number;
let id: string;
/** What the program has: newest last. */
const accepted: { socket: WebSocket; request: IncomingMessage }[] = [];
beforeAll(async () => {
  world = await startLiveWorld();
  server = await world.startServer();
  program = createServer((_request, response) => void response.writeHead(426, { "Set-Cookie": "a=1" }).end("ask!"));
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => (offered.has("chat.v2") ? "chat.v2" : false),
  });
  program.on("upgrade", (request, socket, head) => {
    if (request.url === "/no") {
      socket.end("HTTP/1.1 404 Not Found\r\nSet-Cookie: a=1\r\nContent-Length: 5\r\nConnection: close\r\n\r\nnope\n");
    } else if (request.url === "/broken") socket.destroy();
    else sockets.handleUpgrade(request, socket, head, (open) => accepted.push({ socket: open, request }));
  });
  program.listen(0, "127.0.0.1");
  await once(program, "listening");
  port = (program.address() as AddressInfo).port;
  id = await world.newSandbox({ ports: [{ port }] });
});
afterAll(async () => {
  for (const { socket } of accepted) socket.terminate();
  program.close();
  await world.close();
});

function dial(rest: string, { protocols = [], by = "t", to = port, ...options }: Dial = {}): WebSocket {
  const url = `${server.url.replace("http", "ws")}/api/v1/sandboxes/${id}/ports/${to}${rest}`;
  return new WebSocket(url, protocols, { headers: { Authorization: `Bearer ${by}` }, ...options });
}
type Dial = { protocols?: string[]; by?: string; to?: number } & ClientOptions;

async function open(rest = "/", options: Dial = {}): Promise<{ client: WebSocket; inside: WebSocket }> {
  const client = dial(rest, options);
  await once(client, "open");
  const inside = accepted.at(-1)?.socket;
  if (inside === undefined) throw new Error("the program has no WebSocket");
  return { client, inside };
}

async function closingOf(socket: WebSocket): Promise<[code: number, reason: string]> {
  const [code, reason] = (await once(socket, "close")) as [number, Buffer];
  return [code, reason.toString()];
}

async function refusalOf(socket: WebSocket): Promise<{ status: number; text: string; headers: object }> {
  // It complains of being closed before it was open.
  socket.on("error", () => undefined);
  const [, answer] = (await once(socket, "unexpected-response")) as [unknown, IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of answer) pieces.push(piece as Buffer);
  socket.terminate();
  const { statusCode: status = 0, headers } = answer;
  return { status, text: Buffer.concat(pieces).toString(), headers };
}

it("messages go both ways as they are, with the sub-protocol of the program's choice", async () => {
  const headers = { Authorization: "Bearer t", Cookie: "c=1", "X-Own": "1" };
  const { client, inside } = await open("/a%2Fb?c=%20d", { protocols: ["chat.v1", "chat.v2"], headers });
  expect([client.protocol, inside.protocol, client.extensions]).toEqual(["chat.v2", "chat.v2", ""]);
  const { url, headers: seen } = accepted.at(-1)?.request ?? {};
  expect(url).toBe("/a%2Fb?c=%20d");
  expect(seen).toMatchObject({ host: `localhost:${port}`, "x-own": "1", "sec-websocket-protocol": "chat.v1,chat.v2" });
  expect(seen).not.toHaveProperty("authorization");
  expect(seen).not.toHaveProperty("cookie");
  const large = Buffer.alloc(3_000_000, "0123456789abcdef");
  for (const [from, to] of [
    [client, inside],
    [inside, client],
  ] as const) {
    const messages: [string | Buffer, boolean][] = [];
    const all = new Promise<void>((resolve) => {
      to.on("message", (data: Buffer, isBinary) => {
        messages.push([isBinary ? data : data.toString(), isBinary]);
        if (messages.length === 4) resolve();
      });
    });
    for (const message of ["grüß", "", Buffer.from([0, 255, 1]), large]) from.send(message);
    await all;
    expect(messages.slice(0, 3)).toEqual([
      ["grüß", false],
      ["", false],
      [Buffer.from([0, 255, 1]), true],
    ]);
    expect(Buffer.compare(messages[3]?.[0] as Buffer, large)).toBe(0);
  }
  client.close();
  // A good-bye without a code is passed on as a normal one.
  expect((await closingOf(inside))[0]).toBe(1_000);
});

it("who closes says why to the other side", async () => {
  const one = await open();
  const toldInside = closingOf(one.inside);
  one.client.close(4_001, "enough");
  expect(await toldInside).toEqual([4_001, "enough"]);
  const two = await open();
  const toldClient = closingOf(two.client);
  two.inside.close(4_002, "over");
  expect(await toldClient).toEqual([4_002, "over"]);
  const three = await open();
  const broken = closingOf(three.inside);
  three.client.terminate();
  expect((await broken)[0]).toBe(1_006);
  const four = await open();
  const lost = closingOf(four.client);
  four.inside.terminate();
  expect((await lost)[0]).toBe(1_006);
});

it("a program that sends more than is read waits", async () => {
  const { client, inside } = await open();
  client.pause();
  const piece = Buffer.alloc(64 * 1024);
  let sentBytes = 0;
  // What buffers on the way hold is taken, and no more.
  for (let quietMs = 0; quietMs < 500 && sentBytes < 256 * 1024 * 1024;) {
    if (inside.bufferedAmount > 256 * 1024) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      quietMs += 50;
      continue;
    }
    quietMs = 0;
    inside.send(piece);
    sentBytes += piece.length;
    await new Promise(setImmediate);
  }
  expect(sentBytes).toBeLessThan(64 * 1024 * 1024);
  let gotBytes = 0;
  client.on("message", (data: Buffer) => (gotBytes += data.length));
  client.resume();
  await expect.poll(() => gotBytes).toBe(sentBytes);
  client.close();
});

it("what the program answers instead is the answer", async () => {
  const refused = await refusalOf(dial("/no"));
  expect(refused).toMatchObject({ status: 404, text: "nope\n" });
  expect(refused.headers).toMatchObject({ "content-security-policy": "sandbox" });
  expect(refused.headers).not.toHaveProperty("set-cookie");
  expect(await refusalOf(dial("/broken"))).toMatchObject({ status: 503, text: expect.stringContaining("unavailable") });
  // One that asks for no WebSocket is a request like others.
  const plain = await fetch(`${server.url}/api/v1/sandboxes/${id}/ports/${port}/`, {
    headers: { Authorization: "Bearer reader" },
  });
  expect([plain.status, await plain.text()]).toEqual([426, "ask!"]);
});

it("needs the role write, and a port that is declared", async () => {
  expect(await refusalOf(dial("/", { by: "reader" }))).toMatchObject({ status: 403 });
  expect(await refusalOf(dial("/", { by: "other" }))).toMatchObject({ status: 404 });
  expect(await refusalOf(dial("/", { to: 1 }))).toMatchObject({ status: 404 });
});
