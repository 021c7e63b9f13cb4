import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { connect, type ConnectionOptions } from "node:tls";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_HELLO_BYTES, readClientHello } from "./client-hello.ts";

/** The first bytes that the TLS of Node sends. */
async function helloOf(options: ConnectionOptions): Promise<Buffer> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, ...options });
  client.on("error", () => {});
  const [socket] = await once(server, "connection");
  const [bytes] = await once(socket, "data");
  client.destroy();
  server.close();
  return bytes as Buffer;
}

/** The same handshake in records of another size. */
function inRecords(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size);
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
  }
  return Buffer.concat(records);
}

describe("a ClientHello", () => {
  it("names its server", async () => {
    const hello = await helloOf({ servername: "api.example.com" });
    expect(readClientHello(hello)).toEqual({ kind: "hello", serverName: "api.example.com" });
    expect(readClientHello(Buffer.concat([hello, Buffer.from("more")]))).toMatchObject({ kind: "hello" });
  });

  it("of TLS 1.2 alone, too", async () => {
    const hello = await helloOf({ servername: "old.example.com", maxVersion: "TLSv1.2" });
    expect(readClientHello(hello)).toEqual({ kind: "hello", serverName: "old.example.com" });
  });

  it("may name none", async () => {
    expect(readClientHello(await helloOf({}))).toEqual({ kind: "hello", serverName: undefined });
  });

  it("is read from any pieces", async () => {
    const hello = await helloOf({ servername: "api.example.com" });
    for (let length = 0; length < hello.length; length++) {
      expect([length, readClientHello(hello.subarray(0, length)).kind]).toEqual([length, "partial"]);
    }
    for (const size of [1, 3, 50, 200]) {
      expect(readClientHello(inRecords(hello, size))).toEqual({ kind: "hello", serverName: "api.example.com" });
    }
  });

  it("with two names, or another kind of name, is refused", async () => {
    const hello = await helloOf({ servername: "api.example.com" });
    const at = hello.indexOf("api.example.com");
    const other = Buffer.from(hello);
    other[at - 3] = 7;
    expect(readClientHello(other)).toMatchObject({ kind: "invalid", reason: expect.stringContaining("unknown way") });
  });
});

describe("what is no TLS", () => {
  it.each([
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
    ["SSH", Buffer.from("SSH-2.0-OpenSSH_9.2\r\n")],
    ["SSL 2", Buffer.from([0x80, 0x2e, 1, 0, 2])],
    ["another handshake message", Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0])],
    ["an empty record", Buffer.from([22, 3, 1, 0, 0])],
    ["a record that is too long", Buffer.from([22, 3, 1, 255, 255])],
    ["wrong lengths", Buffer.from([22, 3, 1, 0, 6, 1, 0, 0, 2, 255, 255])],
  ])("%s is refused", (_what, bytes) => {
    expect(readClientHello(bytes).kind).toBe("invalid");
  });

  it("is not waited for without end", () => {
    const long = Buffer.alloc(MAX_HELLO_BYTES, 1);
    for (let at = 0; at + 5 <= long.length; at += 16_389) long.set([22, 3, 1, 64, 0], at);
    long.set([1, 255, 255, 255], 5);
    expect(readClientHello(long)).toMatchObject({ kind: "invalid", reason: "it is too long" });
  });

  it("never throws", async () => {
    const hello = await helloOf({ servername: "api.example.com" });
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(["partial", "invalid", "hello"]).toContain(readClientHello(bytes).kind);
      }),
    );
    fc.assert(
      fc.property(fc.nat(hello.length - 1), fc.nat(255), (at, byte) => {
        const changed = Buffer.from(hello);
        changed[at] = byte;
        expect(["partial", "invalid", "hello"]).toContain(readClientHello(changed).kind);
      }),
      { numRuns: 1_000 },
    );
  });
});
