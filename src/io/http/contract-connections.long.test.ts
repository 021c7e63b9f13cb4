import { afterEach, describe, expect, test } from "vitest";
import { drawnRandom } from "../../core/drawn-seed.test-kit.ts";
import { EngineError } from "../../core/errors.ts";
import { ClientGoneError, type HttpRequest, type HttpResponse } from "./http.ts";
import {
  driverOf,
  TRANSPORTS,
  bodyWithin,
  GET,
  MIB,
  post,
  RawClient,
  start,
  stopAll,
  text,
  uwsProblem,
} from "./http.test-kit.ts";
import { delay, eventually } from "../../core/waiting.test-kit.ts";

afterEach(stopAll);

/** Yields 64 KiB pieces without end, and remembers what became of it. */
function endless() {
  const seen = { pulled: 0, returned: 0 };
  const body: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        seen.pulled++;
        return { done: false, value: new Uint8Array(64 * 1024) };
      },
      return: async () => {
        seen.returned++;
        return { done: true, value: undefined };
      },
    }),
  };
  return { seen, body };
}

describe.each(TRANSPORTS)("clients that leave or linger: %s", (transport) => {
  const driver = driverOf(transport);
  const it = driver === "uws" && uwsProblem !== undefined ? test.skip : test;

  it("aborts when the client leaves in the middle of its body", async () => {
    const results: unknown[] = [];
    let begun = 0;
    const { port, server } = await start(transport, async (request) => {
      const { signal } = request;
      begun++;
      try {
        if (request.path === "/") await request.body(MIB);
        else for await (const piece of request.stream(MIB)) results.push(piece.length);
      } catch (error) {
        results.push(error, signal.reason);
      }
      return text("nobody");
    });
    for (const path of ["/", "/stream"]) {
      results.length = 0;
      begun = 0;
      const raw = new RawClient(port);
      raw.send(post(1000).replace("/", path));
      raw.send("some");
      await eventually(() => begun === 1);
      await delay(50);
      raw.socket.destroy();
      await eventually(() => results.length >= 2);
      expect(results.at(-1)).toBeInstanceOf(ClientGoneError);
      expect(results.at(-2)).toBe(results.at(-1));
    }
    await server.drain(1000);
  });

  it("aborts when the client leaves before the answer, and closes the answer's body", async () => {
    const { seen, body } = endless();
    let request: HttpRequest | undefined;
    let answer: ((response: HttpResponse) => void) | undefined;
    const { port, server, failures } = await start(transport, (given) => {
      request = given;
      return new Promise((resolve) => {
        answer = resolve;
      });
    });
    const raw = new RawClient(port);
    raw.send(`${post(4)}body`);
    await eventually(() => request !== undefined);
    const signal = request?.signal;
    expect(signal?.aborted).toBe(false);
    raw.socket.destroy();
    await eventually(() => signal?.aborted === true);
    expect(request?.signal.reason).toBeInstanceOf(ClientGoneError);
    answer?.({ status: 200, headers: {}, body });
    await eventually(() => seen.returned === 1);
    expect(seen.pulled).toBe(0);
    expect(failures).toEqual([]);
    await server.drain(1000);
  });

  it("pulls no more than a slow reader takes, and returns the iterator when it leaves", async () => {
    const { seen, body } = endless();
    let signal: AbortSignal | undefined;
    const { port, failures } = await start(transport, async (request) => {
      signal = request.signal;
      return { status: 200, headers: {}, body };
    });
    const raw = new RawClient(port, { reading: false });
    raw.send(GET);
    await delay(300);
    const pulled = seen.pulled;
    // What the two kernels keep for a connection on this machine is some MiB.
    expect(pulled * 65_536).toBeLessThan(16 * MIB);
    await delay(200);
    expect(seen.pulled).toBe(pulled);
    raw.read();
    await eventually(() => raw.receivedBytes > 40 * MIB);
    raw.socket.destroy();
    await eventually(() => seen.returned === 1);
    expect(signal?.aborted).toBe(true);
    const after = seen.pulled;
    await delay(50);
    expect([seen.pulled - after, seen.returned]).toEqual([0, 1]);
    expect(failures).toEqual([]);
  });

  it("delivers every byte of a stream to a reader that stops and starts", async () => {
    const chunkBytes = 50_000;
    const chunks = 400;
    const { port } = await start(transport, async () => ({
      status: 200,
      headers: {},
      body: (async function* () {
        for (let i = 0; i < chunks; i++) yield Buffer.alloc(chunkBytes, String.fromCharCode(97 + (i % 26)));
      })(),
    }));
    const raw = new RawClient(port, { reading: false });
    const parts: Buffer[] = [];
    raw.socket.on("data", (part: Buffer) => {
      parts.push(part);
      if (parts.length % 20 === 0) {
        raw.socket.pause();
        setTimeout(() => raw.socket.resume(), 10);
      }
    });
    raw.send(GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
    await raw.closed;
    const all = Buffer.concat(parts);
    const letters = unchunk(all.subarray(all.indexOf("\r\n\r\n") + 4));
    expect(letters.length).toBe(chunks * chunkBytes);
    for (let i = 0; i < chunks; i++) {
      expect(
        letters.subarray(i * chunkBytes, (i + 1) * chunkBytes).equals(Buffer.alloc(chunkBytes, 97 + (i % 26))),
      ).toBe(true);
    }
  });

  it("delivers a large body to a reader that begins late", async () => {
    const { port } = await start(transport, async () => ({ status: 200, headers: {}, body: new Uint8Array(30 * MIB) }));
    const raw = new RawClient(port, { reading: false });
    raw.send(GET);
    await delay(300);
    raw.read();
    await eventually(() => raw.receivedBytes > 30 * MIB);
    raw.send(GET);
    await eventually(() => raw.receivedBytes > 60 * MIB);
  });

  it("tears the connection when a stream fails midway, and answers when it fails at first", async () => {
    const { url, port, failures } = await start(transport, async (request) => ({
      status: 200,
      headers: {},
      body: (async function* () {
        if (request.path === "/first") throw new EngineError("query_failed", "at first");
        yield Buffer.from("begun");
        await delay(20);
        throw new Error("midway");
      })(),
    }));
    const response = await fetch(url);
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow("terminated");
    expect(failures).toMatchObject([{ message: "midway" }]);
    const raw = new RawClient(port);
    raw.send(GET);
    await raw.closed;
    expect(raw.received).toContain("begun");
    expect(raw.received).not.toContain("\r\n0\r\n\r\n");
    const first = await fetch(`${url}/first`);
    expect([first.status, await first.text()]).toEqual([500, '{"code":"query_failed"}']);
  });

  it("reads a streamed body no faster than it is handled", async () => {
    let received = 0;
    let proceed: (() => void) | undefined;
    const gate = new Promise<void>((resolve) => {
      proceed = resolve;
    });
    const { port } = await start(transport, async (request) => {
      for await (const piece of request.stream(128 * MIB)) {
        received += piece.length;
        await gate;
      }
      return text(`${received} bytes`);
    });
    const raw = new RawClient(port);
    raw.send(post(60 * MIB));
    for (let i = 0; i < 60; i++) raw.send(new Uint8Array(MIB));
    await delay(300);
    expect(received).toBeLessThan(2 * MIB);
    // The rest waits at the sender, but for what the kernels keep.
    expect(raw.socket.writableLength).toBeGreaterThan(20 * MIB);
    proceed?.();
    await raw.until(`${60 * MIB} bytes`);
  });

  it("drops what a handler leaves of a streamed body", async () => {
    const { port } = await start(transport, async (request) => {
      for await (const piece of request.stream(MIB)) return text(`first ${piece.length > 0}`);
      return text("empty");
    });
    const raw = new RawClient(port);
    raw.send(post(100_000));
    raw.send(new Uint8Array(50_000));
    await raw.until("first true");
    raw.send(new Uint8Array(50_000));
    raw.send(post(0));
    await raw.until("empty");
  });

  it("answers 408 to a body that stops or trickles", async () => {
    const { port, server } = await start(transport, bodyWithin(MIB), { idleTimeoutMs: 400 });
    const silent = new RawClient(port);
    silent.send(post(1000));
    silent.send("begun");
    const trickling = new RawClient(port);
    trickling.send(post(1000));
    const dripping = setInterval(() => trickling.send("x"), 50);
    const steady = new RawClient(port);
    steady.send(post(100_000));
    for (let i = 0; i < 20; i++) {
      steady.send(new Uint8Array(5_000));
      await delay(50);
    }
    clearInterval(dripping);
    await steady.until("100000 bytes");
    expect(silent.received).toContain("408");
    expect(silent.received).toContain("request_timeout");
    expect(trickling.received).toContain("408");
    await server.drain(1000);
  });

  it("does not hurry a handler that takes its time", async () => {
    const { url } = await start(
      transport,
      async (request) => {
        await request.body(MIB);
        await delay(900);
        return text("done");
      },
      { idleTimeoutMs: 300 },
    );
    expect(await (await fetch(url, { method: "POST", body: "x".repeat(1000) })).text()).toBe("done");
  });

  it("ends a connection whose client takes nothing of its response", async () => {
    const { seen, body } = endless();
    const { port, server } = await start(
      transport,
      async (request) => ({ status: 200, headers: {}, body: request.path === "/" ? body : new Uint8Array(60 * MIB) }),
      { idleTimeoutMs: 400 },
    );
    for (const path of ["/", "/whole"]) {
      const raw = new RawClient(port, { reading: false });
      raw.send(GET.replace("/", path));
      await delay(1_200);
      await server.drain(0);
    }
    await eventually(() => seen.returned === 1);
    await server.drain(1_000);
  });

  it("survives clients that leave at any moment", async () => {
    const random = drawnRandom();
    const upTo = (n: number) => Math.floor(random.next() * n);
    const closed = { opened: 0, ended: 0 };
    const { port, server, failures } = await start(transport, async (request) => {
      if (request.path.endsWith("1")) await delay(upTo(10));
      let length = 0;
      if (request.path.startsWith("/stream")) for await (const piece of request.stream(MIB)) length += piece.length;
      else length = (await request.body(MIB)).length;
      if (request.path.endsWith("2")) await delay(upTo(10));
      if (length % 3 === 0) return text("x".repeat(upTo(100_000)));
      return {
        status: 200,
        headers: {},
        body: (async function* () {
          closed.opened++;
          try {
            for (let i = 0; i < 20; i++) yield new Uint8Array(1 + upTo(200_000));
          } finally {
            closed.ended++;
          }
        })(),
      };
    });
    const leave = async (i: number) => {
      const raw = new RawClient(port, { reading: i % 4 !== 0 });
      const length = upTo(400_000);
      raw.send(post(length).replace("/", `/${i % 2 === 0 ? "stream" : "whole"}${i % 3}`));
      for (let sent = 0; sent < length; sent += 40_000) {
        raw.send(new Uint8Array(Math.min(40_000, length - sent)));
        if (upTo(20) === 0) break;
        if (upTo(4) === 0) await delay(upTo(4));
      }
      await delay(upTo(30));
      if (i % 5 === 0) raw.reset();
      else raw.socket.destroy();
      await raw.closed;
    };
    for (let round = 0; round < 6; round++) await Promise.all(Array.from({ length: 60 }, (_, i) => leave(i)));
    await server.drain(5_000);
    await eventually(() => closed.opened === closed.ended);
    expect(failures).toEqual([]);
    // Nothing may be left in flight; a drain without time would otherwise wait.
    const last = await Promise.race([server.drain(5_000).then(() => "drained"), delay(1_000)]);
    expect(last).toBe("drained");
  });
});

describe.each(TRANSPORTS)("drain: %s", (transport) => {
  const driver = driverOf(transport);
  const it = driver === "uws" && uwsProblem !== undefined ? test.skip : test;

  it("finishes what is in flight, sends clients away and takes no new ones", async () => {
    let finish: (() => void) | undefined;
    const { port, server } = await start(transport, async (request) => {
      if (request.path === "/slow") await new Promise<void>((resolve) => (finish = resolve));
      return text(`from ${request.path}`);
    });
    const idle = new RawClient(port);
    idle.send(GET);
    await idle.until("from /");
    const slow = new RawClient(port);
    slow.send(GET.replace("/", "/slow"));
    await eventually(() => finish !== undefined);
    let drained = false;
    const draining = server.drain(5_000).then(() => {
      drained = true;
    });
    await delay(50);
    const late = new RawClient(port);
    await late.closed;
    expect(drained).toBe(false);
    finish?.();
    await slow.until("from /slow");
    expect(slow.received).toContain("Connection: close");
    await draining;
    await server.close();
    await idle.closed;
    await server.close();
  });

  it("gives up after its time", async () => {
    const asked = Promise.withResolvers<void>();
    const { port, server } = await start(transport, () => {
      asked.resolve();
      return new Promise<HttpResponse>(() => undefined);
    });
    const raw = new RawClient(port);
    raw.send(GET);
    await asked.promise;
    const startedMs = performance.now();
    await server.drain(200);
    expect(performance.now() - startedMs).toBeGreaterThan(190);
    await server.close();
    await raw.closed;
  });
});

/** The body inside of chunked framing. */
function unchunk(framed: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; ;) {
    const lineEnd = framed.indexOf("\r\n", at);
    const sizeBytes = Number.parseInt(framed.toString("latin1", at, lineEnd), 16);
    if (sizeBytes === 0) return Buffer.concat(parts);
    parts.push(framed.subarray(lineEnd + 2, lineEnd + 2 + sizeBytes));
    at = lineEnd + 2 + sizeBytes + 2;
  }
}
