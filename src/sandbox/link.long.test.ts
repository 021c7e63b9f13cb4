import { Readable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, it } from "vitest";
import { EngineError } from "../core/errors.ts";
import { uwsProblem } from "../io/http/http.test-kit.ts";
import type { NodeCall, NodeReply } from "./contract/link/calls.ts";
import { bytes, call, lengthOf, MIB, startGateway, startNode, stopAll } from "./link.test-kit.ts";
import { delay, eventually, freePort } from "../core/waiting.test-kit.ts";

afterEach(stopAll);

const GIB = 1024 * MIB;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Of buffers, without garbage: the second time waits until what was found the first time is freed. */
function heldBytes(): number {
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

/** Answers with what it was sent. */
async function echo({ body, params }: NodeCall): Promise<NodeReply> {
  return body === undefined ? { result: params } : { result: params, body };
}

describe.each(uwsProblem === undefined ? (["node", "uws"] as const) : (["node"] as const))("a link on %s", (driver) => {
  it("carries a call and its reply", async () => {
    const gateway = await startGateway(driver);
    let seen: NodeCall | undefined;
    await startNode("n1", [gateway], async (asked) => ((seen = asked), { result: { pong: [1, "é"] } }));
    const reply = await gateway.directory.call("n1", call({ method: "files.stat", params: { path: "/ü" } }));
    expect(reply).toEqual({ result: { pong: [1, "é"] } });
    expect(seen).toMatchObject({ method: "files.stat", sandboxId: "s1", params: { path: "/ü" } });
    expect(seen?.body).toBeUndefined();
  });

  it("carries bodies both ways at once", async () => {
    const gateway = await startGateway(driver);
    await startNode("n1", [gateway], echo);
    const typed = new Readable({ read: () => undefined });
    const { body } = await gateway.directory.call("n1", call({ method: "shell", body: typed }));
    const shown = (body as Readable)[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    for (const line of ["ls\n", "é\n"]) {
      typed.push(line);
      expect(String((await shown.next()).value)).toBe(line);
    }
    typed.push(null);
    expect((await shown.next()).done).toBe(true);
  });

  it("tells failures as they are, and no more than may be told", async () => {
    const gateway = await startGateway(driver);
    const failures = {
      "files.get": new EngineError("file_not_found", "there is no file /x"),
      "files.put": new Error("a secret of the node"),
    };
    await startNode("n1", [gateway], async ({ method, params }) => {
      if (method === "files.list") return { result: params, body: Readable.from(half(), { objectMode: false }) };
      throw failures[method as keyof typeof failures];
    });
    const ask = (method: NodeCall["method"], more = {}) => gateway.directory.call("n1", call({ method, ...more }));
    await expect(ask("files.get")).rejects.toMatchObject({ code: "file_not_found", message: "there is no file /x" });
    const secret = await ask("files.put", { body: bytes(20 * MIB) }).catch((error: unknown) => error);
    expect(secret).toMatchObject({ code: "internal" });
    expect(String(secret)).not.toContain("secret");
    const { body } = await ask("files.list");
    await expect(lengthOf(body)).rejects.toMatchObject({ code: "sandbox_timeout", message: "under way" });
    const large = ask("files.list", { params: "x".repeat(65 * 1024) });
    await expect(large).rejects.toMatchObject({ code: "body_too_large" });
  });

  function* half(): Generator<Buffer> {
    yield Buffer.alloc(100);
    throw new EngineError("sandbox_timeout", "under way");
  }

  it("tells the node when a body that is sent breaks off", async () => {
    const gateway = await startGateway(driver);
    const ends: unknown[] = [];
    await startNode("n1", [gateway], async ({ body }) => {
      await lengthOf(body).catch((error: unknown) => ends.push(error));
      return { result: "noted" };
    });
    const broken = Readable.from(half(), { objectMode: false });
    expect(await gateway.directory.call("n1", call({ body: broken }))).toEqual({ result: "noted" });
    expect(ends).toMatchObject([{ code: "sandbox_timeout" }]);
  });

  it("carries 1,000 calls at once", async () => {
    const gateway = await startGateway(driver);
    await startNode("n1", [gateway], async ({ params, body }) => ({ result: [params, await lengthOf(body)] }));
    const replies = await Promise.all(
      Array.from({ length: 1_000 }, (_, i) => gateway.directory.call("n1", call({ params: i, body: bytes(i) }))),
    );
    expect(replies.map(({ result }) => result)).toEqual(Array.from({ length: 1_000 }, (_, i) => [i, i]));
  });

  it("carries much both ways at once with flat memory", { timeout: 120_000 }, async () => {
    const sizeBytes = driver === "uws" ? 512 * MIB : 128 * MIB;
    const gateway = await startGateway(driver);
    await startNode("n1", [gateway], async ({ method, body }) =>
      method === "files.get" ? { result: {}, body: bytes(sizeBytes) } : { result: await lengthOf(body) },
    );
    const calls = [
      gateway.directory.call("n1", call({ method: "files.get" })).then(({ body }) => lengthOf(body)),
      gateway.directory.call("n1", call({ method: "files.put", body: bytes(sizeBytes) })).then(({ result }) => result),
    ];
    await delay(200);
    const before = heldBytes();
    let mostBytes = 0;
    const watching = setInterval(() => {
      mostBytes = Math.max(mostBytes, heldBytes());
    }, 250);
    expect(await Promise.all(calls)).toEqual([sizeBytes, sizeBytes]);
    clearInterval(watching);
    expect(mostBytes).toBeGreaterThan(0);
    expect(mostBytes - before).toBeLessThan(16 * MIB);
  });

  it("lets no reader that takes nothing hold up the others, or fill memory", async () => {
    const gateway = await startGateway(driver);
    let madeBytes = 0;
    await startNode("n1", [gateway], async ({ method, params }) =>
      method === "files.get"
        ? { result: {}, body: bytes(64 * MIB, () => (madeBytes += 64 * 1024)) }
        : { result: params },
    );
    const idle = await Promise.all(
      Array.from({ length: 20 }, () => gateway.directory.call("n1", call({ method: "files.get" }))),
    );
    await delay(300);
    // What lies in windows and buffers of both sides.
    expect(madeBytes).toBeLessThan(20 * 3 * MIB);
    for (let i = 0; i < 50; i++) await gateway.directory.call("n1", call({ params: i }));
    const another = await gateway.directory.call("n1", call({ method: "files.get" }));
    expect(await lengthOf(another.body)).toBe(64 * MIB);
    // And those who come back to it miss nothing.
    expect(await lengthOf(idle[0]?.body)).toBe(64 * MIB);
    for (const { body } of idle) body?.destroy();
  });

  it("ends a call that nobody wants any more, at the node and here", async () => {
    const gateway = await startGateway(driver);
    let running = 0;
    const sources = new Set<Readable>();
    await startNode("n1", [gateway], async ({ method, signal, body }) => {
      running++;
      signal.addEventListener("abort", () => running--, { once: true });
      body?.resume();
      if (method === "exec") return await new Promise(() => undefined);
      const source = bytes(GIB);
      sources.add(source);
      source.once("close", () => sources.delete(source));
      return { result: {}, body: source };
    });
    const typed = new Readable({ read: () => undefined });
    const abort = new AbortController();
    const waiting = gateway.directory.call("n1", call({ method: "exec", body: typed, signal: abort.signal }));
    const streamed = new AbortController();
    const { body } = await gateway.directory.call("n1", call({ signal: streamed.signal }));
    const dropped = await gateway.directory.call("n1", call());
    await eventually(() => running === 3);
    abort.abort(new Error("the client left"));
    await expect(waiting).rejects.toThrow("the client left");
    streamed.abort(new Error("left in the middle"));
    await expect(lengthOf(body)).rejects.toThrow("left in the middle");
    dropped.body?.destroy();
    await eventually(() => running === 0 && sources.size === 0 && typed.destroyed);
    // The connection is as good as before.
    const early = new AbortController();
    early.abort(new Error("before it began"));
    await expect(gateway.directory.call("n1", call({ signal: early.signal }))).rejects.toThrow("before it began");
    for (let i = 0; i < 100; i++) {
      const controller = new AbortController();
      const given = gateway.directory.call("n1", call({ method: "exec", signal: controller.signal }));
      if (i % 2 === 0) await delay(1);
      controller.abort(new Error("again"));
      await expect(given).rejects.toThrow("again");
    }
    await eventually(() => running === 0);
  });

  it("stops what is sent along when the reply is complete", async () => {
    const gateway = await startGateway(driver);
    await startNode("n1", [gateway], async () => ({ result: {}, body: bytes(10) }));
    const typed = new Readable({ read: () => undefined });
    const { body } = await gateway.directory.call("n1", call({ method: "exec", body: typed }));
    expect(await lengthOf(body)).toBe(10);
    await eventually(() => typed.destroyed);
  });

  it("tells the node of orders", async () => {
    const gateway = await startGateway(driver);
    const { orders } = await startNode("n1", [gateway], echo);
    gateway.directory.tell("n1", "s1");
    gateway.directory.tell("n2", "nobody");
    gateway.directory.tell("n1", "s2");
    await eventually(() => orders.length === 2);
    expect(orders).toEqual(["s1", "s2"]);
  });

  it("fails what is under way when the gateway is killed, and is there again with the next", async () => {
    const port = await freePort();
    const gateway = await startGateway(driver, port);
    const node = await startNode("n1", [gateway], async ({ method, params }) =>
      method === "files.get" ? { result: {}, body: new Readable({ read: () => undefined }) } : { result: params },
    );
    const { body } = await gateway.directory.call("n1", call({ method: "files.get" }));
    const reading = lengthOf(body);
    await gateway.server.close();
    await expect(reading).rejects.toMatchObject({ code: "unavailable" });
    await eventually(() => node.dialler.connected === 0);
    const next = await startGateway(driver, port);
    // It waits for the node, which is about to come.
    expect(await next.directory.call("n1", call({ params: "again" }))).toEqual({ result: "again" });
  });

  it("fails what is under way when the node leaves, and waits for it a moment", async () => {
    const gateway = await startGateway(driver);
    const node = await startNode("n1", [gateway], () => new Promise(() => undefined));
    const waiting = gateway.directory.call("n1", call());
    await delay(20);
    node.dialler.stop();
    await expect(waiting).rejects.toMatchObject({ code: "unavailable" });
    const coming = gateway.directory.call("n1", call({ params: 1 }));
    await delay(50);
    await startNode("n1", [gateway], echo);
    expect(await coming).toEqual({ result: 1 });
    await expect(gateway.directory.call("n2", call())).rejects.toMatchObject({ code: "unavailable" });
  });

  it("is the newer one of two", async () => {
    const gateway = await startGateway(driver);
    const older = await startNode("n1", [gateway], async () => ({ result: "older" }));
    older.dialler.stop();
    await eventually(() => gateway.directory.connected === 0);
    const stale = await startNode("n1", [gateway], () => new Promise(() => undefined));
    const waiting = gateway.directory.call("n1", call());
    await delay(20);
    const failure = waiting.catch((error: unknown) => error);
    const newer = await startNode("n1", [gateway], async () => ({ result: "newer" }));
    expect(await failure).toMatchObject({ code: "unavailable" });
    // Until one of them is stopped they take turns.
    stale.dialler.stop();
    await eventually(() => newer.dialler.connected === 1);
    expect(await gateway.directory.call("n1", call())).toEqual({ result: "newer" });
  });

  it("closes when the gateway drains, and is not to gateways that are no more", async () => {
    const [first, second] = [await startGateway(driver), await startGateway(driver)];
    const node = await startNode("n1", [first, second], echo);
    await first.server.drain(5_000);
    await eventually(() => first.directory.connected === 0);
    node.dialler.dial([second.url]);
    expect(await second.directory.call("n1", call({ params: 2 }))).toEqual({ result: 2 });
    await delay(600);
    expect(node.dialler.connected).toBe(1);
  });
});

it("a node in the process is called directly", async () => {
  const { directory } = await startGateway("node");
  const body = bytes(10);
  const leave = directory.register("n1", async (asked) => ({ result: {}, body: asked.body as Readable }));
  expect((await directory.call("n1", call({ body }))).body).toBe(body);
  leave();
  await expect(directory.call("n1", call())).rejects.toMatchObject({ code: "unavailable" });
});
