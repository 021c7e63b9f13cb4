import { chmodSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect as connectPlain } from "node:net";
import { join } from "node:path";
import { pino } from "pino";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { ManualClock } from "../../core/clock.ts";
import { StartupError } from "../../core/errors.ts";
import { driverOf, start, stopAll, text, uwsProblem } from "./http.test-kit.ts";
import { certificateFolder, makeCertificate } from "./tls.test-kit.ts";
import { readTlsPair, type TlsFiles } from "./tls.ts";
import { TLS_POLL_MS, TlsWatch } from "./tls-watch.ts";
import { delay, eventually } from "../../core/waiting.test-kit.ts";

let folder: string;
let first: TlsFiles;
let second: TlsFiles;

beforeAll(async () => {
  folder = certificateFolder();
  first = await makeCertificate(folder, "first");
  second = await makeCertificate(folder, "second");
});

afterEach(stopAll);

let copies = 0;

/** Copies of a pair that a test may change. */
function copyOf(files: TlsFiles): TlsFiles {
  const name = join(folder, `copy-${++copies}`);
  const copy = { certPath: `${name}.crt`, keyPath: `${name}.key` };
  put(files, copy);
  return copy;
}

/** Replaces files as certificate tools do: written beside them, and renamed over them. */
function put(from: TlsFiles, to: TlsFiles): void {
  for (const which of ["keyPath", "certPath"] as const) {
    writeFileSync(`${to[which]}.new`, readFileSync(from[which]));
    renameSync(`${to[which]}.new`, to[which]);
  }
}

describe("files that cannot be used", () => {
  const refusal = (files: TlsFiles): string => {
    try {
      readTlsPair(files);
    } catch (error) {
      expect(error).toBeInstanceOf(StartupError);
      expect(error).toMatchObject({ exitCode: 2 });
      return String(error);
    }
    throw new Error("they were taken");
  };
  const written = (name: string, content: string): string => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };

  test("are named, with what is wrong with them", () => {
    const { certPath, keyPath } = first;
    expect(refusal({ certPath: join(folder, "none"), keyPath })).toMatch(
      /TLS certificate .*none: there is no such file/,
    );
    expect(refusal({ certPath, keyPath: join(folder, "none") })).toMatch(/TLS key .*none: there is no such file/);
    expect(refusal({ certPath: folder, keyPath })).toContain("it is a folder");
    expect(refusal({ certPath: keyPath, keyPath })).toMatch(/first\.key is not PEM: no line says BEGIN CERTIFICATE/);
    expect(refusal({ certPath, keyPath: certPath })).toMatch(/first\.crt is not PEM: no line says BEGIN PRIVATE KEY/);
    expect(refusal({ certPath, keyPath: second.keyPath })).toMatch(/second\.key is not the key of .*first\.crt/);
    const damaged = readFileSync(certPath, "utf8").replace(/\n[A-Za-z0-9+/]{30}/, `\n${"A".repeat(30)}`);
    expect(refusal({ certPath: written("damaged.crt", damaged), keyPath })).toContain("damaged.crt is damaged");
    const chain = readFileSync(certPath, "utf8") + damaged;
    expect(refusal({ certPath: written("chain.crt", chain), keyPath })).toContain("chain.crt is damaged");
    const noKey = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    expect(refusal({ certPath, keyPath: written("damaged.key", noKey) })).toContain("damaged.key is damaged");
  });

  test("a key with a passphrase is not supported, and the text says so", () => {
    const sealed = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    expect(refusal({ ...first, keyPath: written("sealed.key", sealed) })).toContain("protected by a passphrase");
  });

  test("a key that may not be read is named as such", () => {
    const copy = copyOf(first);
    chmodSync(copy.keyPath, 0);
    const outcome = () => {
      try {
        return readTlsPair(copy).cert === "" ? "empty" : "taken";
      } catch (error) {
        return String(error);
      }
    };
    // Nothing is forbidden to root.
    expect(outcome()).toMatch(process.getuid?.() === 0 ? /^taken$/ : /TLS key .*: permission denied/);
  });

  test("a chain is taken, and files by way of links", () => {
    const chain = readFileSync(first.certPath, "utf8") + readFileSync(second.certPath, "utf8");
    const link = join(folder, "linked.crt");
    rmSync(link, { force: true });
    symlinkSync(written("whole.crt", chain), link);
    const pair = readTlsPair({ ...first, certPath: link });
    expect(pair.cert).toBe(chain);
    expect(pair.expiresAtMs).toBeGreaterThan(1_700_000_000_000);
  });
});

/** Whose certificate a new connection gets, and by what it is protected; `error` when there is none. */
function greet(port: number, options: ConnectionOptions = {}): Promise<Greeting> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options }, () => {
      const { subject } = socket.getPeerCertificate();
      resolve({ name: subject.CN, protocol: socket.getProtocol(), cipher: socket.getCipher().name });
      socket.destroy();
    });
    socket.on("error", (error) => resolve({ error: error.message }));
    socket.on("close", () => resolve({ error: "closed" }));
  });
}

type Greeting = { name?: unknown; protocol?: string | null; cipher?: string; error?: string };

/** A connection that stays open; each `ask` is a request on it. */
async function keepAlive(port: number): Promise<{ socket: TLSSocket; ask: (path: string) => Promise<string> }> {
  const socket = await new Promise<TLSSocket>((resolve, reject) => {
    const made = connect({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => resolve(made));
    made.once("error", reject);
  });
  let received = "";
  socket.setEncoding("utf8").on("data", (data: string) => (received += data));
  const ask = async (path: string): Promise<string> => {
    received = "";
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await eventually(() => received.includes("\r\n\r\n<"));
    return received.slice(received.indexOf("<"));
  };
  return { socket, ask };
}

describe.each(["node over TLS", "uws over TLS"] as const)("a server with TLS: %s", (transport) => {
  const it = driverOf(transport) === "uws" && uwsProblem !== undefined ? test.skip : test;

  it("speaks TLS 1.2 and 1.3 with forward secrecy, and nothing older or weaker", async () => {
    const { port } = await start(transport, async (request) => text(request.scheme));
    for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
      const only = await greet(port, { minVersion: version, maxVersion: version });
      expect(only).toMatchObject({ name: "server", protocol: version });
      expect(only.cipher).toMatch(/GCM|CHACHA20/);
    }
    const weak = { minVersion: "TLSv1", ciphers: "ALL:@SECLEVEL=0" } as const;
    for (const maxVersion of ["TLSv1", "TLSv1.1"] as const) {
      expect((await greet(port, { ...weak, maxVersion })).error).toBeDefined();
    }
    for (const ciphers of ["AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-SHA", "ECDHE-ECDSA-AES128-SHA256"]) {
      expect((await greet(port, { maxVersion: "TLSv1.2", ciphers })).error).toBeDefined();
    }
    expect((await greet(port, { ALPNProtocols: ["h2", "http/1.1"] })).name).toBe("server");
  });

  it("tells handlers that requests came over TLS", async () => {
    const { url } = await start(transport, async (request) => text(request.scheme));
    expect(await (await fetch(url)).text()).toBe("https");
    const plain = await start(driverOf(transport), async (request) => text(request.scheme));
    expect(await (await fetch(plain.url)).text()).toBe("http");
    expect(() => plain.server.useTlsPair(readTlsPair(first))).toThrow("without TLS");
  });

  it("ends connections that speak plain HTTP, or break the handshake off, at once", async () => {
    let asked = 0;
    const { port, failures, url } = await start(transport, async () => text(String(++asked)));
    for (const sent of ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\x16\x03\x01garbage that is no hello at all", ""]) {
      const socket = connectPlain({ port, host: "127.0.0.1" });
      socket.on("error", () => undefined).resume();
      const closed = new Promise((resolve) => socket.once("close", resolve));
      if (sent === "") socket.end();
      else socket.write(sent, "latin1");
      expect(await Promise.race([closed.then(() => "closed"), delay(4_000)])).toBe("closed");
    }
    expect([asked, failures]).toEqual([0, []]);
    expect(await (await fetch(url)).text()).toBe("1");
  });

  it("does not wait for ever for a handshake", async () => {
    const { port } = await start(transport, async () => text("x"), { headersTimeoutMs: 500, idleTimeoutMs: 500 });
    const socket = connectPlain({ port, host: "127.0.0.1" });
    const closed = new Promise((resolve) => socket.on("error", () => undefined).once("close", resolve));
    socket.resume();
    // uWebSockets.js has a time of its own; see http.ts.
    const withinMs = driverOf(transport) === "uws" ? 14_000 : 4_000;
    expect(await Promise.race([closed.then(() => "closed"), delay(withinMs)])).toBe("closed");
  });

  it("serves a new certificate to new connections, and loses none", async () => {
    let finish: (() => void) | undefined;
    const handler = async (path: string) => {
      if (path === "/slow") await new Promise<void>((resolve) => (finish = resolve));
      return text(`<${path}>`);
    };
    const { port, server } = await start(transport, (request) => handler(request.path), { tls: readTlsPair(first) });
    expect((await greet(port)).name).toBe("first");
    const kept = await keepAlive(port);
    const slow = await keepAlive(port);
    const answer = slow.ask("/slow");
    await eventually(() => finish !== undefined);
    server.useTlsPair(readTlsPair(second));
    expect((await greet(port)).name).toBe("second");
    expect((await greet(port, { servername: "localhost" })).name).toBe("second");
    expect(await kept.ask("/kept")).toBe("</kept>");
    finish?.();
    expect(await answer).toBe("</slow>");
    server.useTlsPair(readTlsPair(first));
    expect((await greet(port)).name).toBe("first");
    expect(await kept.ask("/still")).toBe("</still>");
    await server.drain(1_000);
    expect((await greet(port)).error).toBeDefined();
    for (const { socket } of [kept, slow]) socket.destroy();
  });

  it("fails no request while its certificate changes again and again", async () => {
    const { port, server } = await start(transport, async () => text("<ok>"), { tls: readTlsPair(first) });
    const pairs = [readTlsPair(second), readTlsPair(first)];
    const seen = { names: new Set<unknown>(), errors: [] as unknown[], running: true };
    const client = async () => {
      while (seen.running) {
        const { name, error } = await greet(port);
        seen.names.add(name);
        if (error !== undefined) seen.errors.push(error);
      }
    };
    const clients = Promise.all(Array.from({ length: 4 }, client));
    for (let i = 0; i < 20; i++) {
      const pair = pairs[i % 2];
      if (pair !== undefined) server.useTlsPair(pair);
      await delay(20);
    }
    seen.running = false;
    await clients;
    expect(seen.errors).toEqual([]);
    expect(seen.names).toEqual(new Set(["first", "second"]));
  });

  it("shows what was checked, and not what has taken its place since", async () => {
    const files = copyOf(first);
    const { port, server } = await start(transport, async () => text("x"), { tls: readTlsPair(files) });
    put(second, files);
    const checked = readTlsPair(files);
    put(first, files);
    const use = () => server.useTlsPair(checked);
    // uWebSockets.js reads files by their names, so it can only notice.
    if (driverOf(transport) === "uws") expect(use).toThrow("changed while it was read");
    else use();
    expect((await greet(port)).name).toBe(driverOf(transport) === "uws" ? "first" : "second");
  });

  it("follows the files, and keeps what it has while they cannot be used", async () => {
    const files = copyOf(first);
    const pair = readTlsPair(files);
    const { port, server } = await start(transport, async () => text("x"), { tls: pair });
    const clock = new ManualClock();
    const lines: string[] = [];
    const log = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
    const watch = new TlsWatch({ clock, log, pair, use: (next) => server.useTlsPair(next) });
    const look = async (expected: string) => {
      clock.advance(TLS_POLL_MS);
      // A look takes turns of the event loop, not time.
      await eventually(() => lines.join("").includes(expected));
    };
    const nameNow = async () => (await greet(port)).name;

    put(second, files);
    await look("is renewed");
    expect(await nameNow()).toBe("second");

    writeFileSync(files.certPath, readFileSync(first.certPath));
    await look("is not the key of");
    expect(await nameNow()).toBe("second");
    const complaints = lines.length;
    clock.advance(3 * TLS_POLL_MS);
    await delay(100);
    expect(lines.length).toBe(complaints);

    rmSync(files.keyPath);
    await look("there is no such file");
    expect(await nameNow()).toBe("second");

    put(first, files);
    lines.length = 0;
    await look("is renewed");
    expect(await nameNow()).toBe("first");

    await watch.stop();
    put(second, files);
    clock.advance(10 * TLS_POLL_MS);
    await delay(100);
    expect(await nameNow()).toBe("first");
    expect(lines.length).toBe(1);
  });
});
