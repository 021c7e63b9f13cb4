import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { connect as tlsConnect, createServer as createTlsServer } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../core/clock.ts";
import { certificateFolder, makeCertificate } from "../../../io/http/tls.test-kit.ts";
import { DialableAddresses } from "./addresses.ts";
import { EgressProxy, type EgressEntry, type EgressProxyOptions } from "./proxy.ts";
import { listen, listenFor, openTunnel, startNameServer, throughProxy } from "./proxy.test-kit.ts";

/** Names of the tests: `*.test` and `allowed.test` are on this computer, `inside.test` on a private network. */
const NAMES: Readonly<Record<string, string>> = {
  "allowed.test": "127.0.0.1",
  "a.wild.test": "127.0.0.1",
  "forbidden.test": "127.0.0.1",
  "inside.test": "10.0.0.7",
  "metadata.test": "169.254.169.254",
};
const RULES = ["allowed.test", "*.wild.test", "inside.test", "metadata.test", "rebinding.test", "127.0.0.1", "[::1]"];

let names: Awaited<ReturnType<typeof startNameServer>>;
const servers: Server[] = [];
const proxies: EgressProxy[] = [];
const log: EgressEntry[] = [];

beforeEach(async () => {
  // A name that leads elsewhere when it is asked for again.
  names = await startNameServer((name, count) =>
    name === "rebinding.test" ? (count === 1 ? "127.0.0.1" : "10.0.0.7") : NAMES[name],
  );
});

afterEach(async () => {
  for (const proxy of proxies.splice(0)) proxy.close();
  for (const server of servers.splice(0)) server.close();
  await names.close();
  log.length = 0;
});

async function serve(server: Server): Promise<number> {
  servers.push(server);
  return listen(server);
}

async function startProxy(options: Partial<EgressProxyOptions> = {}): Promise<{ port: number; proxy: EgressProxy }> {
  const proxy = new EgressProxy({
    network: { allowedHosts: RULES, dnsServers: [names.address] },
    addresses: new DialableAddresses(["127.0.0.1", "::1"]),
    clock: systemClock,
    onRequest: (entry) => log.push(entry),
    ...options,
  });
  proxies.push(proxy);
  const port = await serve(listenFor((connection) => proxy.accept(connection)));
  return { port, proxy };
}

const startOrigin = (handle: (request: IncomingMessage, response: ServerResponse) => void) =>
  serve(createServer(handle));

async function startTls(): Promise<number> {
  const { certPath, keyPath } = await makeCertificate(certificateFolder(), "origin");
  const tls = { cert: readFileSync(certPath), key: readFileSync(keyPath) };
  return serve(createTlsServer(tls, (socket) => socket.on("error", () => {}).pipe(socket)));
}

/** A tunnel to such a server, in which TLS has begun. */
async function openRawTunnel(handle: (socket: Socket) => void): Promise<{ tunnel: Socket; proxy: EgressProxy }> {
  const hello = Promise.withResolvers<Buffer>();
  const listener = await serve(createTcpServer((socket) => socket.once("data", hello.resolve)));
  const client = tlsConnect({ host: "127.0.0.1", port: listener, servername: "allowed.test" }).on("error", () => {});
  const port = await serve(createTcpServer((socket) => handle(socket.on("error", () => {}))));
  const { port: proxyPort, proxy } = await startProxy();
  const tunnel = (await openTunnel(proxyPort, `allowed.test:${port}`)) as Socket;
  tunnel.pause().write(await hello.promise);
  client.destroy();
  return { tunnel, proxy };
}

describe("plain HTTP", () => {
  it("reaches an allowed host, and nothing about the way there", async () => {
    const port = await startOrigin((request, response) => {
      response.setHeader("Set-Cookie", ["a=1", "b=2"]);
      response.end(JSON.stringify([request.method, request.url, request.headers]));
    });
    const { port: proxyPort, proxy } = await startProxy();
    const headers = { Host: `Allowed.TEST:${port}`, "Proxy-Authorization": "Basic eA==", Connection: "close, X-Hop" };
    const answer = await throughProxy(proxyPort, `http://allowed.test:${port}/a?b=c`, {
      headers: { ...headers, "X-Hop": "1", "X-End": "2" },
    });
    const [method, url, seen] = JSON.parse(answer.text) as [string, string, Record<string, string>];
    expect([answer.status, method, url]).toEqual([200, "GET", "/a?b=c"]);
    expect(seen).toMatchObject({ host: `allowed.test:${port}`, "x-end": "2", connection: "close" });
    expect(Object.keys(seen)).not.toEqual(expect.arrayContaining(["x-hop"]));
    expect(Object.keys(seen)).not.toContain("proxy-authorization");
    expect(answer.headers["set-cookie"]).toEqual(["a=1", "b=2"]);
    expect(log).toEqual([{ method: "GET", host: "allowed.test", port, refused: undefined }]);
    expect(proxy.traffic.receivedBytes).toBeGreaterThan(answer.text.length);
    expect(proxy.traffic.sentBytes).toBeGreaterThan(50);
  });

  it("carries bodies in both directions", async () => {
    const port = await startOrigin((request, response) => void request.pipe(response));
    const { port: proxyPort, proxy } = await startProxy();
    const body = Buffer.alloc(3_000_000, "0123456789");
    const answer = await throughProxy(proxyPort, `http://a.wild.test:${port}/`, {
      method: "POST",
      body,
      headers: { Host: `a.wild.test:${port}` },
    });
    expect(answer.text === body.toString()).toBe(true);
    expect(proxy.traffic.sentBytes).toBeGreaterThanOrEqual(body.length);
  });

  it.each([
    ["a host that is not allowed", "http://forbidden.test/", "forbidden.test", 403],
    ["the name above a wildcard", "http://wild.test/", "wild.test", 403],
    ["a private address", "http://inside.test/", "inside.test", 403],
    ["the metadata of a cloud", "http://metadata.test/latest", "metadata.test", 403],
    ["another Host", "http://allowed.test/", "forbidden.test", 400],
    ["a name with user information", "http://allowed.test@forbidden.test/", "forbidden.test", 400],
    ["no proxy request", "/", "allowed.test", 400],
    ["another scheme", "ftp://allowed.test/", "allowed.test", 400],
    ["an address in other words", "http://0x7f.2/", "127.0.0.2", 403],
    ["a name that is not there", "http://b.wild.test/", "b.wild.test", 502],
  ])("does not reach %s", async (_what, target, host, status) => {
    const { port } = await startProxy();
    const answer = await throughProxy(port, target, { headers: { Host: host } });
    expect([answer.status, answer.text]).toEqual([status, expect.stringMatching(/\S/)]);
    expect(log).toMatchObject([{ refused: expect.any(String) }]);
  });

  it("dials the address that was judged, though the name leads elsewhere when asked again", async () => {
    const port = await startOrigin((_request, response) => void response.end("the first"));
    const { port: proxyPort } = await startProxy();
    const target = `http://rebinding.test:${port}/`;
    const first = await throughProxy(proxyPort, target, { headers: { Host: `rebinding.test:${port}` } });
    expect([first.text, names.asked.get("rebinding.test")]).toEqual(["the first", 1]);
    const second = await throughProxy(proxyPort, target, { headers: { Host: `rebinding.test:${port}` } });
    expect(second.status).toBe(403);
  });

  it("without rules nothing is reached", async () => {
    const { port } = await startProxy({ network: { allowedHosts: [], dnsServers: [names.address] } });
    expect((await throughProxy(port, "http://allowed.test/", { headers: { Host: "allowed.test" } })).status).toBe(403);
    expect(names.asked.size).toBe(0);
  });

  it("what is in a body stays there, however its length is told", async () => {
    const bodies: string[] = [];
    const port = await startOrigin((request, response) => {
      let body = "";
      request.on("data", (piece) => void (body += String(piece)));
      request.on("end", () => {
        bodies.push(`${request.url} ${body}`);
        response.end();
      });
    });
    const { port: proxyPort } = await startProxy();
    const inner = `GET /inner HTTP/1.1\r\nHost: forbidden.test\r\n\r\n`;
    const chunk = `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
    const head = `GET http://allowed.test:${port}/ HTTP/1.1\r\nHost: allowed.test:${port}\r\n`;
    for (const rest of [
      `Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`,
      `Connection: close, content-length\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
    ]) {
      const socket = connect(proxyPort, "127.0.0.1");
      socket.write(head + rest);
      expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1\.1 200 /);
      socket.destroy();
    }
    expect(bodies).toEqual([`/ ${inner}`, `/ ${inner}`]);
  });

  it("what is no HTTP gets an answer and the end", async () => {
    const { port, proxy } = await startProxy();
    const socket = connect(port, "127.0.0.1");
    socket.end("\x16\x03\x01hello\r\n\r\n");
    const [answer] = await once(socket, "data");
    expect(String(answer)).toMatch(/^HTTP\/1\.1 400 /);
    await expect.poll(() => proxy.connections).toBe(0);
  });
});

describe("tunnels", () => {
  async function echo(proxyPort: number, authority: string, servername: string | undefined): Promise<string> {
    const tunnel = await openTunnel(proxyPort, authority);
    if (typeof tunnel === "string") return tunnel;
    const tls = tlsConnect({ socket: tunnel, rejectUnauthorized: false, ...(servername && { servername }) });
    const closed = Promise.withResolvers<void>();
    // A tunnel that ends before its TLS stands is an error here.
    tls.on("error", () => {}).once("close", () => closed.resolve());
    tls.end("over TLS");
    let text = "";
    tls.on("data", (piece: Buffer) => void (text += String(piece)));
    await closed.promise;
    return text;
  }

  it("carry TLS to the host that they name", async () => {
    const port = await startTls();
    const { port: proxyPort, proxy } = await startProxy();
    expect(await echo(proxyPort, `ALLOWED.test.:${port}`, "allowed.test")).toBe("over TLS");
    expect(log).toEqual([{ method: "CONNECT", host: "allowed.test", port, refused: undefined }]);
    expect(proxy.traffic.receivedBytes).toBeGreaterThan(100);
  });

  it("to an address carry TLS without a name", async () => {
    const port = await startTls();
    const { port: proxyPort } = await startProxy();
    expect(await echo(proxyPort, `127.0.0.1:${port}`, undefined)).toBe("over TLS");
  });

  it.each([
    ["another name", "allowed.test", "forbidden.test"],
    ["no name", "allowed.test", undefined],
    ["a name for an address", "127.0.0.1", "allowed.test"],
  ])("end at once for TLS to %s", async (_what, host, servername) => {
    const port = await startTls();
    const { port: proxyPort } = await startProxy();
    expect(await echo(proxyPort, `${host}:${port}`, servername)).toBe("");
    expect(log).toMatchObject([{ host, refused: expect.stringContaining("asks for") }]);
  });

  it("carry HTTP to the host that they name, request by request", async () => {
    const port = await startOrigin((request, response) => void response.end(`${request.headers.host} ${request.url}`));
    const { port: proxyPort } = await startProxy();
    const tunnel = (await openTunnel(proxyPort, `allowed.test:${port}`)) as Socket;
    const ask = async (head: string): Promise<string> => {
      tunnel.write(`${head}\r\n\r\n`);
      return String((await once(tunnel, "data"))[0]);
    };
    expect(await ask(`GET /a HTTP/1.1\r\nHost: allowed.test:${port}`)).toMatch(
      new RegExp(`^HTTP/1\\.1 200 [^]*allowed\\.test:${port} /a`),
    );
    expect(await ask(`GET /b HTTP/1.1\r\nHost: ALLOWED.test:${port}`)).toMatch(/ 200 [^]* \/b/);
    const refused = [
      `GET / HTTP/1.1\r\nHost: forbidden.test:${port}`,
      "GET / HTTP/1.1\r\nHost: allowed.test",
      `GET http://forbidden.test:${port}/ HTTP/1.1\r\nHost: allowed.test:${port}`,
    ];
    for (const head of refused) expect(await ask(head)).toMatch(/^HTTP\/1\.1 400 /);
    expect(await ask(`CONNECT a.wild.test:${port} HTTP/1.1\r\nHost: a.wild.test`)).toMatch(/^HTTP\/1\.1 400 /);
    expect(names.asked.has("forbidden.test")).toBe(false);
  });

  it("end at once for what is neither TLS nor HTTP, of which nothing arrives", async () => {
    const seen: Buffer[] = [];
    const port = await serve(createTcpServer((socket) => void socket.on("data", (piece) => seen.push(piece))));
    const { port: proxyPort } = await startProxy();
    const tunnel = (await openTunnel(proxyPort, `allowed.test:${port}`)) as Socket;
    tunnel.write("\x00GET / HTTP/1.1\r\nHost: forbidden.test\r\n\r\n");
    await once(tunnel, "close");
    expect(seen).toEqual([]);
  });

  it.each([
    ["a host that is not allowed", "forbidden.test:443", 403],
    ["a private address", "inside.test:443", 403],
    ["this computer in other words", "[::ffff:127.0.0.2]:443", 403],
    ["a name with a NUL", "allowed.test%00.forbidden.test:443", 400],
    ["no port", "allowed.test", 400],
    ["port 0", "allowed.test:0", 400],
    ["a port that is none", "allowed.test:99999", 400],
    ["nobody who listens", "allowed.test:1", 502],
  ])("to %s are refused", async (_what, authority, status) => {
    const { port } = await startProxy();
    expect(await openTunnel(port, authority)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });

  it("break off for a client when the server does", async () => {
    const { tunnel, proxy } = await openRawTunnel((socket) =>
      socket.once("data", () => socket.write("a beginning", () => socket.resetAndDestroy())),
    );
    tunnel.resume();
    await once(tunnel, "close");
    await expect.poll(() => proxy.connections).toBe(0);
  });

  it("end on both sides when one side ends", async () => {
    const ended = Promise.withResolvers<void>();
    const port = await startTls();
    const { port: proxyPort, proxy } = await startProxy();
    const tunnel = (await openTunnel(proxyPort, `allowed.test:${port}`)) as Socket;
    const tls = tlsConnect({ socket: tunnel, rejectUnauthorized: false, servername: "allowed.test" });
    tls.on("error", () => {}).once("close", () => ended.resolve());
    await once(tls, "secureConnect");
    expect(proxy.connections).toBe(2);
    proxy.close();
    await ended.promise;
    await expect.poll(() => proxy.connections).toBe(0);
  });
});

it("a sandbox has only so many connections", async () => {
  const { port, proxy } = await startProxy({ maxConnections: 2 });
  const held = [connect(port, "127.0.0.1"), connect(port, "127.0.0.1")];
  await expect.poll(() => proxy.connections).toBe(2);
  const third = connect(port, "127.0.0.1");
  const [answer] = await once(third, "data");
  expect(String(answer)).toMatch(/^HTTP\/1\.1 503 /);
  for (const socket of held) socket.destroy();
  await expect.poll(() => proxy.connections).toBe(0);
});

describe("a proxy of the operator", () => {
  it("is asked for every connection, by name", async () => {
    const asked: unknown[] = [];
    const port = await startTls();
    const upstream = createServer();
    upstream.on("connect", (request, client, head) => {
      asked.push([request.url, request.headers["proxy-authorization"]]);
      const server = connect(port, "127.0.0.1", () => {
        client.write("HTTP/1.1 200 OK\r\n\r\n");
        server.write(head);
        server.pipe(client).pipe(server);
      });
      client.on("error", () => server.destroy());
    });
    const upstreamPort = await serve(upstream);
    const { port: proxyPort } = await startProxy({
      upstream: { host: "127.0.0.1", port: upstreamPort, authorization: "Basic dTpw" },
    });
    const tunnel = (await openTunnel(proxyPort, "allowed.test:443")) as Socket;
    const tls = tlsConnect({ socket: tunnel, rejectUnauthorized: false, servername: "allowed.test" });
    tls.end("over TLS");
    const [piece] = await once(tls, "data");
    expect([String(piece), asked, names.asked.size]).toEqual(["over TLS", [["allowed.test:443", "Basic dTpw"]], 0]);
    expect(await openTunnel(proxyPort, "forbidden.test:443")).toMatch(/^HTTP\/1\.1 403 /);
  });

  it("that refuses is named in the answer", async () => {
    const upstreamPort = await serve(
      createServer().on("connect", (_request, client) => client.end("HTTP/1.1 407 No\r\n\r\n")),
    );
    const { port } = await startProxy({
      upstream: { host: "127.0.0.1", port: upstreamPort, authorization: undefined },
    });
    expect(await openTunnel(port, "allowed.test:443")).toMatch(/^HTTP\/1\.1 502 [\s\S]*407/);
  });
});

describe("hosts that are allowed for a while", () => {
  it("are reached until then, and connections to them end", async () => {
    const port = await startTls();
    const web = await startOrigin((_request, response) => void response.end("web"));
    const { port: proxyPort, proxy } = await startProxy({
      network: { allowedHosts: ["allowed.test"], dnsServers: [names.address] },
    });
    const ask = async () =>
      (await throughProxy(proxyPort, `http://a.wild.test:${web}/`, { headers: { Host: `a.wild.test:${web}` } })).status;
    const tls = async (host: string): Promise<Socket> => {
      const tunnel = await openTunnel(proxyPort, `${host}:${port}`);
      if (typeof tunnel === "string") throw new Error(tunnel);
      const secured = tlsConnect({ socket: tunnel, servername: host, rejectUnauthorized: false });
      secured.on("error", () => {});
      secured.write("x");
      await once(secured, "data");
      return secured;
    };
    expect(await ask()).toBe(403);
    const close = proxy.allowHosts(["*.Wild.test"]);
    const closeOther = proxy.allowHosts(["forbidden.test"]);
    expect(await ask()).toBe(200);
    const [passing, lasting, other] = [
      await tls("a.wild.test"),
      await tls("allowed.test"),
      await tls("forbidden.test"),
    ];
    close();
    await once(passing, "close");
    expect(await ask()).toBe(403);
    lasting.write("y");
    other.write("z");
    expect(String(await once(lasting, "data"))).toBe("y");
    expect(String(await once(other, "data"))).toBe("z");
    closeOther();
    await once(other, "close");
    lasting.destroy();
  });
});
