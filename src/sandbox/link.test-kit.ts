/** For the tests of the link: a gateway that nodes connect to, on a real server, and nodes. */
import { Readable } from "node:stream";
import { WebSocket } from "ws";
import { systemClock } from "../core/clock.ts";
import { silentLog } from "../core/log.ts";
import { createMetrics } from "../core/metrics.ts";
import { systemRandom } from "../core/random.ts";
import { createHttpServer } from "../io/http/create.ts";
import type { HttpServer } from "../io/http/http.ts";
import type { NodeCall, NodeCallHandler } from "./contract/link/calls.ts";
import { Dialler, type DiallerOptions } from "./node/link/dialler.ts";
import { LINK_LIMITS, LINK_PROTOCOL } from "./contract/link/link.ts";
import { NodeDirectory } from "./control/link/node-directory.ts";
import { eventually } from "../core/waiting.test-kit.ts";

export const MIB = 1024 * 1024;

const closers: (() => Promise<void> | void)[] = [];

export async function stopAll(): Promise<void> {
  for (const close of closers.splice(0).toReversed()) await close();
}

export type TestGateway = { url: string; directory: NodeDirectory; server: HttpServer };

/** Whoever connects is the node that its token names. */
export async function startGateway(driver: "node" | "uws", port = 0): Promise<TestGateway> {
  const directory = new NodeDirectory({ clock: systemClock, log: silentLog, metrics: createMetrics() });
  const server = createHttpServer({
    driver,
    handler: async (request) => {
      const nodeId = request.header("authorization")?.replace("Bearer ", "") ?? "";
      if (request.webSocket?.protocols.includes(LINK_PROTOCOL) !== true) return { status: 426, headers: {} };
      const run = (connection: Parameters<NodeDirectory["attach"]>[1]) => directory.attach(nodeId, connection);
      return { status: 101, headers: {}, webSocket: { protocol: LINK_PROTOCOL, limits: LINK_LIMITS, run } };
    },
    renderError: () => ({ status: 500, headers: {} }),
    maxHeaderBytes: 16 * 1024,
    headersTimeoutMs: 15_000,
    idleTimeoutMs: 60_000,
  });
  const address = await server.listen({ host: "127.0.0.1", port });
  closers.push(() => server.close());
  return { url: `http://127.0.0.1:${address.port}`, directory, server };
}

export type TestNode = { dialler: Dialler; orders: string[] };

/** A node that is connected to the gateways. */
export async function startNode(
  nodeId: string,
  gateways: readonly TestGateway[],
  handler: NodeCallHandler,
  more: Partial<DiallerOptions> = {},
): Promise<TestNode> {
  const orders: string[] = [];
  const dialler = new Dialler({
    handler,
    onDesiredState: (sandboxId) => orders.push(sandboxId),
    token: nodeId,
    userAgent: "test",
    checkUrl: () => undefined,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    ...more,
  });
  closers.push(() => dialler.stop());
  dialler.dial(gateways.map(({ url }) => url));
  await eventually(() => dialler.connected === gateways.length);
  return { dialler, orders };
}

/**
 * A WebSocket to a gateway, for one that does what a node never would. `prepare` is called before the first message can
 * come.
 */
export async function startRogue(
  { url }: TestGateway,
  nodeId: string,
  prepare: (socket: WebSocket) => void = () => undefined,
): Promise<WebSocket> {
  const socket = new WebSocket(url.replace("http", "ws"), [LINK_PROTOCOL], {
    headers: { authorization: `Bearer ${nodeId}` },
    perMessageDeflate: false,
  });
  prepare(socket);
  closers.push(() => socket.terminate());
  await new Promise<void>((resolve, reject) => {
    socket.once("open", resolve).once("error", reject);
  });
  socket.on("error", () => undefined);
  return socket;
}

export function call(more: Partial<NodeCall> = {}): NodeCall {
  return { method: "stats", sandboxId: "s1", params: {}, signal: new AbortController().signal, ...more };
}

/** So many bytes, no faster than they are taken. */
export function bytes(sizeBytes: number, onPiece: () => void = () => undefined): Readable {
  const piece = Buffer.alloc(64 * 1024, "0123456789abcdef");
  const pieces = function* (): Generator<Buffer> {
    for (let leftBytes = sizeBytes; leftBytes > 0; leftBytes -= piece.length) {
      onPiece();
      yield leftBytes < piece.length ? piece.subarray(0, leftBytes) : piece;
    }
  };
  return Readable.from(pieces(), { objectMode: false, highWaterMark: 64 * 1024 });
}

export async function lengthOf(body: Readable | undefined): Promise<number> {
  let sizeBytes = 0;
  if (body !== undefined) for await (const piece of body) sizeBytes += (piece as Buffer).length;
  return sizeBytes;
}
