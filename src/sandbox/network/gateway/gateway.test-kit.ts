import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { Server, Socket } from "node:net";
import { connect as tlsConnect, type TLSSocket } from "node:tls";
import { ManualClock, systemClock } from "../../../core/clock.ts";
import { silentLog } from "../../../core/log.ts";
import { systemRandom } from "../../../core/random.ts";
import { certificateFolder, makeCertificate } from "../../../io/http/tls.test-kit.ts";
import { DialableAddresses } from "../egress/addresses.ts";
import { EgressProxy, type EgressEntry } from "../egress/proxy.ts";
import { listen, listenFor, openTunnel, startNameServer } from "../egress/proxy.test-kit.ts";
import type { CredentialUse, GitRepo } from "../../contract/spec.ts";
import { GatewayAuthority } from "./authority.ts";
import { Gateway } from "./gateway.ts";
import { routesOf } from "./routes.ts";

/** A request as an upstream saw it: every field, as often as it came. */
export type Seen = { method: string; url: string; headers: Record<string, string[] | undefined> };

export type Upstream = { port: number; seen: Seen[]; connections: () => number };

export type WorldOptions = {
  agentProvider?: string;
  credentials?: readonly CredentialUse[];
  gitRepos?: readonly GitRepo[];
  allowedHosts?: readonly string[];
  providerUrls?: Readonly<Record<string, string>>;
  plainHttp?: boolean;
  /** Values by credential id; a function is asked each time. */
  values?: Readonly<Record<string, unknown>>;
  trusted?: boolean;
  dialable?: readonly string[];
};

/** Names under `.test` are on this computer, but for `inside.test`, which is on a private network. */
export async function openWorld() {
  const names = await startNameServer((name) => (name === "inside.test" ? "10.0.0.7" : "127.0.0.1"));
  const folder = certificateFolder();
  const ca = await makeCertificate(folder, "ca", { names: ["DNS:ca.test"] });
  const { certPath, keyPath } = await makeCertificate(folder, "upstream", {
    names: ["DNS:api.test", "DNS:git.test", "DNS:other.test", "DNS:inside.test", "DNS:localhost"],
    authority: ca,
  });
  const tls = { cert: readFileSync(certPath), key: readFileSync(keyPath) };
  const authority = await GatewayAuthority.make({ clock: systemClock, random: systemRandom });
  const servers: Server[] = [];
  const proxies: EgressProxy[] = [];

  const upstream = async (listener: RequestListener): Promise<Upstream> => {
    const seen: Seen[] = [];
    let connections = 0;
    const server = createHttpsServer(tls, (request, response) => {
      seen.push({ method: request.method ?? "", url: request.url ?? "", headers: { ...request.headersDistinct } });
      listener(request, response);
    });
    server.on("connection", () => connections++);
    servers.push(server);
    return { port: await listen(server), seen, connections: () => connections };
  };

  const proxy = async (options: WorldOptions) => {
    const clock = new ManualClock();
    const log: EgressEntry[] = [];
    const asked: string[] = [];
    const spec = {
      agentProvider: options.agentProvider ?? "codex",
      credentials: options.credentials ?? [],
      gitRepos: options.gitRepos ?? [],
    };
    const { plainHttp = false, providerUrls = {} } = options;
    const gateway = new Gateway({
      routes: routesOf(spec, providerUrls, { plainHttp }),
      reveal: async (id) => {
        asked.push(id);
        const value = options.values?.[id];
        return typeof value === "function" ? ((await value()) as unknown) : value;
      },
      authority,
      certificates: options.trusted === false ? undefined : readFileSync(ca.certPath, "utf8"),
      // Values end by it; connections do not wait for it.
      clock,
      log: silentLog,
    });
    const egress = new EgressProxy({
      network: { allowedHosts: options.allowedHosts ?? [], dnsServers: [names.address] },
      addresses: new DialableAddresses(options.dialable ?? ["127.0.0.1"]),
      gateway,
      clock: systemClock,
      onRequest: (entry) => log.push(entry),
    });
    proxies.push(egress);
    const server = listenFor((connection) => egress.accept(connection));
    servers.push(server);
    return { port: await listen(server), proxy: egress, clock, log, asked };
  };

  return {
    authority,
    upstream,
    proxy,
    serve: async (server: Server): Promise<number> => {
      servers.push(server);
      return await listen(server);
    },
    tls,
    closeAll: (): void => {
      for (const one of proxies.splice(0)) one.close();
      for (const one of servers.splice(0)) one.close();
    },
    close: () => names.close(),
  };
}

export type World = Awaited<ReturnType<typeof openWorld>>;

export const PAT = { kind: "pat", token: "real-secret-token" } as const;

/** A credential for hosts of the tests, or the agent's. */
export function use(credentialId: string, hosts: readonly string[], envVar?: string): CredentialUse {
  return { credentialId, envVar, hosts };
}

export function repo(url: string, credentialId = "cred-git"): GitRepo {
  return { url, pin: undefined, path: "/home/agent/repo", depth: undefined, credentialId };
}

export type Answer = { status: number; headers: IncomingMessage["headers"]; text: string };

/** TLS as a client inside speaks it, which trusts the sandbox's authority alone. Rejects with the error of TLS. */
export async function secureTunnel(
  proxyPort: number,
  authority: string,
  ca: string,
  { servername, alpn = ["http/1.1"] }: { servername?: string; alpn?: string[] } = {},
): Promise<TLSSocket> {
  const tunnel = await openTunnel(proxyPort, authority);
  if (typeof tunnel === "string") throw new Error(tunnel);
  const name = servername ?? authority.replace(/:\d+$/, "").toLowerCase();
  const secured = tlsConnect({ socket: tunnel, ca, servername: name, ALPNProtocols: alpn });
  await once(secured, "secureConnect");
  secured.on("error", () => undefined);
  return secured;
}

/** Sends a request over a connection, its target as it is. */
export async function ask(
  socket: Socket,
  target: string,
  {
    method = "GET",
    headers = {},
    body,
  }: { method?: string; headers?: Record<string, string | string[]>; body?: string } = {},
): Promise<Answer> {
  const sent = httpRequest({ method, path: target, headers, createConnection: () => socket });
  sent.end(body);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of answer) pieces.push(piece as Buffer);
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(pieces).toString() };
}

/** Writes bytes as they are, and reads until the other side ends. */
export async function sendRaw(socket: Socket, bytes: string): Promise<string> {
  socket.on("error", () => undefined);
  let text = "";
  socket.on("data", (piece: Buffer) => void (text += piece.toString("latin1")));
  socket.write(bytes, "latin1");
  await closed(socket);
  return text;
}

/** Also of a connection that ends by an error. */
export async function closed(socket: Socket): Promise<void> {
  if (socket.closed) return;
  await new Promise<void>((resolve) => void socket.once("close", () => resolve()));
}
