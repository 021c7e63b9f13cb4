import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import { NO_UPGRADE_BY_GATEWAY, type Gateway, type GatewayWay } from "../gateway/gateway.ts";
import { GATEWAY_PATH } from "../gateway/paths.ts";
import type { NetworkSpec } from "../../contract/spec.ts";
import type { DialableAddresses } from "./addresses.ts";
import { endWith, refusalOf, refuse } from "../http/answers.ts";
import type { UpstreamProxy } from "./dial.ts";
import { exchange } from "../http/exchange.ts";
import { canonicalRule, isAllowed } from "../../contract/host-names.ts";
import { createInsideServer } from "../http/http-server.ts";
import { EgressRefusal } from "../http/refusal.ts";
import { forwardable, framingOf, splitAuthority, targetInTunnel, targetOf, type TunnelEnd } from "../http/request.ts";
import { isNamed, join, readStart } from "./tunnel.ts";
import { WayOut } from "./way-out.ts";

export type EgressProxyOptions = {
  network: Pick<NetworkSpec, "allowedHosts" | "dnsServers">;
  addresses: DialableAddresses;
  /** All connections go through it; then it looks names up, and decides about their addresses. */
  upstream?: UpstreamProxy | undefined;
  /** Has the secrets of the sandbox, which go to their hosts by it alone. It ends with the proxy. */
  gateway?: Gateway | undefined;
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
const NO_UPGRADE = "an upgrade needs TLS in a tunnel: use CONNECT";

/**
 * The only way out of a sandbox: an HTTP proxy (RFC 9110 §7.3.2, `CONNECT` §9.3.6) that lets through what
 * `allowed_hosts` names, and nothing else.
 *
 * - Hosts are compared in one form (`host-names.ts`). The proxy looks the name up itself and dials exactly the address
 *   that it found and judged: an answer that changes in between (DNS rebinding) changes nothing.
 * - Through `CONNECT` only TLS and HTTP pass, and only to the server that was asked for: its ClientHello must name that
 *   host. Else one allowed host behind a shared address would open the others there. A connection of plain HTTP carries
 *   one host per request, which must be that of its `Host` field, also in a tunnel (Node.js asks for one always).
 * - To hosts that a credential of the sandbox is bound to there are no tunnels, and no plain HTTP: the gateway speaks for
 *   them. Requests for the proxy itself are the gateway's, too.
 * - Bytes are counted on the side of the network (`traffic`).
 *
 * Whoever asks from inside is hostile: heads, times and connections are bounded.
 */
export class EgressProxy {
  readonly #options: EgressProxyOptions;
  readonly #rules: readonly string[];
  readonly #wayOut: WayOut;
  readonly #server: Server;
  readonly #open = new Set<Duplex>();
  /** What is allowed for a while, beside `#rules`. */
  readonly #passing = new Set<readonly string[]>();
  /** Connections that are tunnels for HTTP. */
  readonly #tunnels = new WeakMap<Duplex, TunnelEnd>();
  /** Where a credential is bound to a host, that is the permission to reach it. */
  readonly #gatewayWay: GatewayWay = {
    dial: (host, port) => this.#dial(host, port, () => true),
    note: ({ method, host, port }, error) => this.#note(method, host, port, error),
  };

  constructor(options: EgressProxyOptions) {
    this.#options = options;
    const { network, addresses, upstream } = options;
    this.#rules = network.allowedHosts.flatMap((rule) => canonicalRule(rule) ?? []);
    const onSocket = (socket: Socket): void => this.#track(socket);
    this.#wayOut = new WayOut({ dnsServers: network.dnsServers, addresses, upstream, onSocket });
    this.#server = createInsideServer(({ url }) => (isOfGateway(url) ? NO_UPGRADE_BY_GATEWAY : NO_UPGRADE));
    this.#server.on("request", (request, response) => void this.#serve(request, response));
    this.#server.on("connect", (request, socket, head) => void this.#tunnel(request, socket, head));
  }

  /** What came from the network, and what went there. */
  get traffic(): { receivedBytes: number; sentBytes: number } {
    return this.#wayOut.traffic;
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
      this.#wayOut.review();
    };
  }

  /** Every connection ends at once. */
  close(): void {
    for (const stream of this.#open) stream.destroy();
    this.#server.close();
    this.#options.gateway?.close();
  }

  #track(stream: Duplex): void {
    this.#open.add(stream);
    stream.once("close", () => this.#open.delete(stream));
  }

  async #tunnel(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const { host, port } = splitAuthority(request.url ?? "");
    let server: Socket | undefined;
    try {
      if (this.#tunnels.has(client)) throw new EgressRefusal(400, "there is no tunnel in a tunnel");
      const isBound = host !== undefined && this.#options.gateway?.isBound(host) === true;
      this.#check("CONNECT", host, port, isBound);
      server = isBound ? undefined : await this.#dial(host, port, () => this.#isAllowed(host));
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
    } catch (error) {
      this.#note("CONNECT", host, port, error);
      endWith(client, refusalOf(error));
      return;
    }
    try {
      if (server === undefined) await this.#endTls(client, head, { host, port });
      else await this.#join(client, head, { server, end: { host, port } });
    } catch (error) {
      this.#note("CONNECT", host, port, error);
      client.destroy();
      server?.destroy();
    }
  }

  /** What comes in a tunnel goes to the server as it is, or request by request. */
  async #join(client: Duplex, head: Buffer, { server, end }: { server: Socket; end: TunnelEnd }): Promise<void> {
    const start = await readStart(client, head, this.#options.clock);
    if (start.kind === "http") {
      // Each of its requests is judged, and has a connection of its own.
      server.destroy();
      this.#tunnels.set(client, end);
      client.unshift(start.bytes);
      this.#server.emit("connection", client);
      return;
    }
    checkName(start.serverName, end);
    server.write(start.bytes);
    this.#note("CONNECT", end.host, end.port, undefined);
    join(client, server);
  }

  /** What comes in a tunnel is for the gateway. */
  async #endTls(client: Duplex, head: Buffer, end: TunnelEnd): Promise<void> {
    const start = await readStart(client, head, this.#options.clock);
    if (start.kind === "http") {
      const refusal = new EgressRefusal(403, onlyTls(end.host));
      this.#note("CONNECT", end.host, end.port, refusal);
      endWith(client, refusal);
      return;
    }
    checkName(start.serverName, end);
    client.unshift(start.bytes);
    await this.#options.gateway?.terminate(client, end, this.#gatewayWay);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { gateway } = this.#options;
    const isItself = !this.#tunnels.has(request.socket) && isOfGateway(request.url);
    if (isItself && gateway !== undefined) await gateway.serve(request, response, this.#gatewayWay);
    else await this.#forward(request, response);
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const method = request.method ?? "GET";
    const tunnel = this.#tunnels.get(request.socket);
    const target = tunnel === undefined ? targetOf(request) : targetInTunnel(request, tunnel);
    try {
      if (target === undefined) throw new EgressRefusal(400, tunnel === undefined ? NO_TARGET : OTHER_TARGET);
      const { host, port } = target;
      if (host !== undefined && this.#options.gateway?.isBound(host) === true) {
        throw new EgressRefusal(403, onlyTls(host));
      }
      this.#check(method, host, port, false);
      const headers = { ...forwardable(request), ...framingOf(request), host: target.authority, connection: "close" };
      const socket = await this.#dial(host, port, () => this.#isAllowed(host));
      this.#note(method, host, port, undefined);
      await exchange(request, response, { socket, path: target.path, headers, onAnswer: forwardable });
    } catch (error) {
      this.#note(method, target?.host, target?.port ?? 0, error);
      refuse(response, refusalOf(error));
    }
  }

  async #dial(host: string, port: number, mayBe: () => boolean): Promise<Socket> {
    const socket = await this.#wayOut.dial(host, port, mayBe);
    if (socket === undefined) throw notAllowed(host);
    return socket;
  }

  #note(method: string, host: string | undefined, port: number, error: unknown): void {
    const refused = error === undefined ? undefined : messageOf(error);
    this.#options.onRequest?.({ method, host: host ?? "", port, refused });
  }

  #isAllowed(host: string): boolean {
    return [this.#rules, ...this.#passing].some((rules) => isAllowed(host, rules));
  }

  /** Throws `EgressRefusal` when the rules do not name the host, and no credential is bound to it. */
  #check(method: string, host: string | undefined, port: number, isBound: boolean): asserts host is string {
    if (host === undefined || !(port >= 1 && port <= 65_535)) {
      throw new EgressRefusal(400, `${method} needs a host and a port`);
    }
    if (!isBound && !this.#isAllowed(host)) throw notAllowed(host);
  }
}

function isOfGateway(target = ""): boolean {
  return target.startsWith(GATEWAY_PATH);
}

function notAllowed(host: string): EgressRefusal {
  return new EgressRefusal(403, `${host} is not among the sandbox's allowed_hosts`);
}

function onlyTls(host: string): string {
  return `a credential of the sandbox is bound to ${host}: it is reached by TLS in a tunnel alone`;
}

/** Throws `EgressRefusal` for TLS to another host than that of the tunnel. */
function checkName(serverName: string | undefined, { host }: TunnelEnd): void {
  if (isNamed(serverName, host)) return;
  throw new EgressRefusal(403, `the TLS connection to ${host} asks for ${serverName ?? "no name"}`);
}
