import { createServer } from "node:http";
import { connect } from "node:net";
import { array, assert, asyncProperty, constantFrom } from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { EngineError } from "../../../core/errors.ts";
import { openTunnel, throughProxy } from "../egress/proxy.test-kit.ts";
import { ask, closed, openWorld, PAT, repo, secureTunnel, sendRaw, use, type World } from "./gateway.test-kit.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterEach(() => world.closeAll());
afterAll(() => world.close());

const KEY = { kind: "api_key", key: "real-secret-key" } as const;
/** Whatever a client inside may send as a credential. */
const STOLEN = {
  Authorization: ["Bearer stolen", "Basic c3RvbGVu"],
  "Proxy-Authorization": "Basic stolen",
  COOKIE: "session=stolen",
  "X-Api-Key": "stolen",
  "x-GOOG-api-key": "stolen",
  "api-key": "stolen",
  "Private-Token": "stolen",
  x_api_key: "stolen",
  "X-Own-Header": "stolen",
  X_Own_Header: "stolen",
};

const agent = (port: number, values: Record<string, unknown>, agentProvider = "codex") => ({
  agentProvider,
  credentials: [use("cred-agent", ["api.test"], agentProvider === "codex" ? "OPENAI_API_KEY" : "ANTHROPIC_API_KEY")],
  providerUrls: { [agentProvider]: `https://api.test:${port}/base/` },
  values,
});

describe("the route of the agent", () => {
  it.each([
    ["pat", PAT, "codex", { authorization: ["Bearer real-secret-token"] }],
    ["basic", { kind: "basic", username: "u", password: "p" }, "codex", { authorization: ["Basic dTpw"] }],
    ["oauth2", { kind: "oauth2", access_token: "a-t" }, "codex", { authorization: ["Bearer a-t"] }],
    ["api_key", KEY, "codex", { authorization: ["Bearer real-secret-key"] }],
    ["api_key for claude", KEY, "claude-code", { "x-api-key": ["real-secret-key"] }],
    ["api_key with a header", { ...KEY, header: "X-Own-Header" }, "codex", { "x-own-header": ["real-secret-key"] }],
  ])("adds a credential of the kind %s, and takes what the client sent", async (_what, value, provider, added) => {
    const { port, seen } = await world.upstream((_request, response) => void response.end("model"));
    const sandbox = await world.proxy(agent(port, { "cred-agent": value }, provider));
    const { "X-Own-Header": _own, X_Own_Header: _own2, ...stolen } = STOLEN;
    const headers = { Host: "127.0.0.1:3128", ...("x-own-header" in added ? STOLEN : stolen), "X-Kept": "1" };
    const target =
      "/_engine/agent/v1/messages?beta=true&key=stolen&K%65y=stolen&API_KEY=stolen&access_token=stolen&a=b";
    const answer = await throughProxy(sandbox.port, target, { method: "POST", headers, body: "{}" });
    expect(answer).toMatchObject({ status: 200, text: "model" });
    expect(seen).toEqual([
      {
        method: "POST",
        url: "/base/v1/messages?beta=true&a=b",
        headers: {
          ...added,
          "x-kept": ["1"],
          host: [`api.test:${port}`],
          connection: ["close"],
          "content-length": ["2"],
        },
      },
    ]);
    expect(sandbox.log).toEqual([{ method: "POST", host: "api.test", port, refused: undefined }]);
  });

  it.each([
    ["dots", "/_engine/agent/v1/../../x", 403],
    ["encoded dots", "/_engine/agent/%2e%2E/x", 403],
    ["dots that are encoded twice", "/_engine/agent/%252e%252e/x", 403],
    ["dots after an encoded slash", "/_engine/agent/v1%2f..%2fx", 403],
    ["dots after a backslash", "/_engine/agent/v1%5c..%5cx", 403],
    ["another route", "/_engine/agents/v1", 404],
    ["a repository that has none", "/_engine/git/0/info/refs?service=git-upload-pack", 404],
    ["no route", "/_engine/", 404],
  ])("refuses %s before any connection", async (_what, target, status) => {
    const { port, connections } = await world.upstream((_request, response) => void response.end());
    const sandbox = await world.proxy(agent(port, { "cred-agent": KEY }));
    const answer = await throughProxy(sandbox.port, target, { headers: { Host: "127.0.0.1:3128" } });
    expect([answer.status, connections(), sandbox.asked]).toEqual([status, 0, []]);
  });

  it("refuses another Host, TRACE, and upgrades", async () => {
    const { port, connections } = await world.upstream((_request, response) => void response.end());
    const sandbox = await world.proxy(agent(port, { "cred-agent": KEY }));
    const target = "/_engine/agent/v1";
    const status = async (method: string, headers: Record<string, string>) =>
      (await throughProxy(sandbox.port, target, { method, headers })).status;
    expect(await status("GET", { Host: "evil.test" })).toBe(400);
    expect(await status("TRACE", { Host: "localhost" })).toBe(405);
    expect(await status("GET", { Host: "localhost", Connection: "upgrade", Upgrade: "websocket" })).toBe(403);
    expect(connections()).toBe(0);
  });

  it("streams events as they come, in both directions", async () => {
    const next = Promise.withResolvers<void>();
    const { port } = await world.upstream((_request, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write("data: 1\n\n");
      void next.promise.then(() => response.end("data: 2\n\n"));
    });
    const sandbox = await world.proxy(agent(port, { "cred-agent": KEY }));
    const socket = connect(sandbox.port, "127.0.0.1");
    socket.write("GET /_engine/agent/v1 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    let text = "";
    socket.on("data", (piece: Buffer) => void (text += String(piece)));
    await expect.poll(() => text).toContain("data: 1");
    expect(text).not.toContain("data: 2");
    next.resolve();
    await expect.poll(() => text).toContain("data: 2");
  });

  it("does not show the secret in the head of an answer", async () => {
    const { port } = await world.upstream((_request, response) => {
      response.writeHead(302, {
        Location: "https://elsewhere.test/?k=real-secret-key",
        "X-Echo": "Bearer real-secret-key",
        "Set-Cookie": "a=b",
        "WWW-Authenticate": "Bearer",
      });
      response.end();
    });
    const sandbox = await world.proxy(agent(port, { "cred-agent": KEY }));
    const answer = await throughProxy(sandbox.port, "/_engine/agent/", { headers: { Host: "127.0.0.1" } });
    expect(answer.status).toBe(302);
    expect(answer.headers).toMatchObject({ "set-cookie": ["a=b"], "www-authenticate": "Bearer" });
    expect(JSON.stringify(answer.headers)).not.toContain("secret");
  });

  it("says again how long a body is, as it was understood", async () => {
    const bodies: string[] = [];
    const { port, seen } = await world.upstream((request, response) => {
      let body = "";
      request.on("data", (piece) => void (body += String(piece)));
      request.on("end", () => {
        bodies.push(body);
        response.end();
      });
    });
    const sandbox = await world.proxy(agent(port, { "cred-agent": KEY }));
    const smuggled = "GET /evil HTTP/1.1\r\nHost: x\r\n\r\n";
    const head = "GET /_engine/agent/v1 HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    const chunk = `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`;
    const send = (rest: string) => sendRaw(connect(sandbox.port, "127.0.0.1"), `${head}${rest}`);
    expect(await send(`Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`)).toMatch(/ 200 /);
    const length = `Content-Length: ${smuggled.length}`;
    expect(await send(`Connection: close, content-length\r\n${length}\r\n\r\n${smuggled}`)).toMatch(/ 200 /);
    expect([bodies, seen.map(({ url }) => url)]).toEqual([
      [smuggled, smuggled],
      ["/base/v1", "/base/v1"],
    ]);
    const both = `Connection: close\r\nTransfer-Encoding: chunked\r\n${length}\r\n\r\n${chunk}`;
    expect(await send(both)).toMatch(/ 400 /);
    expect(await send(`Connection: close\r\nTransfer-Encoding: gzip, chunked\r\n\r\n${chunk}`)).toMatch(/ (400|501) /);
    expect(seen.length).toBe(2);
  });
});

describe("values", () => {
  it("are fetched once in a minute, and anew after a 401", async () => {
    let status = 200;
    const { port, seen } = await world.upstream((_request, response) => void response.writeHead(status).end());
    const tokens = ["first", "second", "third"];
    const values = { "cred-agent": () => ({ kind: "pat", token: tokens.shift() }) };
    const sandbox = await world.proxy(agent(port, values));
    const call = () => throughProxy(sandbox.port, "/_engine/agent/", { headers: { Host: "127.0.0.1" } });
    await Promise.all([call(), call()]);
    sandbox.clock.advance(59_999);
    await call();
    expect(sandbox.asked.length).toBe(1);
    sandbox.clock.advance(1);
    await call();
    expect(sandbox.asked.length).toBe(2);
    status = 401;
    sandbox.clock.advance(2_000);
    expect((await call()).status).toBe(401);
    await call();
    await call();
    // Whoever has it refused at will does not make the store busy.
    expect(sandbox.asked.length).toBe(3);
    expect(seen.map(({ headers }) => headers["authorization"]?.[0])).toEqual(
      ["first", "first", "first", "second", "second", "third", "third"].map((token) => `Bearer ${token}`),
    );
  });

  it.each([
    ["that the store refuses", () => Promise.reject(new EngineError("forbidden", "no: real-secret-token")), /may not/],
    ["that are gone", () => Promise.reject(new EngineError("not_found", "no: real-secret-token")), /is not there/],
    ["that nobody knows", () => Promise.reject(new Error("real-secret-token")), /did not answer/],
    ["of other kinds", { kind: "url", url: "https://real-secret-token" }, /no request can carry/],
    ["with a line break", { kind: "pat", token: "real-secret-token\nX: y" }, /no header may have/],
    ["for Host", { ...KEY, header: "Host" }, /about the connection/],
  ])("%s are a 502 without any part of them", async (_what, value, reason) => {
    const { port, connections } = await world.upstream((_request, response) => void response.end());
    const sandbox = await world.proxy(agent(port, { "cred-agent": value }));
    const answer = await throughProxy(sandbox.port, "/_engine/agent/", { headers: { Host: "127.0.0.1" } });
    expect([answer.status, connections()]).toEqual([502, 0]);
    expect(answer.text).toMatch(reason);
    expect(answer.text + JSON.stringify(sandbox.log)).not.toContain("secret");
  });
});

describe("hosts of credentials", () => {
  const bound = (values: Record<string, unknown> = { "cred-1": PAT }) => ({
    credentials: [use("cred-1", ["api.test"])],
    allowedHosts: ["*.test"],
    values,
  });

  it("are spoken for by the sandbox's own authority, in HTTP/1.1 alone", async () => {
    const { port, seen } = await world.upstream((_request, response) => void response.end("hello"));
    const sandbox = await world.proxy({ ...bound(), allowedHosts: [] });
    const ca = world.authority.certificate;
    const tunnel = await secureTunnel(sandbox.port, `API.test:${port}`, ca, { alpn: ["h2", "http/1.1"] });
    expect(tunnel.alpnProtocol).toBe("http/1.1");
    const headers = { Host: `api.TEST.:${port}`, ...STOLEN };
    const answer = await ask(tunnel, "/a?key=PROJ-1", { headers });
    expect(answer).toMatchObject({ status: 200, text: "hello" });
    expect(seen).toMatchObject([
      { url: "/a?key=PROJ-1", headers: { authorization: ["Bearer real-secret-token"], host: [`api.test:${port}`] } },
    ]);
    const stolen = Object.entries(seen[0]?.headers ?? {}).filter(([, values]) => values?.includes("stolen"));
    expect(stolen.map(([name]) => name).sort()).toEqual(["x-own-header", "x_own_header"]);
    await expect(secureTunnel(sandbox.port, `api.test:${port}`, ca, { alpn: ["h2"] })).rejects.toThrow(
      /alert|reset|disconnected/,
    );
  });

  it("several requests go over one connection", async () => {
    const { port, seen } = await world.upstream((request, response) => void response.end(request.url));
    const sandbox = await world.proxy(bound());
    const tunnel = await secureTunnel(sandbox.port, `api.test:${port}`, world.authority.certificate);
    const head = (path: string, more = "") => `GET ${path} HTTP/1.1\r\nHost: api.test:${port}\r\n${more}\r\n`;
    const text = await sendRaw(tunnel, head("/a") + head("/b") + head("/c", "Connection: close\r\n"));
    expect(text.match(/HTTP\/1\.1 200/g)?.length).toBe(3);
    expect([seen.map(({ url }) => url), sandbox.asked.length]).toEqual([["/a", "/b", "/c"], 1]);
  });

  it.each([
    ["another Host", "GET / HTTP/1.1\r\nHost: other.test:PORT\r\n\r\n"],
    ["another port", "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n"],
    ["two Hosts", "GET / HTTP/1.1\r\nHost: api.test:PORT\r\nHost: other.test\r\n\r\n"],
    ["a Host with a user", "GET / HTTP/1.1\r\nHost: api.test:PORT@other.test\r\n\r\n"],
    ["no Host", "GET / HTTP/1.1\r\n\r\n"],
    ["a whole URL", "GET https://api.test:PORT/ HTTP/1.1\r\nHost: api.test:PORT\r\n\r\n"],
    ["a whole URL of another", "GET https://other.test:PORT/ HTTP/1.1\r\nHost: api.test:PORT\r\n\r\n"],
    ["an asterisk", "OPTIONS * HTTP/1.1\r\nHost: api.test:PORT\r\n\r\n"],
    ["a tunnel", "CONNECT other.test:PORT HTTP/1.1\r\nHost: api.test:PORT\r\n\r\n"],
    [
      "both lengths",
      "POST / HTTP/1.1\r\nHost: api.test:PORT\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ["two lengths", "POST / HTTP/1.1\r\nHost: api.test:PORT\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"],
    ["a bare LF", "GET / HTTP/1.1\nHost: api.test:PORT\n\n"],
    ["a bare CR", "GET / HTTP/1.1\r\nHost: api.test:PORT\r\nX: a\rAuthorization: b\r\n\r\n"],
    ["a folded field", "GET / HTTP/1.1\r\nHost: api.test:PORT\r\nX: a\r\n b\r\n\r\n"],
    ["a space before the colon", "GET / HTTP/1.1\r\nHost : api.test:PORT\r\n\r\n"],
    ["an upgrade", "GET / HTTP/1.1\r\nHost: api.test:PORT\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"],
    ["a preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["TRACE", "TRACE / HTTP/1.1\r\nHost: api.test:PORT\r\n\r\n"],
  ])("%s is refused before any connection", async (_what, bytes) => {
    const { port, connections } = await world.upstream((_request, response) => void response.end());
    const sandbox = await world.proxy(bound());
    const tunnel = await secureTunnel(sandbox.port, `api.test:${port}`, world.authority.certificate);
    tunnel.once("data", () => tunnel.end());
    expect(await sendRaw(tunnel, bytes.replaceAll("PORT", String(port)))).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect([connections(), sandbox.asked]).toEqual([0, []]);
  });

  it("are not reached by other TLS, by plain HTTP, or by a raw tunnel", async () => {
    const { port, connections } = await world.upstream((_request, response) => void response.end());
    const sandbox = await world.proxy(bound());
    const ca = world.authority.certificate;
    for (const servername of ["other.test", "sub.api.test"]) {
      await expect(secureTunnel(sandbox.port, `api.test:${port}`, ca, { servername })).rejects.toThrow(
        /disconnected|reset|hang up/,
      );
    }
    const plain = await throughProxy(sandbox.port, `http://api.test:${port}/`, {
      headers: { Host: `api.test:${port}` },
    });
    expect([plain.status, plain.text]).toEqual([403, expect.stringContaining("TLS")]);
    const inTunnel = await openTunnel(sandbox.port, `api.test:${port}`);
    if (typeof inTunnel === "string") throw new Error(inTunnel);
    expect(await sendRaw(inTunnel, `GET / HTTP/1.1\r\nHost: api.test:${port}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 403 /);
    const raw = await openTunnel(sandbox.port, `api.test:${port}`);
    if (typeof raw === "string") throw new Error(raw);
    expect(await sendRaw(raw, "\0SSH-2.0")).toBe("");
    expect([connections(), sandbox.asked]).toEqual([0, []]);
    // Others are tunnelled as ever: the certificate is the server's own.
    await expect(secureTunnel(sandbox.port, `other.test:${port}`, ca)).rejects.toThrow(/certificate/);
    expect(connections()).toBe(1);
  });

  it("whose certificate nobody trusts get no secret", async () => {
    const { port, seen } = await world.upstream((_request, response) => void response.end());
    const sandbox = await world.proxy({ ...bound(), trusted: false });
    const tunnel = await secureTunnel(sandbox.port, `api.test:${port}`, world.authority.certificate);
    const answer = await ask(tunnel, "/", { headers: { Host: `api.test:${port}` } });
    expect([answer.status, seen]).toEqual([502, []]);
    expect(answer.text).toMatch(/no TLS with api\.test: .*certificate/);
  });

  it("whose certificate is for another name get no secret", async () => {
    const { port, seen } = await world.upstream((_request, response) => void response.end());
    const sandbox = await world.proxy({ credentials: [use("cred-1", ["unnamed.test"])], values: { "cred-1": PAT } });
    const tunnel = await secureTunnel(sandbox.port, `unnamed.test:${port}`, world.authority.certificate);
    const answer = await ask(tunnel, "/", { headers: { Host: `unnamed.test:${port}` } });
    expect([answer.status, seen]).toEqual([502, []]);
  });

  it("on private addresses are not reached", async () => {
    const sandbox = await world.proxy({ credentials: [use("cred-1", ["inside.test"])], values: { "cred-1": PAT } });
    const tunnel = await secureTunnel(sandbox.port, "inside.test:443", world.authority.certificate);
    const answer = await ask(tunnel, "/", { headers: { Host: "inside.test" } });
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining("may not reach")]);
  });
});

describe("whatever is sent in TLS that is ended here", () => {
  it("reaches the upstream as whole requests for it with the stored credential alone, or not at all", async () => {
    const { port, seen } = await world.upstream((_request, response) => void response.end("ok"));
    const sandbox = await world.proxy({ credentials: [use("cred-1", ["api.test"])], values: { "cred-1": PAT } });
    const host = `Host: api.test:${port}`;
    const starts = ["GET / HTTP/1.1\r\n", "POST /a HTTP/1.1\r\n", "GET http://other.test/ HTTP/1.1\r\n", "HTTP/1.0"];
    const hosts = [`${host}\r\n`, `${host}\r\n\r\n`, `Connection: close\r\n${host}\r\n\r\n`, "Host: other.test\r\n"];
    const lengths = [
      "Content-Length: 5\r\n",
      "Content-Length: -1\r\n",
      "Transfer-Encoding: chunked\r\n",
      "Expect: 100-continue\r\n",
    ];
    const bodies = ["hello", "5\r\nhello\r\n0\r\n\r\n", "fffffffff\r\n", "0", "\r\n", "\r", "\n", "\0", "\xff"];
    const secrets = [
      "Authorization: stolen\r\n",
      "Authorization\t: stolen\r\n",
      " Authorization: stolen\r\n",
      "Cookie: stolen",
    ];
    const hops = [
      "Connection: authorization, host, content-length\r\n",
      "Upgrade: h2c\r\n",
      "Transfer-Encoding : chunked\r\n",
    ];
    const pieces = constantFrom(...starts, ...hosts, ...lengths, ...bodies, ...secrets, ...hops);
    const ca = world.authority.certificate;
    const survives = asyncProperty(array(pieces, { maxLength: 10 }), async (bytes) => {
      const tunnel = await secureTunnel(sandbox.port, `api.test:${port}`, ca);
      // An answer ends it, or silence where more is waited for.
      tunnel.once("data", () => tunnel.destroy()).setTimeout(200, () => tunnel.destroy());
      tunnel.write(bytes.join(""), "latin1");
      await closed(tunnel);
    });
    const examples: [string[]][] = [[["GET / HTTP/1.1\r\n", "Authorization: stolen\r\n", `${host}\r\n\r\n`]]];
    await assert(survives, { numRuns: 60, examples });
    expect(seen.length).toBeGreaterThan(0);
    for (const { url, headers } of seen) {
      expect([url.startsWith("/"), headers["host"], headers["authorization"]]).toEqual([
        true,
        [`api.test:${port}`],
        ["Bearer real-secret-token"],
      ]);
    }
    const tunnel = await secureTunnel(sandbox.port, `api.test:${port}`, ca);
    expect(await ask(tunnel, "/", { headers: { Host: `api.test:${port}` } })).toMatchObject({ text: "ok" });
    tunnel.destroy();
    await expect.poll(() => sandbox.proxy.connections).toBe(0);
  });
});

it("an operator's API without TLS is reached as the operator said", async () => {
  const seen: unknown[] = [];
  const port = await world.serve(
    createServer((request, response) => {
      seen.push([request.url, request.headers.host, request.headers.authorization]);
      response.end("own");
    }),
  );
  const sandbox = await world.proxy({
    credentials: [use("c", ["127.0.0.1"], "OPENAI_API_KEY")],
    providerUrls: { codex: `http://127.0.0.1:${port}/v1` },
    values: { c: KEY },
  });
  const answer = await throughProxy(sandbox.port, "/_engine/agent/models", { headers: { Host: "127.0.0.1" } });
  expect(answer.text).toBe("own");
  expect(seen).toEqual([["/v1/models", `127.0.0.1:${port}`, "Bearer real-secret-key"]]);
});

it("an answer that comes before the whole body was read arrives", async () => {
  const { port } = await world.upstream((request, response) => {
    response.writeHead(413, { Connection: "close" }).end("too large", () => request.destroy());
  });
  const sandbox = await world.proxy(agent(port, { "cred-agent": KEY }));
  const socket = connect(sandbox.port, "127.0.0.1");
  const head =
    "POST /_engine/agent/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 20000000\r\n\r\n";
  expect(await sendRaw(socket, head + "x".repeat(1_000_000))).toMatch(/^HTTP\/1\.1 413 [^]*too large/);
});

it("a repository needs its operator's consent to plain HTTP", async () => {
  const sandbox = await world.proxy({ gitRepos: [repo("http://git.test/a.git")], values: { "cred-git": PAT } });
  const target = "/_engine/git/0/info/refs?service=git-upload-pack";
  expect((await throughProxy(sandbox.port, target, { headers: { Host: "127.0.0.1" } })).status).toBe(404);
});
