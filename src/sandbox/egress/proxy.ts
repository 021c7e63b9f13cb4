import {
  createServer,
  request as httpRequest,
  STATUS_CODES,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import { pipeline, type Duplex } from "node:stream";
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { NetworkSpec } from "../spec.ts";
import type { DialableAddresses } from "./addresses.ts";
import { dialAny, dialThrough, type UpstreamProxy } from "./dial.ts";
import { canonicalRule, isAllowed } from "./host-names.ts";
import { EgressRefusal } from "./refusal.ts";
import { forwardable, splitAuthority, targetInTunnel, targetOf, type TunnelEnd } from "./request.ts";
import { EgressResolver } from "./resolver.ts";
import { isNamed, join, readStart } from "./tunnel.ts";

export type EgressProxyOptions = {
  network: Pick<NetworkSpec, "allowedHosts" | "dnsServers">;
  addresses: DialableAddresses;
  /** All connections go through it; then it looks names up, and decides about their addresses. */
  upstream?: UpstreamProxy | undefined;
  clock: Clock;
  /** Connections at once. */
  maxConnections?: number;
  /** Told of each request and whether it was let through, for the operator's log. */
  onRequest?: (entry: EgressEntry) => void;
};

export type EgressEntry = { method: string; host: string; port: number; refused: string | undefined };

const NO_TARGET = "this is a proxy: the target must be a whole http:// URL, and Host the same host";
const OTHER_TARGET = "a request in a tunnel must have a path as its target, and as its Host where the tunnel leads";
const MAX_CONNECTIONS = 256;
const HEAD_MS = 10_000;
/** As long as a server that thinks may be silent. */
const SILENT_MS = 600_000;

/**
 * The only way out of a sandbox: an HTTP proxy (RFC 9110 §7.3.2, `CONNECT` §9.3.6) that lets through what
 * `allowed_hosts` names, and nothing else.
 *
 * - Hosts are compared in one form (`host-names.ts`). The proxy looks the name up itself and dials exactly the address
 *   that it found and judged: an answer that changes in between (DNS rebinding) changes nothing.
 * - Through `CONNECT` only TLS and HTTP pass, and only to the server that was asked for: its ClientHello must name that
 *   host. Else one allowed host behind a shared address would open the others there. A connection of plain HTTP carries
 *   one host per request, which must be that of its `Host` field, also in a tunnel (Node.js asks for one always).
 * - Bytes are counted on the side of the network (`traffic`).
 *
 * Whoever asks from inside is hostile: heads, times and connections are bounded.
 */
export class EgressProxy {
  readonly #options: EgressProxyOptions;
  readonly #rules: readonly string[];
  readonly #resolver: EgressResolver;
  readonly #server: Server;
  readonly #open = new Set<Duplex>();
  /** Sockets, with the hosts that they lead to. */
  readonly #dialled = new Map<Socket, string>();
  /** What is allowed for a while, beside `#rules`. */
  readonly #passing = new Set<readonly string[]>();
  /** Connections that are tunnels for HTTP. */
  readonly #tunnels = new WeakMap<Duplex, TunnelEnd>();
  /** Of connections that have ended. */
  readonly #past = { receivedBytes: 0, sentBytes: 0 };

  constructor(options: EgressProxyOptions) {
    this.#options = options;
    const { allowedHosts, dnsServers } = options.network;
    this.#rules = allowedHosts.flatMap((rule) => canonicalRule(rule) ?? []);
    this.#resolver = new EgressResolver(options.addresses, dnsServers);
    this.#server = createServer({
      maxHeaderSize: 32 * 1024,
      headersTimeout: HEAD_MS,
      requestTimeout: 0,
      keepAliveTimeout: 30_000,
    });
    this.#server.on("request", (request, response) => void this.#forward(request, response));
    this.#server.on("connect", (request, socket, head) => void this.#tunnel(request, socket, head));
    this.#server.on("upgrade", (_request, socket) => {
      endWith(socket, new EgressRefusal(403, "an upgrade needs TLS in a tunnel: use CONNECT"));
    });
    this.#server.on("clientError", (_error, socket) => {
      endWith(socket, new EgressRefusal(400, "this is no request of HTTP"));
    });
  }

  /** What came from the network, and what went there. */
  get traffic(): { receivedBytes: number; sentBytes: number } {
    let { receivedBytes, sentBytes } = this.#past;
    for (const socket of this.#dialled.keys()) {
      receivedBytes += socket.bytesRead;
      sentBytes += socket.bytesWritten;
    }
    return { receivedBytes, sentBytes };
  }

  /** Connections that are open. */
  get connections(): number {
    return this.#open.size;
  }

  /** Serves a connection that something in the sandbox opened. */
  accept(connection: Duplex): void {
    connection.on("error", () => connection.destroy());
    if (this.#open.size >= (this.#options.maxConnections ?? MAX_CONNECTIONS)) {
      endWith(connection, new EgressRefusal(503, "the sandbox has too many connections open"));
      return;
    }
    this.#track(connection);
    this.#server.emit("connection", connection);
  }

  /**
   * These hosts are allowed, too, until the returned function is called: then connections to those that no rule allows
   * any more end.
   */
  letOut(rules: readonly string[]): () => void {
    const passing = rules.flatMap((rule) => canonicalRule(rule) ?? []);
    this.#passing.add(passing);
    return () => {
      this.#passing.delete(passing);
      for (const [socket, host] of this.#dialled) if (!this.#isAllowed(host)) socket.destroy();
    };
  }

  /** Every connection ends at once. */
  close(): void {
    for (const stream of this.#open) stream.destroy();
    this.#server.close();
  }

  #track(stream: Duplex): void {
    this.#open.add(stream);
    stream.once("close", () => this.#open.delete(stream));
  }

  async #tunnel(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const { host, port } = splitAuthority(request.url ?? "");
    let server: Socket;
    try {
      if (this.#tunnels.has(client)) throw new EgressRefusal(400, "there is no tunnel in a tunnel");
      this.#check("CONNECT", host, port);
      server = await this.#dial(host, port);
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
    } catch (error) {
      this.#note("CONNECT", host, port, error);
      endWith(client, refusalOf(error));
      return;
    }
    try {
      const hello = await readStart(client, head, this.#options.clock);
      if (hello.kind === "http") {
        // Each of its requests is judged, and has a connection of its own.
        server.destroy();
        this.#tunnels.set(client, { host, port });
        client.unshift(hello.bytes);
        this.#server.emit("connection", client);
        return;
      }
      if (!isNamed(hello.serverName, host)) {
        throw new EgressRefusal(403, `the TLS connection to ${host} asks for ${hello.serverName ?? "no name"}`);
      }
      server.write(hello.bytes);
      this.#note("CONNECT", host, port, undefined);
      join(client, server);
    } catch (error) {
      this.#note("CONNECT", host, port, error);
      client.destroy();
      server.destroy();
    }
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const method = request.method ?? "GET";
    const tunnel = this.#tunnels.get(request.socket);
    const target = tunnel === undefined ? targetOf(request) : targetInTunnel(request, tunnel);
    try {
      if (target === undefined) throw new EgressRefusal(400, tunnel === undefined ? NO_TARGET : OTHER_TARGET);
      this.#check(method, target.host, target.port);
      const socket = await this.#dial(target.host, target.port);
      this.#note(method, target.host, target.port, undefined);
      await this.#exchange(request, response, { socket, path: target.path, authority: target.authority });
    } catch (error) {
      this.#note(method, target?.host, target?.port ?? 0, error);
      const { status, message } = refusalOf(error);
      if (response.headersSent) response.destroy();
      else response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8" }).end(`${message}\n`);
    }
  }

  /** One request on a connection of its own; resolves when the answer has gone, rejects when there is none. */
  #exchange(
    request: IncomingMessage,
    response: ServerResponse,
    { socket, path, authority }: { socket: Socket; path: string; authority: string },
  ): Promise<void> {
    const headers = { ...forwardable(request), host: authority, connection: "close" };
    const done = Promise.withResolvers<void>();
    const outgoing = httpRequest({
      method: request.method ?? "GET",
      path,
      headers,
      setHost: false,
      createConnection: () => socket,
    });
    outgoing.once("error", (error) => {
      done.reject(new EgressRefusal(502, `the server did not answer: ${messageOf(error)}`));
    });
    outgoing.once("response", (answer) => {
      response.writeHead(answer.statusCode ?? 502, forwardable(answer));
      pipeline(answer, response, (error) => {
        socket.destroy();
        if (error) response.destroy();
        done.resolve();
      });
    });
    response.once("close", () => outgoing.destroy());
    pipeline(request, outgoing, () => {});
    return done.promise;
  }

  async #dial(host: string, port: number): Promise<Socket> {
    const { upstream } = this.#options;
    const socket =
      upstream === undefined
        ? await dialAny(await this.#resolver.resolve(host), port)
        : await dialThrough(upstream, host, port, this.#options.addresses);
    if (!this.#isAllowed(host)) {
      socket.destroy();
      throw notAllowed(host);
    }
    socket.setTimeout(SILENT_MS, () => socket.destroy());
    this.#track(socket);
    this.#dialled.set(socket, host);
    socket.once("close", () => {
      this.#dialled.delete(socket);
      this.#past.receivedBytes += socket.bytesRead;
      this.#past.sentBytes += socket.bytesWritten;
    });
    return socket;
  }

  #note(method: string, host: string | undefined, port: number, error: unknown): void {
    const refused = error === undefined ? undefined : messageOf(error);
    this.#options.onRequest?.({ method, host: host ?? "", port, refused });
  }

  #isAllowed(host: string): boolean {
    return [this.#rules, ...this.#passing].some((rules) => isAllowed(host, rules));
  }

  /** Throws `EgressRefusal` when the rules do not name the host. */
  #check(method: string, host: string | undefined, port: number): asserts host is string {
    if (host === undefined || !(port >= 1 && port <= 65_535)) {
      throw new EgressRefusal(400, `${method} needs a host and a port`);
    }
    if (this.#isAllowed(host)) return;
    throw notAllowed(host);
  }
}

function notAllowed(host: string): EgressRefusal {
  return new EgressRefusal(403, `${host} is not among the sandbox's allowed_hosts`);
}

function refusalOf(error: unknown): EgressRefusal {
  return error instanceof EgressRefusal ? error : new EgressRefusal(502, messageOf(error));
}

function endWith(connection: Duplex, { status, message }: EgressRefusal): void {
  const body = `${message}\n`;
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Refused"}`;
  const fields = `Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}`;
  connection.end(`${head}\r\n${fields}\r\nConnection: close\r\n\r\n${body}`);
}
