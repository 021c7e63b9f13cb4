import { readFileSync } from "node:fs";
import { createServer, request as httpRequest, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type * as BufferPool from "../../src/core/buffer-pool.ts";
import { MAX_KEPT_BYTES } from "../../src/io/http/client/replayable-body.ts";
import { uwsProblem } from "../../src/io/http/http.test-kit.ts";
import { certificateFolder, makeCertificate, trustCertificate } from "../../src/io/http/tls.test-kit.ts";
import { ask, MIB, QUIET, startEdge, startPeer, startRawPeer, stopAll } from "./edge.test-kit.ts";
import { delay, eventually } from "../../src/core/waiting.test-kit.ts";

/** Buffers of the pool: how many are out, and how often one came back, which is then filled with what no body has. */
const pool = vi.hoisted(() => ({ out: 0, returned: 0 }));
const POISON = 0xdd;

vi.mock("../../src/core/buffer-pool.ts", async (importOriginal) => {
  const original = await importOriginal<typeof BufferPool>();
  return {
    ...original,
    takeShared: (sizeBytes: number) => {
      pool.out++;
      return original.takeShared(sizeBytes);
    },
    releaseShared: (bytes: Uint8Array) => {
      if (bytes.buffer instanceof SharedArrayBuffer) {
        pool.out--;
        pool.returned++;
        new Uint8Array(bytes.buffer).fill(POISON);
      }
      original.releaseShared(bytes);
    },
  };
});

beforeEach(() => void Object.assign(pool, { out: 0, returned: 0 }));
const closers: (() => void)[] = [];
afterEach(async () => {
  for (const stop of closers.splice(0)) stop();
  await stopAll();
});

const KEY = { "x-idempotency-key": "k" };

/** Bytes that tell where they belong, and of which body they are; none is the poison. */
function patterned(sizeBytes: number, which = 0): Buffer {
  const body = Buffer.alloc(sizeBytes);
  for (let i = 0; i < sizeBytes; i++) body[i] = (i * 7 + (i >> 8) * 13 + (i >> 16) * 31 + which * 101) % POISON;
  return body;
}

/** A request whose body is written in parts of that size, as fast as they are taken. */
function sendInParts(url: string, body: Buffer, partBytes: number, headers: Record<string, string>) {
  const request = httpRequest(url, { method: "POST", headers, agent: false });
  const closed = new Promise<void>((resolve) => request.once("close", resolve));
  request.on("error", () => undefined).on("response", (response) => response.resume());
  let written = 0;
  const write = (): void => {
    while (written < body.length) {
      const part = body.subarray(written, written + partBytes);
      written += part.length;
      if (!request.write(part)) return void request.once("drain", write);
    }
    request.end();
  };
  write();
  return { closed, writtenBytes: () => written, destroy: () => void request.destroy() };
}

/** A server for one request. */
async function startServer(scheme: string, handle: RequestListener): Promise<string> {
  const server = scheme === "https" ? createTlsServer(await tlsOptions(), handle) : createServer(handle);
  const port = await listening(server);
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `${scheme}://127.0.0.1:${port}`;
}

async function tlsOptions(): Promise<{ cert: string; key: string }> {
  const { certPath, keyPath } = await makeCertificate(certificateFolder(), "peer");
  const [cert, key] = [readFileSync(certPath, "utf8"), readFileSync(keyPath, "utf8")];
  trustCertificate(cert);
  return { cert, key };
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return (server.address() as AddressInfo).port;
}

/** A peer that reads the beginning of a request and no more, until it is told to say `answer` and to read on. */
async function startStubbornPeer(answer: string) {
  const pieces: Buffer[] = [];
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.once("data", (first: Buffer) => {
      pieces.push(first);
      socket.pause();
    });
  });
  const port = await listening(server);
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${port}`,
    readOn: () => {
      for (const socket of sockets) {
        socket.write(answer);
        socket.on("data", (piece: Buffer) => pieces.push(piece)).resume();
      }
    },
    /** Of the body. */
    received: () => {
      const all = Buffer.concat(pieces);
      return all.subarray(all.indexOf("\r\n\r\n") + 4);
    },
  };
}

/** Resolves when a number has stopped to change. */
async function stands(count: () => number): Promise<void> {
  let before = -1;
  await eventually(async () => {
    const same = before === count();
    before = count();
    await delay(150);
    return same;
  });
}

describe.skipIf(uwsProblem !== undefined)("pieces of bodies in buffers of the pool", () => {
  const startTo = (...ingest: string[]) => startEdge({ driver: "uws", ingest, times: QUIET });

  test("reach the peer as they came, and all buffers come back", async () => {
    const peer = await startPeer((seen, response) => void response.end(seen.body));
    const edge = await startTo(peer.url);
    const bodies = Array.from({ length: 12 }, (_, which) =>
      patterned([20_000, 300_000, MAX_KEPT_BYTES, 3 * MIB][which % 4] ?? 0, which),
    );
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all(bodies.map((body) => ask(`${edge.url}/v1/ingest`, { headers: KEY, body })));
      expect(answers.map((answer, which) => answer.body.equals(bodies[which] ?? Buffer.alloc(0)))).toEqual(
        bodies.map(() => true),
      );
    }
    await eventually(() => pool.out === 0);
    expect(pool.returned).toBeGreaterThan(bodies.length);
  });

  test.each(["http", "https"])("are not used again while a slow peer has not taken them (%s)", async (scheme) => {
    const body = patterned(16 * MIB);
    const arrived: Buffer[] = [];
    const url = await startServer(scheme, (message, response) => {
      void delay(300).then(async () => {
        for await (const chunk of message) {
          arrived.push(chunk as Buffer);
          if (arrived.length % 16 === 0) await delay(1);
        }
        response.end("ok");
      });
    });
    const edge = await startTo(url);
    // Small chunks, as a socket takes several of them before it says that it is full.
    await sendInParts(`${edge.url}/v1/ingest`, body, 30_000, { "transfer-encoding": "chunked" }).closed;
    expect(Buffer.concat(arrived).equals(body)).toBe(true);
    await eventually(() => pool.out === 0);
    expect(pool.returned).toBeGreaterThan(100);
  });

  test("are sent again as they came after a peer broke off in the middle", async () => {
    const broken = await startRawPeer((message) => void message.once("data", () => message.socket.resetAndDestroy()));
    const whole = await startPeer();
    const edge = await startTo(broken.url, whole.url);
    const bodies = Array.from({ length: 30 }, (_, which) => patterned(MAX_KEPT_BYTES - 1, which));
    for (const body of bodies) expect((await ask(`${edge.url}/v1/ingest`, { headers: KEY, body })).status).toBe(200);
    expect(whole.seen.map(({ body }, which) => body.equals(bodies[which] ?? Buffer.alloc(0)))).toEqual(
      bodies.map(() => true),
    );
    expect(broken.begun).toBeGreaterThan(0);
    expect(pool.returned).toBeGreaterThan(0);
  });

  test.each([
    ["has begun to answer", "HTTP/1.1 413 Payload Too Large\r\nContent-Length: 100000\r\n\r\ntoo "],
    ["was left by the client", ""],
  ])("stay as they are for a peer that reads on after it %s", async (_when, answer) => {
    // More than the buffers of two connections take.
    const body = patterned(60 * MIB);
    const peer = await startStubbornPeer(answer);
    const other = await startPeer();
    const edge = await startEdge({ driver: "uws", ingest: [peer.url], query: [other.url], times: QUIET });
    const sending = sendInParts(`${edge.url}/v1/ingest`, body, 200_000, { "content-length": String(body.length) });
    // Until all that lies between the two is full.
    await stands(() => sending.writtenBytes());
    if (answer === "") sending.destroy();
    peer.readOn();
    // These take whatever buffers came back.
    for (let i = 1; i < 9; i++) await ask(`${edge.url}/v1/query`, { body: patterned(MIB, i) });
    await stands(() => peer.received().length);
    const received = peer.received();
    expect(received.length).toBeGreaterThan(MIB);
    expect(received.equals(body.subarray(0, received.length))).toBe(true);
    expect(received.length).toBeLessThan(body.length);
    sending.destroy();
    // Only the one that was left to the socket is forgotten.
    await eventually(() => pool.out <= 1);
  });
});
