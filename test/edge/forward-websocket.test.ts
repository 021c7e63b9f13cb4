import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { FailureLimit } from "../../src/auth/failure-limit.ts";
import { systemClock } from "../../src/core/clock.ts";
import { EngineError } from "../../src/core/errors.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { silentLog } from "../../src/core/log.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import { systemRandom } from "../../src/core/random.ts";
import { uwsProblem } from "../../src/io/http/http.test-kit.ts";
import type { WebSocketConnection } from "../../src/io/http/websocket.ts";
import { serveApp } from "../../src/server/app.test-kit.ts";
import { bindRoute, defineRoute, webSocketResponse, type Call } from "../../src/server/route.ts";
import { ask, metric, MIB, QUIET, startEdge, startPeer, stopAll } from "./edge.test-kit.ts";
import { delay, eventually } from "../../src/core/waiting.test-kit.ts";

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
  await stopAll();
});

type Shell = (connection: WebSocketConnection, call: Call) => Promise<void>;

const SHELL = defineRoute({
  method: "GET",
  path: "/v1/things/{id}/shell",
  role: "read",
  webSocket: true,
  tag: "",
  summary: "",
  responses: [{ status: 101, description: "A shell." }],
  errors: [],
  handler:
    ({ run, protocol }: { run: Shell; protocol: string | undefined }) =>
    async (call) => {
      if (call.request.path.includes("missing")) throw new EngineError("not_found", "there is no such thing");
      return webSocketResponse({
        ...(protocol === undefined ? {} : { protocol }),
        run: (connection) => run(connection, call),
      });
    },
});

/** A peer that answers the row. */
async function startShells(run: Shell, protocol?: string): Promise<string> {
  const ports = { clock: systemClock, random: systemRandom, log: silentLog, metrics: createMetrics() };
  const peer = await serveApp({
    ...ports,
    routes: [bindRoute(SHELL, { run, protocol })],
    newId: uuidV7Source(systemClock, systemRandom),
    authenticator: createAuthenticator({ isOn: false, backends: [], failures: new FailureLimit(ports) }),
  });
  closers.push(() => peer.close());
  return peer.url;
}

const echo: Shell = async (connection) => {
  for await (const message of connection.messages()) await connection.send(message);
  await connection.closed;
};

/** As it goes over the wire: node writes the characters of a header as bytes. */
const UTF8_E_ACUTE = Buffer.from("é").toString("latin1");

type Opened = { client: WebSocket; closed: Promise<[number, string]> };

async function open(url: string, path: string, protocols: string[] = [], headers = {}): Promise<Opened> {
  const client = new WebSocket(url.replace("http", "ws") + path, protocols, { headers, perMessageDeflate: false });
  closers.push(() => client.terminate());
  const closed = new Promise<[number, string]>((resolve) => {
    client.once("close", (code, reason) => resolve([code, reason.toString()]));
  });
  await new Promise<void>((resolve, reject) => {
    client.once("open", resolve).once("error", reject);
  });
  client.on("error", () => undefined);
  return { client, closed };
}

describe.each(uwsProblem === undefined ? (["node", "uws"] as const) : (["node"] as const))(
  "an edge on %s",
  (driver) => {
    it("carries a WebSocket between client and peer", async () => {
      let asked: Call | undefined;
      const peer = await startShells((connection, call) => ((asked = call), echo(connection, call)), "shell.1");
      const edge = await startEdge({ driver, query: [peer], times: QUIET, routes: [SHELL] });
      const offered = ["other", "shell.1"];
      const { client, closed } = await open(edge.url, "/v1/things/a%20b%2Fc/shell?x=%41&y", offered, {
        "X-Mine": UTF8_E_ACUTE,
      });
      expect(client.protocol).toBe("shell.1");
      expect([asked?.request.path, asked?.request.query]).toEqual(["/v1/things/a%20b%2Fc/shell", "x=%41&y"]);
      expect(asked?.request.header("via")).toMatch(/^1\.1 engine-/);
      expect(asked?.request.header("x-forwarded-for")).toBe("127.0.0.1");
      const received: string[] = [];
      client.on("message", (data: Buffer, isBinary) =>
        received.push(`${isBinary ? "bytes" : "text"} ${data.toString()}`),
      );
      client.send("é");
      client.send(Buffer.from("raw"));
      await eventually(() => received.length === 2);
      expect(received).toEqual(["text é", "bytes raw"]);
      client.close(4_005, "done");
      expect(await closed).toEqual([4_005, "done"]);
      await eventually(async () => (await metric(edge.metrics, "engine_edge_in_flight")) === 0);
      expect(await metric(edge.metrics, "engine_edge_requests_total", { outcome: "answered" })).toBe(1);
      expect(await metric(edge.metrics, "engine_edge_bytes_total", { direction: "in" })).toBeGreaterThan(3);
      expect(edge.failures).toEqual([]);
    });

    it("carries 64 MiB to a slow client with nothing lost and little kept", async () => {
      const piece = Buffer.alloc(64 * 1024, "0123456789");
      let sentBytes = 0;
      const peer = await startShells(async (connection) => {
        for (let i = 0; i < 1_024; i++) {
          await connection.send(piece);
          sentBytes += piece.length;
        }
      });
      const edge = await startEdge({ driver, query: [peer], times: QUIET, routes: [SHELL] });
      const { client, closed } = await open(edge.url, "/v1/things/a/shell");
      client.pause();
      const hash = createHash("sha1");
      client.on("message", (data: Buffer) => hash.update(data));
      await delay(400);
      expect(sentBytes).toBeLessThan(32 * MIB);
      client.resume();
      expect((await closed)[0]).toBe(1_000);
      expect(hash.digest("hex")).toBe(
        createHash("sha1")
          .update(Buffer.concat(Array(1_024).fill(piece)))
          .digest("hex"),
      );
    });

    it("passes on a peer's words when it closes, and its end when it breaks", async () => {
      const peer = await startShells(async (connection) => {
        for await (const message of connection.messages()) {
          if (message === "break") connection.terminate();
          else connection.close(4_009, "enough");
        }
      });
      const edge = await startEdge({ driver, query: [peer], times: QUIET, routes: [SHELL] });
      const polite = await open(edge.url, "/v1/things/a/shell");
      polite.client.send("close");
      expect(await polite.closed).toEqual([4_009, "enough"]);
      const rude = await open(edge.url, "/v1/things/a/shell");
      rude.client.send("break");
      expect((await rude.closed)[0]).toBe(1_006);
      expect(await metric(edge.metrics, "engine_edge_requests_total", { outcome: "cut" })).toBe(1);
    });

    it("tells the peer that the client has gone", async () => {
      const gone = Promise.withResolvers<number>();
      const peer = await startShells(async (connection) => gone.resolve((await connection.closed).code));
      const edge = await startEdge({ driver, query: [peer], times: QUIET, routes: [SHELL] });
      const { client } = await open(edge.url, "/v1/things/a/shell");
      client.terminate();
      expect(await gone.promise).toBe(1_006);
    });

    it("passes refusals on as they are", async () => {
      const edge = await startEdge({ driver, query: [await startShells(echo)], times: QUIET, routes: [SHELL] });
      await expect(open(edge.url, "/v1/things/missing/shell")).rejects.toThrow("404");
      const plain = await ask(`${edge.url}/v1/things/a/shell`, { method: "GET" });
      expect([plain.status, plain.headers["sec-websocket-version"]]).toEqual([426, "13"]);
      expect(JSON.parse(plain.body.toString())).toMatchObject({ error: { code: "upgrade_required" } });
    });

    it("asks another peer where one is away or drains, and says so when there is none", async () => {
      const away = await startPeer();
      await away.kill();
      const draining = await startPeer((_seen, response) => {
        response.writeHead(503, { "X-Engine-Draining": "true" }).end();
      });
      const query = [away.url, draining.url, await startShells(echo)];
      const edge = await startEdge({ driver, query, times: QUIET, routes: [SHELL] });
      for (let i = 0; i < 5; i++) (await open(edge.url, "/v1/things/a/shell")).client.close();
      const alone = await startEdge({ driver, query: [away.url], times: QUIET, routes: [SHELL] });
      await expect(open(alone.url, "/v1/things/a/shell")).rejects.toThrow("503");
    });

    it("says so when a peer breaks the connection before it answers", async () => {
      const rude = createServer().on("upgrade", (_request, socket) => socket.destroy());
      await new Promise<void>((resolve) => rude.listen(0, "127.0.0.1", resolve));
      closers.push(() => void rude.close());
      const { port } = rude.address() as AddressInfo;
      const edge = await startEdge({ driver, query: [`http://127.0.0.1:${port}`], times: QUIET, routes: [SHELL] });
      await expect(open(edge.url, "/v1/things/a/shell")).rejects.toThrow("503");
      expect(await metric(edge.metrics, "engine_edge_requests_total", { outcome: "broken" })).toBe(1);
    });
  },
);
