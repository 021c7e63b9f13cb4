import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { corpus } from "../../src/io/http/corpus.test-kit.ts";
import { uwsProblem } from "../../src/io/http/http.test-kit.ts";
import { ingest, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine, type EngineOptions } from "../support/engine.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function start(options: Partial<EngineOptions> = {}): Promise<Engine> {
  const { home, remove } = await temporaryHome();
  closers.push(remove);
  const engine = await startEngine({ home, ...options });
  closers.push(() => engine.stop());
  return engine;
}

function open({ url }: Engine): Socket {
  const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1" });
  // A reset is one way to be refused.
  socket.on("error", () => undefined);
  closers.push(() => socket.destroy());
  return socket;
}

/** Everything that is answered to these bytes until the connection ends. */
function exchange(engine: Engine, bytes: string | Uint8Array): Promise<string> {
  const socket = open(engine);
  let received = "";
  socket.on("data", (data) => (received += data.toString()));
  socket.write(bytes);
  return new Promise((resolve) => socket.once("close", () => resolve(received)));
}

type Raw = { status: number; body: Record<string, unknown> };

function parsed(answer: string): Raw {
  const [, status, body = ""] = /^HTTP\/1\.1 (\d+) [^]*?\r\n\r\n([^]*)$/.exec(answer) ?? [];
  return { status: Number(status), body: JSON.parse(body) as Record<string, unknown> };
}

/** A request whose header bytes are those given. */
async function ingestRaw(engine: Engine, headers: Record<string, Uint8Array | string>, row: string): Promise<Raw> {
  const all = { Host: "localhost", Connection: "close", "Content-Length": String(row.length), ...headers };
  const lines = Object.entries(all).flatMap(([name, value]) => [`${name}: `, value, "\r\n"]);
  const pieces = ["POST /v1/ingest HTTP/1.1\r\n", ...lines, "\r\n", row].map((piece) => Buffer.from(piece));
  return parsed(await exchange(engine, Buffer.concat(pieces)));
}

describe("header bytes", () => {
  test("a key is taken as it is or refused, so that no two are one", async () => {
    const engine = await start();
    const send = (key: string, row: string) =>
      ingestRaw(engine, { "X-Table": "orders", "X-Idempotency-Key": key }, `{"body":"${row}"}\n`);
    expect(await send("commande-", "first")).toMatchObject({ status: 200, body: { replayed: false } });
    for (const key of ["commande-é", "commande-è", "écommande-", "\u00a0commande-", "commande-\u00a0"]) {
      expect(await send(key, key)).toMatchObject({ status: 400, body: { error: { code: "invalid_header" } } });
    }
    expect(await send("commande-", "again")).toMatchObject({ status: 200, body: { replayed: true } });
    expect(await rowsOf(engine.url, "SELECT body FROM orders")).toEqual([{ body: "first" }]);
  });

  test("what is not UTF-8 is refused, and stores nothing", async () => {
    const engine = await start();
    for (const name of ["X-Idempotency-Key", "X-Table", "X-Database"]) {
      for (const bytes of [[0xe9], [0xc3], [0xc0, 0xaf], [0xed, 0xa0, 0x80]]) {
        const value = Buffer.concat([Buffer.from("commande"), Buffer.from(bytes)]);
        const { status, body } = await ingestRaw(engine, { "X-Table": "t", [name]: value }, '{"body":"x"}\n');
        expect(status).toBe(400);
        expect(body).toMatchObject({ error: { code: "invalid_header", request_id: expect.any(String) } });
      }
    }
    const schema = await (await fetch(`${engine.url}/v1/catalog/schema`)).text();
    expect(schema).not.toContain("commande");
  });

  test("a name of a database or table is never another one's", async () => {
    const engine = await start();
    expect((await ingest(engine.url, "t", '{"body":"seen"}\n', { "X-Database": "hidden" })).status).toBe(200);
    for (const database of ["éhidden", "hiddené", "\u00a0hidden"]) {
      const answer = await ingestRaw(engine, { "X-Table": "t", "X-Database": database }, '{"body":"x"}\n');
      expect([database, answer.status >= 400]).toEqual([database, true]);
    }
    expect(await rowsOf(engine.url, "SELECT body FROM t", "hidden")).toEqual([{ body: "seen" }]);
  });
});

test("every request that is refused is told why in the one shape of errors", async () => {
  const engine = await start();
  const refused = corpus.filter(({ served }) => served.length === 0);
  expect(refused.length).toBeGreaterThan(80);
  for (const { name, bytes } of refused) {
    const { status, body } = parsed(await exchange(engine, forServer(bytes)));
    const error = { code: expect.any(String), message: expect.any(String), request_id: expect.any(String) };
    expect({ name, status, body }).toEqual({ name, status: expect.any(Number), body: { error } });
    expect([400, 431]).toContain(status);
  }
});

/** The same for a name of the server, and a route that reads the body. */
function forServer(bytes: Buffer): Buffer {
  const text = bytes.toString("latin1").replaceAll(/Host: a(?=[\r\n])/g, "Host: localhost");
  return Buffer.from(text.replace("POST /a HTTP/1.1\r\n", "POST /v1/ingest HTTP/1.1\r\nX-Table: t\r\n"), "latin1");
}

describe("HTTP/1.0, as proxies send it", () => {
  const nginx = (lines: string, body = "") =>
    `${lines}\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

  test("ingests, queries, and ends a streamed answer with the connection", async () => {
    const engine = await start();
    const head = "POST /v1/ingest HTTP/1.0\r\nX-Table: t";
    expect(parsed(await exchange(engine, nginx(head, '{"body":"x"}\n')))).toMatchObject({ status: 200 });
    const answer = await exchange(engine, nginx("POST /v1/query HTTP/1.0", "SELECT body FROM t"));
    expect(answer).not.toMatch(/transfer-encoding/i);
    expect(answer.endsWith('\r\n\r\n{"body":"x"}\n')).toBe(true);
  });

  test("goes on with a connection when it is asked to", async () => {
    const engine = await start();
    const socket = open(engine);
    let received = "";
    socket.on("data", (data) => (received += data.toString()));
    for (let asked = 1; asked <= 3; asked++) {
      socket.write("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
      await eventually(() => received.split("HTTP/1.1 200").length === asked + 1);
    }
    expect(received).toMatch(/\r\nConnection: keep-alive\r\n/i);
    expect(socket.closed).toBe(false);
  });
});

describe.skipIf(uwsProblem !== undefined)("the driver that does not read strictly", () => {
  test("warns on loopback, and listens nowhere else", async () => {
    const env = { ENGINE_HTTP_DRIVER: "uws" };
    const engine = await start({ env });
    expect(engine.log()).toContain("does not read HTTP strictly");
    const reachable = { ...env, ENGINE_LOCAL_PASSWORD: "a password of one's own" };
    await expect(start({ env: reachable, host: "0.0.0.0" })).rejects.toThrow(/it may listen on 127\.0\.0\.1 only/);
  });
});

const hasLimits = process.platform === "linux";

describe.skipIf(!hasLimits)("a server with few file descriptors", () => {
  test("refuses connections and finishes the requests that it has accepted", async () => {
    const engine = await start({ prefix: ["sh", "-c", 'ulimit -n 256; exec "$0" "$@"'] });
    expect((await ingest(engine.url, "t", '{"body":"before"}\n')).status).toBe(200);
    // Requests that are accepted before, and are sent to their end when there is no connection left.
    const accepted = Array.from({ length: 20 }, (_, i) => {
      const row = `{"body":"accepted ${i}"}\n`;
      const socket = open(engine);
      let received = "";
      socket.on("data", (data) => (received += data.toString()));
      const head = `POST /v1/ingest HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Table: t_${i % 4}`;
      socket.write(`${head}\r\nContent-Length: ${row.length}\r\n\r\n{`);
      const answer = new Promise<string>((resolve) => socket.once("close", () => resolve(received)));
      return { finish: () => socket.write(row.slice(1)), answer };
    });
    const querying = open(engine);
    let found = "";
    querying.on("data", (data) => (found += data.toString()));
    querying.write("POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n\r\nSELECT body ");
    await new Promise((resolve) => setTimeout(resolve, 300));

    const idle = Array.from({ length: 600 }, () => open(engine));
    await eventually(() => idle.filter((socket) => socket.closed).length >= 400);
    const isOpen = (socket: Socket) => !socket.closed;
    expect(idle.filter(isOpen).length).toBeGreaterThan(50);

    for (const { finish } of accepted) finish();
    for (const { answer } of accepted) expect(parsed(await answer)).toMatchObject({ status: 200 });
    querying.write("FROM t  ");
    await eventually(() => found.includes("before"));
    expect(found).toContain("HTTP/1.1 200");
    expect(engine.log()).toContain("connections are refused");
    expect(engine.log()).not.toContain("EMFILE");
    // The clients that do nothing leave, and others come in.
    for (const socket of idle) socket.destroy();
    querying.destroy();
    await eventually(async () => (await fetch(`${engine.url}/health`).catch(() => undefined))?.status === 200);
    expect(await rowsOf(engine.url, "SELECT count(*) AS n FROM t_0")).toEqual([{ n: 5 }]);
  });
});
