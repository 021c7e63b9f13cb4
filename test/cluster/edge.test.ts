import { readFileSync } from "node:fs";
import { createServer, request as httpRequest, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { ingest, query, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";
import { defer, start, startEdge, stopAll } from "./edge.test-kit.ts";
import { delay, eventually } from "../../src/core/waiting.test-kit.ts";

const MIB = 1024 * 1024;

afterEach(stopAll);

/** A peer that streams, or swallows, as much as it is asked for. */
async function startStreaming(totalBytes: number): Promise<string> {
  const piece = Buffer.alloc(256 * 1024, "x");
  const server: Server = createServer((message, response) => {
    if (message.url === "/health") return void response.end();
    let sentBytes = 0;
    const write = (): void => {
      while (sentBytes < totalBytes) {
        sentBytes += piece.length;
        if (!response.write(piece)) return void response.once("drain", write);
      }
      response.end();
    };
    message.resume();
    message.once("end", message.url === "/v1/query" ? write : () => void response.end("taken"));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  defer(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const CLIENTS = 4;
const ANSWER_BYTES = 64 * MIB;
const UPLOAD_BYTES = 60 * MIB;
/**
 * Of each pair of sockets an edge holds some hundred KiB, and the beginning of each upload: some MiB in all. What it grows
 * by is what was freed and is not collected or given back yet: about 50 MiB, of which V8 lets 64 lie outside its heap.
 * Without bounds the clients that take nothing would have it hold all answers, 256 MiB, and a slow peer all uploads,
 * 240 MiB; and 1 GB passes through, so a seventh of it that stays is found as well.
 */
const MOST_GROWN_BYTES = 192 * MIB;
/** The allocators keep little of what is freed: what is measured is what the edge holds. */
const HOLD_LITTLE = { MALLOC_ARENA_MAX: "1", NODE_OPTIONS: "--max-semi-space-size=1" };

const residentBytes = (pid: number) => Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4096;

function send(url: string, body: Buffer): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { method: "POST", agent: false }, resolve).once("error", reject).end(body);
  });
}

async function lengthOf(answer: IncomingMessage): Promise<number> {
  let receivedBytes = 0;
  for await (const chunk of answer) receivedBytes += (chunk as Buffer).length;
  return receivedBytes;
}

test.runIf(process.platform === "linux")(
  "the memory of an edge does not grow with what passes through",
  async () => {
    const edge = await startEdge([await startStreaming(ANSWER_BYTES)], HOLD_LITTLE);
    const upload = Buffer.alloc(UPLOAD_BYTES, "u");
    const samples: number[] = [];
    const timer = setInterval(() => samples.push(residentBytes(edge.pid)), 20);
    const idleBytes = residentBytes(edge.pid);
    const round = async (pauseMs: number) => {
      const answers = await Promise.all(
        Array.from({ length: CLIENTS }, () => send(`${edge.url}/v1/query`, Buffer.from("q"))),
      );
      // Clients that take nothing for a while: a buffer without a bound would fill.
      await delay(pauseMs);
      // Together: who waited for the others would be taken for gone on a slow machine.
      const lengths = await Promise.all(answers.map(async (answer) => [await lengthOf(answer), answer.complete]));
      expect(lengths).toEqual(answers.map(() => [ANSWER_BYTES, true]));
      const taken = await Promise.all(Array.from({ length: CLIENTS }, () => send(`${edge.url}/v1/ingest`, upload)));
      for (const answer of taken) answer.resume();
    };
    await round(700);
    await round(0);
    clearInterval(timer);
    expect(Math.max(...samples) - idleBytes).toBeLessThan(MOST_GROWN_BYTES);
  },
  120_000,
);

test("SIGTERM at an edge finishes what is in flight", async () => {
  const release = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const server = createServer((message, response) => {
    if (message.url === "/health") return void response.end();
    if (message.headers["x-request-id"] !== "held") return void response.end('{"at":"once"}');
    response.write("first ");
    begun.resolve();
    void release.promise.then(() => response.end("last"));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  defer(async () => {
    server.closeAllConnections();
    server.close();
  });
  const edge = await startEdge([`http://127.0.0.1:${(server.address() as AddressInfo).port}`], {
    ENGINE_DRAIN_NOTICE_SECS: "1",
  });
  const answer = fetch(`${edge.url}/v1/query`, {
    method: "POST",
    headers: { "X-Request-ID": "held" },
    body: "q",
  }).then((response) => response.text());
  await begun.promise;
  const stopped = edge.stop("SIGTERM");
  await eventually(async () => (await fetch(`${edge.url}/health`)).status === 503);
  // It says so first, and refuses later.
  await eventually(async () => (await query(edge.url, "SELECT 1")).status === 503);
  release.resolve();
  expect(await answer).toBe("first last");
  expect(await stopped).toEqual({ code: 0, signal: null });
  expect(edge.log()).not.toContain("stopping before everything was drained");
});

test("a name that is no role gets a warning and runs everything", async () => {
  const engine = await start({ ENGINE_ROLES: "edge,nonsense", ENGINE_QUERY_PEERS: "http://127.0.0.1:1" });
  expect(engine.log()).toContain(
    'ENGINE_ROLES names no role of this version (\\"nonsense\\"); this server runs everything',
  );
  expect(engine.log()).toContain("ENGINE_QUERY_PEERS has no effect");
  expect((await ingest(engine.url, "t", '{"body":"x"}\n')).status).toBe(200);
  expect(await rowsOf(engine.url, "SELECT body FROM t")).toEqual([{ body: "x" }]);
});

test.each(["query", "ingest", "compaction", "worker", "edge"])(
  "the role %s is refused on a catalog of this machine",
  async (role) => {
    const { home, remove } = await temporaryHome();
    defer(remove);
    await expect(startEngine({ home, env: { ENGINE_ROLES: role } })).rejects.toThrow(
      new RegExp(
        `exit code 2[^]*ENGINE_ROLES is ${role}, a part of a cluster, whose servers share a PostgreSQL catalog`,
      ),
    );
  },
);
