/** For the tests of forwarding: an edge in this process, and peers that do as they are told. */
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { FailureLimit } from "../../src/auth/failure-limit.ts";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { silentLog, type Log } from "../../src/core/log.ts";
import { createMetrics, type Metrics } from "../../src/core/metrics.ts";
import { systemRandom } from "../../src/core/random.ts";
import { PEER_TIMES, type PeerTimes } from "../../src/io/http/client/peer.ts";
import { Peers, type LookupAll } from "../../src/io/http/client/peers.ts";
import { ReplayBudget } from "../../src/io/http/client/replayable-body.ts";
import { createHttpServer } from "../../src/io/http/create.ts";
import { createApp } from "../../src/server/app.ts";
import { engineRoutes } from "../../roles/routes.ts";
import { asEngineError, errorResponse } from "../../src/server/error-response.ts";
import { createForwardCall } from "../../src/server/edge/forward-call.ts";
import { newEdgeId } from "../../src/server/edge/forward-headers.ts";
import { routesOf, type RouteDefinition } from "../../src/server/route.ts";

export const MIB = 1024 * 1024;

const closers: (() => Promise<void>)[] = [];

export async function stopAll(): Promise<void> {
  for (const close of closers.splice(0).toReversed()) await close();
}

/** Health that is looked at rarely, so that only what requests meet counts. */
export const QUIET: Partial<PeerTimes> = { healthEveryMs: 600_000, ejectMs: 600_000, maxEjectMs: 600_000 };
/** Everything as fast as a test wants it. */
export const QUICK: Partial<PeerTimes> = {
  healthEveryMs: 30,
  healthTimeoutMs: 200,
  connectTimeoutMs: 500,
  ejectMs: 40,
  maxEjectMs: 320,
  resolveEveryMs: 30,
};

export type EdgeOptions = {
  driver?: "uws" | "node";
  query?: readonly string[];
  ingest?: readonly string[];
  times?: Partial<PeerTimes>;
  lookup?: LookupAll;
  origins?: readonly string[];
  log?: Log;
  /** Further rows that peers for queries answer. */
  routes?: readonly RouteDefinition<never>[];
};

export type TestEdge = { url: string; port: number; metrics: Metrics; failures: unknown[] };

export async function startEdge(options: EdgeOptions): Promise<TestEdge> {
  const failures: unknown[] = [];
  const metrics = createMetrics();
  const ports = { clock: systemClock, random: systemRandom, log: options.log ?? silentLog, metrics };
  const newId = uuidV7Source(systemClock, systemRandom);
  const budget = new ReplayBudget(8 * MIB);
  const forwardTo = async (upstream: string, urls: readonly string[] | undefined) => {
    if (urls === undefined) return undefined;
    const lookup = options.lookup ?? (() => Promise.reject(new Error("no names here")));
    const peers = new Peers({ ...ports, upstream, urls, lookup, times: { ...PEER_TIMES, ...options.times } });
    await peers.start();
    closers.push(() => peers.stop());
    return { forward: createForwardCall({ peers, upstream, metrics, budget, edgeId: newEdgeId(newId) }) };
  };
  const query = await forwardTo("query", options.query);
  const authenticator = createAuthenticator({ isOn: false, backends: [], failures: new FailureLimit(ports) });
  const app = createApp({
    ...ports,
    newId,
    browsers: { origins: options.origins, ownOrigins: [], hosts: [] },
    isTrustedProxy: () => false,
    authenticator,
    isDraining: () => false,
    routes: [
      ...(await engineRoutes({
        service: { metrics, authenticator, version: "1.2.3", isDraining: () => false },
        query,
        ingest: await forwardTo("ingest", options.ingest),
        access: undefined,
        fabric: query,
        exports: undefined,
        deletion: undefined,
      })),
      ...routesOf(options.routes ?? [], query),
    ],
  });
  const server = createHttpServer({
    driver: options.driver ?? "node",
    handler: app.handler,
    renderError: (error) => errorResponse(asEngineError(error, "none"), "none"),
    reportFailure: (error) => failures.push(error),
    maxHeaderBytes: 64 * 1024,
    headersTimeoutMs: 15_000,
    idleTimeoutMs: 60_000,
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  closers.push(() => server.close());
  return { url: `http://127.0.0.1:${port}`, port, metrics, failures };
}

export type Seen = { method: string; url: string; headers: IncomingMessage["headers"]; body: Buffer };

export type TestPeer = {
  url: string;
  port: number;
  /** Requests that came whole, without those for health. */
  seen: Seen[];
  /** Requests whose head came. */
  begun: number;
  /** What /health answers; 0: nothing. */
  health: number;
  /** Times that /health was asked. */
  checks: number;
  /** Stops listening and cuts every connection, as a process that is killed does. */
  kill(): Promise<void>;
  /** Listens again where it did. */
  revive(): Promise<void>;
};

type PeerHandler = (request: IncomingMessage, response: ServerResponse, peer: TestPeer) => void;

/** A peer whose every answer is what the handler makes of the request, whose body the handler reads if it wants it. */
export async function startRawPeer(handle: PeerHandler, host = "127.0.0.1", atPort = 0): Promise<TestPeer> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((request, response) => {
    response.on("error", () => undefined);
    request.on("error", () => undefined);
    if (request.url === "/health") {
      peer.checks++;
      // 0: not at all.
      if (peer.health > 0) response.writeHead(peer.health).end();
      return;
    }
    peer.begun++;
    handle(request, response, peer);
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).once("close", () => sockets.delete(socket));
  });
  const listen = (port: number): Promise<number> =>
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, () => resolve((server.address() as AddressInfo).port));
    });
  const kill = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of sockets) socket.resetAndDestroy();
    await closed;
  };
  const port = await listen(atPort);
  const revive = async (): Promise<void> => void (await listen(port));
  const state = { seen: [], begun: 0, health: 200, checks: 0, kill, revive };
  const peer: TestPeer = Object.assign(state, { url: `http://${host}:${port}`, port });
  closers.push(kill);
  return peer;
}

/** A peer that reads the whole body, notes the request, and answers with `reply`. */
export function startPeer(
  reply: (seen: Seen, response: ServerResponse, peer: TestPeer) => void = (_seen, response) => void response.end("ok"),
  host = "127.0.0.1",
  atPort = 0,
): Promise<TestPeer> {
  const handle: PeerHandler = (request, response, peer) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const seen: Seen = { method, url, headers, body: Buffer.concat(chunks) };
      peer.seen.push(seen);
      reply(seen, response, peer);
    });
  };
  return startRawPeer(handle, host, atPort);
}

export type RawAnswer = { status: number; headers: IncomingMessage["headers"]; body: Buffer; complete: boolean };

/** One request by node's own client; `complete` is false when the answer broke off. */
export function ask(
  url: string,
  options: { method?: string; headers?: Record<string, string>; body?: string | Uint8Array } = {},
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const { method = "POST", headers = {}, body } = options;
    const request = httpRequest(url, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", () => undefined);
      response.on("close", () => {
        const { statusCode: status = 0, headers, complete } = response;
        resolve({ status, headers, body: Buffer.concat(chunks), complete });
      });
    });
    request.on("error", reject);
    // As bytes: with text node writes the head in the text's encoding.
    request.end(body === undefined ? undefined : Buffer.from(body));
  });
}

/** The value of a metric, summed over the series that have these labels. */
export async function metric(metrics: Metrics, name: string, labels: Record<string, string> = {}): Promise<number> {
  const text = await metrics.registry.metrics();
  const lines = text.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  const wanted = lines.filter((line) =>
    Object.entries(labels).every(([key, value]) => line.includes(`${key}="${value}"`)),
  );
  return wanted.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}
