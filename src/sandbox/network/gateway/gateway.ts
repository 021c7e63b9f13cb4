import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { Clock } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import { endWith, refusalOf, refuse } from "../http/answers.ts";
import { exchange } from "../http/exchange.ts";
import { canonicalHost } from "../../contract/host-names.ts";
import { createInsideServer } from "../http/http-server.ts";
import { EgressRefusal } from "../http/refusal.ts";
import { splitHost, type TunnelEnd } from "../http/request.ts";
import type { GatewayAuthority } from "./authority.ts";
import { additionOf, type Purpose } from "../credentials/credential.ts";
import { answerHeaders, checkMethod, headersWith } from "./headers.ts";
import { KeptValues } from "../credentials/kept-values.ts";
import { agentTarget, authorityOf, gitTarget, namedTarget, withoutKeys } from "./paths.ts";
import type { GatewayRoutes } from "./routes.ts";
import { secure } from "./upstream.ts";

export type GatewayOptions = {
  routes: GatewayRoutes;
  /** The value of a credential, as the store has it. Rejects with an `EngineError`; values are kept here for 60 s. */
  reveal: (credentialId: string) => Promise<unknown>;
  /** Of this sandbox; undefined where no host is spoken for. */
  authority: GatewayAuthority | undefined;
  /** The operator's certificate authorities in PEM, trusted upstream beside the system's. */
  certificates: string | undefined;
  clock: Clock;
  log: Log;
};

/** What the gateway has of the proxy that it is a part of. */
export type GatewayWay = {
  /** A connection at an address that was judged. Rejects with `EgressRefusal`. */
  dial(host: string, port: number): Promise<Socket>;
  note(entry: { method: string; host: string; port: number }, error: unknown): void;
};

type Going = {
  to: { secure: boolean; host: string; port: number };
  path: string;
  credentialId: string;
  purpose: Purpose;
};

const HANDSHAKE_MS = 10_000;
export const NO_UPGRADE_BY_GATEWAY =
  "a connection that is upgraded (a WebSocket, say) cannot carry the credential: use plain requests";

/**
 * Adds the secrets of a sandbox to its requests, outside of it: what runs inside never has them.
 *
 * - Requests for `http://127.0.0.1:<port>/_engine/` go to the API of the agent's model, or to a repository.
 * - TLS to a host that a credential is bound to is ended here, by a certificate of the sandbox's own authority: its
 *   tunnels never go through.
 *
 * Everything that may be a credential is taken from a request, the stored one is added, and it is sent over TLS that was
 * verified before. A route leads to one upstream, and that of a repository to this repository alone.
 */
export class Gateway {
  readonly #options: GatewayOptions;
  readonly #values: KeptValues;
  /** For what comes in TLS that is ended here. */
  readonly #server: Server;
  readonly #ended = new WeakMap<Duplex, { end: TunnelEnd; way: GatewayWay }>();

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.#values = new KeptValues(options);
    this.#server = createInsideServer(() => NO_UPGRADE_BY_GATEWAY);
    this.#server.on("request", (request, response) => void this.#serveHost(request, response));
    this.#server.on("connect", (_request, socket) => {
      endWith(socket, new EgressRefusal(400, "there is no tunnel in a tunnel"));
    });
  }

  /** Whether a credential is bound to that canonical host: nothing but the gateway leads there. */
  isBound(host: string): boolean {
    return this.#options.routes.hosts.has(host);
  }

  /** Serves a request for the gateway itself, in origin form. */
  async serve(request: IncomingMessage, response: ServerResponse, way: GatewayWay): Promise<void> {
    await this.#answer(request, response, way, () => {
      const [host] = request.headersDistinct.host ?? [];
      const name = canonicalHost(splitHost(host ?? "").name);
      if (request.headersDistinct.host?.length !== 1 || !(name === "localhost" || name === "127.0.0.1")) {
        throw new EgressRefusal(400, "Host must be the gateway's own address");
      }
      return this.#named(request);
    });
  }

  /** Speaks TLS as a bound host with a client whose whole ClientHello was unshifted. Rejects where that fails. */
  async terminate(client: Duplex, end: TunnelEnd, way: GatewayWay): Promise<void> {
    const { authority, clock } = this.#options;
    if (authority === undefined) throw new EgressRefusal(403, `no connection to ${end.host} is let through`);
    const secureContext = await authority.contextFor(end.host);
    const secured = new TLSSocket(client, { isServer: true, secureContext, ALPNProtocols: ["http/1.1"] });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const late = clock.after(HANDSHAKE_MS, () => secured.destroy(new Error("the handshake took too long")));
    secured.once("secure", resolve);
    secured.once("error", reject);
    secured.once("close", () => {
      client.destroy();
      reject(new Error("the client ended the connection"));
    });
    try {
      await promise;
    } catch (error) {
      secured.destroy();
      client.destroy();
      throw new EgressRefusal(400, `TLS as ${end.host}: ${messageOf(error)}`);
    } finally {
      late.cancel();
    }
    secured.on("error", () => secured.destroy());
    this.#ended.set(secured, { end, way });
    this.#server.emit("connection", secured);
  }

  /** Forgets all values. Its connections are the proxy's. */
  close(): void {
    this.#values.close();
    this.#server.close();
  }

  async #serveHost(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const known = this.#ended.get(request.socket);
    if (known === undefined) {
      request.socket.destroy();
      return;
    }
    await this.#answer(request, response, known.way, () => this.#direct(request, known.end));
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    way: GatewayWay,
    find: () => Going | { redirect: string },
  ): Promise<void> {
    const method = request.method ?? "GET";
    let to = { host: "", port: 0 };
    try {
      checkMethod(method);
      const going = find();
      if ("redirect" in going) {
        response.writeHead(307, { Location: going.redirect, "Cache-Control": "no-store" }).end();
        return;
      }
      to = { host: going.to.host, port: going.to.port };
      await this.#send(request, response, way, going);
    } catch (error) {
      way.note({ method, ...to }, error);
      refuse(response, refusalOf(error));
    }
  }

  /** Throws `EgressRefusal` for what leads nowhere. */
  #named(request: IncomingMessage): Going | { redirect: string } {
    const { routes } = this.#options;
    const target = namedTarget(request.url ?? "");
    if (target?.route === "agent" && routes.agent !== undefined) {
      const { upstream, credentialId, keyStyle } = routes.agent;
      return { to: upstream, path: agentTarget(routes.agent, target.rest), credentialId, purpose: keyStyle };
    }
    const route = target?.route === "git" ? routes.git.get(target.place) : undefined;
    if (target?.route !== "git" || route === undefined) {
      throw new EgressRefusal(
        404,
        "the gateway has no credential for that: it knows /_engine/agent and /_engine/git/<n>",
      );
    }
    const found = gitTarget(route, { method: request.method ?? "GET", after: target.after, rest: target.rest });
    if ("redirect" in found) return found;
    return { to: route.upstream, path: found.path, credentialId: route.credentialId, purpose: "git" };
  }

  /** The same of a request in TLS that was ended here: its Host is the tunnel's. */
  #direct({ url = "", headersDistinct }: IncomingMessage, { host, port }: TunnelEnd): Going {
    const route = this.#options.routes.hosts.get(host);
    const named = splitHost(headersDistinct.host?.[0] ?? "");
    const isHere = canonicalHost(named.name) === host && (named.port ?? 443) === port;
    if (route === undefined || headersDistinct.host?.length !== 1 || !isHere || !url.startsWith("/")) {
      throw new EgressRefusal(400, `only requests with a path, and with Host ${host}, go through this connection`);
    }
    const path = route.isAgents ? withoutKeys(url) : url;
    return { to: { secure: true, host, port }, path, credentialId: route.credentialId, purpose: route.keyStyle };
  }

  async #send(request: IncomingMessage, response: ServerResponse, way: GatewayWay, going: Going): Promise<void> {
    const { to, path, credentialId, purpose } = going;
    const value = await this.#values.get(credentialId);
    const addition = additionOf(value, purpose);
    const headers = headersWith(request, { addition, authority: authorityOf(to), git: purpose === "git" });
    const dialled = await way.dial(to.host, to.port);
    const { certificates, clock } = this.#options;
    const socket = to.secure ? await secure(dialled, { host: to.host, certificates, clock }) : dialled;
    way.note({ method: request.method ?? "GET", host: to.host, port: to.port }, undefined);
    const onAnswer = (answer: IncomingMessage): Record<string, string[]> => {
      if (answer.statusCode === 401) this.#values.refused(credentialId, value);
      return answerHeaders(answer, addition);
    };
    await exchange(request, response, { socket, path, headers, onAnswer });
  }
}
