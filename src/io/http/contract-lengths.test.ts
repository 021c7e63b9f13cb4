import { randomBytes } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import type { HttpResponse } from "./http.ts";
import { driverOf, GET, MIB, RawClient, start, stopAll, TRANSPORTS, uwsProblem } from "./http.test-kit.ts";
import { delay, eventually } from "../../core/waiting.test-kit.ts";

afterEach(stopAll);

type Pulled = { bytes: number; ended: boolean; returned: number };

/** An answer whose body comes in these pieces, and what is taken of it. */
function streamed(pieces: readonly Uint8Array[], lengthBytes: number) {
  const pulled: Pulled = { bytes: 0, ended: false, returned: 0 };
  const left = [...pieces];
  const iterator: AsyncIterator<Uint8Array> = {
    next: async () => {
      await delay(0);
      const value = left.shift();
      pulled.ended = value === undefined;
      if (value === undefined) return { done: true, value };
      pulled.bytes += value.length;
      return { done: false, value };
    },
    return: async () => {
      pulled.returned++;
      return { done: true, value: undefined };
    },
  };
  const body = { [Symbol.asyncIterator]: () => iterator };
  const response = (): HttpResponse => ({ status: 200, headers: { "Content-Length": String(lengthBytes) }, body });
  return { pulled, response };
}

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const TESTED = TRANSPORTS.filter((transport) => driverOf(transport) === "node" || uwsProblem === undefined);

describe.each(TESTED)("a streamed answer of known length, on %s", (transport) => {
  it("is sent with its length and not in chunks, and the connection goes on", async () => {
    const sent = streamed([bytes("hel"), bytes("lo")], 5);
    const { port, failures } = await start(transport, async () => sent.response());
    const raw = new RawClient(port);
    raw.send(GET);
    const received = await raw.until("hello");
    expect(received).toMatch(/\r\nContent-Length: 5\r\n/);
    expect(received).not.toMatch(/transfer-encoding/i);
    expect(received).toMatch(/\r\n\r\nhello$/);
    await eventually(() => sent.pulled.ended);
    raw.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    const head = await raw.until((text) => text.split("HTTP/1.1 200").length === 3 && text.endsWith("\r\n\r\n"));
    expect(head.slice(received.length)).toMatch(/\r\nContent-Length: 5\r\n/);
    expect([sent.pulled.returned, failures]).toEqual([1, []]);
  });

  it("may be empty", async () => {
    const sent = streamed([], 0);
    const { url } = await start(transport, async () => sent.response());
    const answer = await fetch(url);
    expect([answer.headers.get("content-length"), await answer.text(), sent.pulled.ended]).toEqual(["0", "", true]);
  });

  it("arrives intact, however large its pieces are", async () => {
    const pieces = [1, 100, 20_000, MIB, 5 * MIB, 3, 300_000].map((sizeBytes) => randomBytes(sizeBytes));
    const body = Buffer.concat(pieces);
    const { url, failures } = await start(transport, async () => streamed(pieces, body.length).response());
    for (let i = 0; i < 3; i++) {
      const answer = await fetch(url);
      expect(answer.headers.get("content-length")).toBe(String(body.length));
      expect(Buffer.from(await answer.arrayBuffer()).equals(body)).toBe(true);
    }
    expect(failures).toEqual([]);
  });

  it("is pulled no faster than the client takes it, and closed when the client leaves", async () => {
    const sent = streamed(
      Array.from({ length: 256 }, () => new Uint8Array(256 * 1024)),
      64 * MIB,
    );
    const { port } = await start(transport, async () => sent.response());
    const raw = new RawClient(port, { reading: false });
    raw.send(GET);
    let before = -1;
    while (before !== sent.pulled.bytes) {
      before = sent.pulled.bytes;
      await delay(100);
    }
    expect(sent.pulled.bytes).toBeLessThan(24 * MIB);
    raw.read();
    await eventually(() => sent.pulled.bytes > before);
    raw.reset();
    await eventually(() => sent.pulled.returned > 0);
    expect(sent.pulled.ended).toBe(false);
  });

  it.each([
    ["ends early", ["hel", "lo"], 6],
    ["is longer", ["hel", "lo!!"], 5],
  ])("that %s than it was announced looks cut to the client, and is reported", async (_name, pieces, lengthBytes) => {
    const sent = streamed(pieces.map(bytes), lengthBytes);
    const { port, failures } = await start(transport, async () => sent.response());
    const raw = new RawClient(port);
    raw.send(GET);
    await raw.closed;
    const body = raw.received.slice(raw.received.indexOf("\r\n\r\n") + 4);
    expect(body.length).toBeLessThan(lengthBytes);
    expect("hello".startsWith(body)).toBe(true);
    expect(String(failures[0])).toContain("another length");
    expect(sent.pulled.returned).toBe(1);
  });
});
