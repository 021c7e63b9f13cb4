/** For the tests of this folder: servers on a free port, and a client that sends bytes as they are. */
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { EngineError, messageOf } from "../../core/errors.ts";
import { createHttpServer } from "./create.ts";
import type { HttpHandler, HttpResponse, HttpServer, HttpServerOptions } from "./http.ts";
import { certificateFolder, makeCertificate, trustCertificate } from "./tls.test-kit.ts";
import { readTlsPair, type TlsPair } from "./tls.ts";
import { loadUws } from "./uws-library.ts";

export const MIB = 1024 * 1024;

export type TestServer = { server: HttpServer; url: string; port: number; failures: unknown[] };

/** Why uWebSockets.js can't be tested here; undefined when it can. */
export const uwsProblem = ((): string | undefined => {
  try {
    loadUws(16 * 1024);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
})();

/** Each driver, without and with TLS. */
export const TRANSPORTS = ["node", "uws", "node over TLS", "uws over TLS"] as const;
export type Transport = (typeof TRANSPORTS)[number];

export function driverOf(transport: Transport): "node" | "uws" {
  return transport.startsWith("node") ? "node" : "uws";
}

let tlsPair: Promise<TlsPair> | undefined;

/** One for all tests of a file, which its clients take. */
function testTlsPair(): Promise<TlsPair> {
  tlsPair ??= makeCertificate(certificateFolder(), "server").then((files) => {
    const pair = readTlsPair(files);
    trustCertificate(pair.cert);
    return pair;
  });
  return tlsPair;
}

const running = new Set<HttpServer>();
/** Those of servers with TLS. */
const tlsPorts = new Set<number>();

export async function start(
  transport: Transport,
  handler: HttpHandler,
  options: Partial<HttpServerOptions> = {},
): Promise<TestServer> {
  const driver = driverOf(transport);
  const failures: unknown[] = [];
  const tls = options.tls ?? (transport.endsWith("TLS") ? await testTlsPair() : undefined);
  const server = createHttpServer({
    driver,
    handler,
    renderError,
    reportFailure: (error) => failures.push(error),
    maxHeaderBytes: 16 * 1024,
    headersTimeoutMs: 5_000,
    idleTimeoutMs: 5_000,
    ...options,
    ...(tls === undefined ? {} : { tls }),
  });
  running.add(server);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  if (tls === undefined) tlsPorts.delete(port);
  else tlsPorts.add(port);
  return { server, port, url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`, failures };
}

export async function stopAll(): Promise<void> {
  for (const server of running) await server.close();
  running.clear();
}

export function renderError(error: unknown): HttpResponse {
  const [status, code] = error instanceof EngineError ? [error.status, error.code] : [500, "internal"];
  return { status, headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }) };
}

export function text(body: string, status = 200): HttpResponse {
  return { status, headers: { "Content-Type": "text/plain" }, body };
}

export const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
export const CHUNKED = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

/** The head of a request with a body of that length. */
export function post(lengthBytes: number, moreHeaders = ""): string {
  return `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${lengthBytes}\r\n${moreHeaders}\r\n`;
}

/** A handler that answers as the API does: what it throws becomes the answer. */
export function bodyWithin(limitBytes: number): HttpHandler {
  return async (request) => {
    try {
      return text(`${(await request.body(limitBytes)).length} bytes`);
    } catch (error) {
      return renderError(error);
    }
  };
}

/** A connection that sends and shows bytes as they are. */
export class RawClient {
  readonly socket: Socket;
  /** What lies under the socket; the same without TLS. */
  readonly #connection: Socket;
  readonly closed: Promise<void>;
  received = "";
  receivedBytes = 0;
  isClosed = false;
  #changed: (() => void)[] = [];

  constructor(port: number, options: { reading: boolean } = { reading: true }) {
    this.#connection = connect({ port, host: "127.0.0.1" });
    this.socket = tlsPorts.has(port) ? connectTls({ socket: this.#connection }) : this.#connection;
    // Resets are part of what is tested.
    this.socket.on("error", () => undefined);
    this.closed = new Promise((resolve) => {
      this.socket.once("close", () => {
        this.isClosed = true;
        resolve();
        this.#notify();
      });
    });
    if (options.reading) this.read();
  }

  read(): void {
    this.socket.on("data", (data: Buffer) => {
      this.receivedBytes += data.length;
      // Enough to look at; large bodies are only counted.
      if (this.received.length < MIB) this.received += data.toString("latin1");
      this.#notify();
    });
    this.socket.resume();
  }

  send(data: string | Uint8Array): void {
    this.socket.write(data);
  }

  /** Leaves as a process does that is killed with bytes unread. */
  reset(): void {
    this.#connection.resetAndDestroy();
    this.socket.destroy();
  }

  /** Resolves when what was received contains `needle`; rejects when the connection closed without it. */
  async until(needle: string | ((received: string) => boolean)): Promise<string> {
    const holds = typeof needle === "string" ? () => this.received.includes(needle) : () => needle(this.received);
    while (!holds()) {
      if (this.isClosed) throw new Error(`closed before ${String(needle)}; got ${this.received.slice(0, 500)}`);
      await new Promise<void>((resolve) => this.#changed.push(resolve));
    }
    return this.received;
  }

  #notify(): void {
    const changed = this.#changed;
    this.#changed = [];
    for (const wake of changed) wake();
  }
}
