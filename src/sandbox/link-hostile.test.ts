import { drawnSeed } from "../core/drawn-seed.test-kit.ts";
import { connect, constants, performServerHandshake, type ServerHttp2Stream } from "node:http2";
import { afterEach, describe, expect, it } from "vitest";
import { createWebSocketStream, type WebSocket } from "ws";
import { seededRandom } from "../core/random.ts";
import { uwsProblem } from "../io/http/http.test-kit.ts";
import { encodeHead } from "./contract/link/link-stream.ts";
import {
  call,
  lengthOf,
  MIB,
  startGateway,
  startNode,
  startRogue,
  stopAll,
  type TestGateway,
} from "./link.test-kit.ts";
import { delay, eventually } from "../core/waiting.test-kit.ts";

/** Nodes that are not what they should be: each is contained, and the others do not notice. */

const DRIVER = uwsProblem === undefined ? "uws" : "node";

afterEach(stopAll);

/** Answers every call by what `misbehave` does with its stream. */
async function rogueNode(gateway: TestGateway, misbehave: (stream: ServerHttp2Stream) => void): Promise<WebSocket> {
  return await startRogue(gateway, "rogue", (socket) => {
    const duplex = createWebSocketStream(socket);
    duplex.on("error", () => undefined);
    const session = performServerHandshake(duplex);
    session.on("error", () => undefined);
    session.on("stream", (stream) => {
      stream.on("error", () => undefined).resume();
      misbehave(stream);
    });
  });
}

async function withNeighbour(): Promise<TestGateway> {
  const gateway = await startGateway(DRIVER);
  await startNode("good", [gateway], async ({ params }) => ({ result: params }));
  return gateway;
}

async function expectNeighbour({ directory }: TestGateway): Promise<void> {
  expect(await directory.call("good", call({ params: "well" }))).toEqual({ result: "well" });
}

const sized = (length: number, rest: Uint8Array): Buffer => {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(length);
  return Buffer.concat([head, rest]);
};

type Misbehaviour = [name: string, code: string, misbehave: (stream: ServerHttp2Stream) => void];
const headed = (head: unknown) => (stream: ServerHttp2Stream) => void stream.write(encodeHead(head, 1_000));
const WRONG_HEADS: Misbehaviour[] = [
  ["a head that is far too large", "bad_request", (stream) => stream.write(sized(0xffff_ffff, Buffer.alloc(100)))],
  ["a head that is no JSON", "bad_request", (stream) => stream.write(sized(5, Buffer.from("{{{{{")))],
  ["a head of another shape", "unavailable", headed(["what"])],
  ["an error of no known code", "internal", headed({ error: { code: "toString", message: "x" } })],
  ["an error that is none", "unavailable", headed({ error: 5 })],
  ["half a head", "unavailable", (stream) => stream.end(sized(100, Buffer.alloc(10)))],
  ["nothing", "unavailable", (stream) => stream.end()],
  ["a reset", "unavailable", (stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR)],
];

describe("a node that answers", () => {
  it.each(WRONG_HEADS)("%s fails its own calls: %s", async (_name, code, misbehave) => {
    const gateway = await withNeighbour();
    await rogueNode(gateway, (stream) => {
      stream.respond({ ":status": 200 });
      misbehave(stream);
    });
    await expect(gateway.directory.call("rogue", call())).rejects.toMatchObject({ code });
    expect(gateway.directory.connected).toBe(2);
    await expectNeighbour(gateway);
  });

  it("with a part of a body, and the end of it, is not believed", async () => {
    const gateway = await withNeighbour();
    await rogueNode(gateway, (stream) => {
      stream.respond({ ":status": 200 });
      stream.write(encodeHead({ result: 1, body: true }, 1_000));
      stream.end("a part");
    });
    const { body } = await gateway.directory.call("rogue", call());
    await expect(lengthOf(body)).rejects.toMatchObject({ code: "unavailable" });
  });

  it("without end fills nothing", async () => {
    const gateway = await withNeighbour();
    let sentBytes = 0;
    await rogueNode(gateway, (stream) => {
      stream.respond({ ":status": 200 });
      stream.write(encodeHead({ result: 1, body: true }, 1_000));
      const piece = Buffer.alloc(64 * 1024);
      const send = (): void => {
        while (!stream.destroyed && stream.write(piece)) sentBytes += piece.length;
        sentBytes += piece.length;
      };
      stream.on("drain", send);
      send();
    });
    const { body } = await gateway.directory.call("rogue", call());
    await delay(200);
    expect(sentBytes).toBeLessThan(8 * MIB);
    await expectNeighbour(gateway);
    body?.destroy();
  });

  it("with endless headers is cut off", async () => {
    const gateway = await withNeighbour();
    const socket = await rogueNode(gateway, (stream) => {
      stream.respond({ ":status": 200, ...Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`x-${i}`, "y"])) });
    });
    await expect(gateway.directory.call("rogue", call())).rejects.toMatchObject({ code: "unavailable" });
    await expectNeighbour(gateway);
    socket.terminate();
  });

  it("text instead of bytes is cut off", async () => {
    const gateway = await withNeighbour();
    const socket = await startRogue(gateway, "rogue");
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.send("hello");
    await closed;
    await expectNeighbour(gateway);
  });

  it("with a stream that it opens itself is cut off", async () => {
    const gateway = await withNeighbour();
    const socket = await startRogue(gateway, "rogue", (opening) => {
      const session = connect("http://gateway", { createConnection: () => createWebSocketStream(opening) });
      session.on("error", () => undefined);
      session.request({ ":path": "/" }).on("error", () => undefined);
    });
    await new Promise((resolve) => socket.once("close", resolve));
    await expectNeighbour(gateway);
  });

  it("more than its windows allow is reset", async () => {
    const gateway = await withNeighbour();
    const socket = await startRogue(gateway, "rogue");
    const calling = gateway.directory.call("rogue", call());
    await delay(50);
    // Settings, an answer, and data on stream 1 without regard for any window.
    socket.send(frame(4, 0, 0, Buffer.alloc(0)));
    socket.send(frame(1, 4, 1, Buffer.from([0x88])));
    socket.send(frame(0, 0, 1, encodeHead({ result: 1, body: true }, 1_000)));
    const { body } = await calling;
    for (let i = 0; i < 1_000; i++) socket.send(frame(0, 0, 1, Buffer.alloc(16_000)));
    await expectNeighbour(gateway);
    await eventually(() => body?.destroyed === true);
    expect(body?.readableLength).toBeLessThan(2 * MIB);
    await expectNeighbour(gateway);
  });
});

/** A frame of HTTP/2 (RFC 9113 §4.1). */
function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

it("any bytes as frames are contained", async () => {
  const gateway = await withNeighbour();
  const random = seededRandom(drawnSeed());
  const byte = () => Math.floor(random.next() * 256);
  for (let round = 0; round < 60; round++) {
    const socket = await startRogue(gateway, `rogue-${round % 3}`);
    const calling = gateway.directory.call(`rogue-${round % 3}`, call()).catch((error: unknown) => error);
    if (round % 2 === 0) socket.send(frame(4, 0, 0, Buffer.alloc(0)));
    for (let i = 0; i < 20; i++) {
      const payload = Buffer.from(Array.from({ length: byte() % 64 }, byte));
      socket.send(round % 5 === 0 ? payload : frame(byte() % 12, byte(), byte() % 4, payload));
    }
    if (round % 4 === 0) await delay(5);
    socket.terminate();
    expect(await calling).toBeInstanceOf(Error);
  }
  await expectNeighbour(gateway);
});

it("a gateway that a node should not trust cannot end the node", async () => {
  const gateway = await withNeighbour();
  let calls = 0;
  const node = await startNode("n1", [gateway], async () => ({ result: ++calls }));
  const random = seededRandom(drawnSeed());
  const byte = () => Math.floor(random.next() * 256);
  const { createServer } = await import("node:http");
  const { WebSocketServer } = await import("ws");
  const server = createServer();
  const sockets = new WebSocketServer({ server, handleProtocols: ([first]) => first ?? false });
  let connections = 0;
  sockets.on("connection", (socket) => {
    connections++;
    for (let i = 0; i < 20; i++) socket.send(Buffer.from(Array.from({ length: byte() }, byte)));
    socket.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  node.dialler.dial([gateway.url, `http://127.0.0.1:${port}`]);
  await eventually(() => connections >= 3);
  expect(await gateway.directory.call("n1", call())).toEqual({ result: 1 });
  node.dialler.stop();
  sockets.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
