import { hostname } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask } from "../edge/edge.test-kit.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** What pages in a browser may do with a real server. */
let removeHomes: (() => Promise<void>)[] = [];
const engines: Engine[] = [];

async function start(env: Record<string, string> = {}): Promise<Engine> {
  const { home, remove } = await temporaryHome();
  removeHomes.push(remove);
  const engine = await startEngine({ home, env });
  engines.push(engine);
  return engine;
}

afterAll(async () => {
  await Promise.all(engines.map((engine) => engine.stop()));
  for (const remove of removeHomes) await remove();
  removeHomes = [];
});

type Reply = { status: number; headers: Record<string, unknown>; message: string };

async function call(engine: Engine, line: string, headers: Record<string, string>, body?: string): Promise<Reply> {
  const [method = "", path = ""] = line.split(" ");
  const answer = await ask(engine.url + path, { method, headers, ...(body === undefined ? {} : { body }) });
  const text = answer.body.toString();
  const parsed = text.startsWith("{") ? (JSON.parse(text) as { error?: { code: string; message: string } }) : {};
  const { code = "", message = "" } = parsed.error ?? {};
  return { status: answer.status, headers: answer.headers, message: `${code}: ${message}` };
}

const TABLE = "POST /v1/admin/databases/default/tables/t";
const SCHEMA = "GET /v1/catalog/schema";
const EVIL = "http://evil.example";

describe("while authentication is off", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await start();
  });

  test("no page drives the server: nothing runs, and it is told nothing", async () => {
    const sql = { "content-type": "text/plain", origin: EVIL };
    for (const [line, headers, body] of [
      [TABLE, { origin: EVIL }, ""],
      ["POST /v1/query", sql, "SELECT 1"],
      ["POST /v1/ingest", { ...sql, "x-table": "t" }, '{"body":"x"}\n'],
      [
        "POST /v1/auth/login",
        { ...sql, "content-type": "application/json" },
        '{"username":"admin","password":"admin"}',
      ],
      ["GET /v1/openapi.json", { origin: "null" }, undefined],
      [SCHEMA, { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }, undefined],
    ] as const) {
      const reply = await call(engine, line, headers, body);
      expect(`${line} ${reply.status} ${reply.message}`).toContain(`${line} 403 forbidden: `);
      expect(reply.message).toContain("ENGINE_CORS_ALLOWED_ORIGINS");
      expect(Object.keys(reply.headers).filter((name) => name.startsWith("access-control-"))).toEqual([]);
    }
    const schema = await ask(`${engine.url}/v1/catalog/schema`, { method: "GET" });
    expect(schema.body.toString()).not.toContain('"t"');
  });

  test("no page gets a permission by a preflight, whatever the method", async () => {
    for (const [path, method] of [
      ["/v1/query", "POST"],
      ["/v1/admin/users/a", "PATCH"],
      ["/v1/auth/tokens/a", "DELETE"],
      ["/health", "GET"],
      ["/none", "GET"],
    ]) {
      const reply = await call(engine, `OPTIONS ${path}`, {
        origin: EVIL,
        "access-control-request-method": String(method),
      });
      expect([path, reply.status]).toEqual([path, 403]);
      expect(Object.keys(reply.headers).filter((name) => name.startsWith("access-control-"))).toEqual([]);
    }
  });

  test("no name that somebody made point here is answered", async () => {
    const { port } = new URL(engine.url);
    for (const line of [TABLE, SCHEMA, "GET /docs", "OPTIONS /v1/query"]) {
      const reply = await call(engine, line, { host: `rebound.example:${port}` });
      expect([line, reply.status]).toEqual([line, 403]);
      expect(reply.message).toContain('forbidden: requests for the host "rebound.example');
      expect(reply.message).toContain("ENGINE_HTTP_ALLOWED_HOSTS");
    }
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, hostname(), "a.localhost"]) {
      expect((await call(engine, SCHEMA, { host })).status).toBe(200);
    }
  });

  test("its own pages, programs and people are answered as before", async () => {
    expect((await call(engine, TABLE, { origin: engine.url })).status).toBe(200);
    expect((await call(engine, TABLE, {})).status).toBe(200);
    expect((await call(engine, SCHEMA, { "sec-fetch-site": "none" })).status).toBe(200);
    expect((await call(engine, "GET /docs", { "sec-fetch-site": "cross-site" })).status).toBe(200);
  });

  test("probes and scrapers come by any name", async () => {
    for (const path of ["/health", "/metrics"]) {
      expect((await call(engine, `GET ${path}`, { host: "pod-7:8080" })).status).toBe(200);
      const foreign = await call(engine, `GET ${path}`, { origin: EVIL });
      expect([foreign.status, foreign.headers["access-control-allow-origin"]]).toEqual([200, undefined]);
    }
  });
});

describe("the origins and names that are configured", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await start({
      ENGINE_CORS_ALLOWED_ORIGINS: "https://app.example, http://localhost:3000",
      ENGINE_HTTP_ALLOWED_HOSTS: "engine.internal",
      ENGINE_OAUTH_REDIRECT_BASE: "https://public.example",
    });
  });

  test("may call, and are told so", async () => {
    const origin = "https://app.example";
    const reply = await call(engine, TABLE, { origin, "sec-fetch-site": "cross-site" });
    expect(reply.status).toBe(200);
    expect(reply.headers).toMatchObject({ "access-control-allow-origin": origin, vary: "Origin" });
    const asked = {
      origin,
      "access-control-request-method": "DELETE",
      "access-control-request-headers": "authorization",
    };
    const preflight = await call(engine, "OPTIONS /v1/auth/tokens/a", asked);
    expect(preflight.status).toBe(204);
    expect(preflight.headers).toMatchObject({
      "access-control-allow-origin": origin,
      "access-control-allow-methods": "DELETE, OPTIONS",
    });
    expect(preflight.headers["access-control-allow-headers"]).toMatch(/\bAuthorization\b/);
    const patch = await call(engine, "OPTIONS /v1/admin/users/a", asked);
    expect(patch.headers["access-control-allow-methods"]).toContain("PATCH");
    for (const { headers } of [reply, preflight]) expect(headers["access-control-allow-credentials"]).toBeUndefined();
  });

  test("are all that may", async () => {
    expect((await call(engine, TABLE, { origin: "http://localhost:3001" })).status).toBe(403);
    for (const host of ["engine.internal:8080", "app.example", "public.example"]) {
      expect((await call(engine, SCHEMA, { host })).status).toBe(200);
    }
    expect((await call(engine, SCHEMA, { host: "other.internal" })).status).toBe(403);
    const behindProxy = { host: "public.example", origin: "https://public.example" };
    expect((await call(engine, TABLE, behindProxy)).status).toBe(200);
  });
});

test("everybody may who is let in by *", async () => {
  const engine = await start({ ENGINE_CORS_ALLOWED_ORIGINS: "*" });
  const reply = await call(engine, TABLE, { origin: EVIL, host: "rebound.example" });
  expect([reply.status, reply.headers["access-control-allow-origin"]]).toEqual([200, "*"]);
  expect((await call(engine, SCHEMA, { "sec-fetch-site": "cross-site" })).status).toBe(200);
});

test("where a token is asked for, pages need one as everybody does, and no cookie stands for it", async () => {
  const engine = await start({ ENGINE_AUTH_TOKENS: "a-long-sesame-token:admin" });
  const from = { origin: EVIL, host: "any.example" };
  const refused = await call(engine, SCHEMA, {
    ...from,
    cookie: "token=a-long-sesame-token; Authorization=Bearer a-long-sesame-token",
  });
  // `*` never goes with a cookie.
  expect([refused.status, refused.headers["access-control-allow-origin"]]).toEqual([401, undefined]);
  const bare = await call(engine, SCHEMA, from);
  expect([bare.status, bare.headers["access-control-allow-origin"]]).toEqual([401, "*"]);
  expect(bare.headers["access-control-allow-credentials"]).toBeUndefined();
  expect(bare.headers["access-control-expose-headers"]).toContain("WWW-Authenticate");
  const answered = await call(engine, SCHEMA, { ...from, authorization: "Bearer a-long-sesame-token" });
  expect([answered.status, answered.headers["access-control-allow-origin"]]).toEqual([200, "*"]);
});

const LOGIN = "POST /v1/auth/login";
const PASSWORD = '{"username":"admin","password":"admin"}';

test.each([
  ["off", {}],
  ["off, with *", { ENGINE_CORS_ALLOWED_ORIGINS: "*" }],
  ["tokens", { ENGINE_AUTH_TOKENS: "a-long-sesame-token:admin" }],
  ["session", { ENGINE_AUTH_BACKEND: "session" }],
  ["session, with *", { ENGINE_AUTH_BACKEND: "session", ENGINE_CORS_ALLOWED_ORIGINS: "*" }],
  ["idp", { ENGINE_AUTH_BACKEND: "idp", ENGINE_IDP_URL: "http://127.0.0.1:9/" }],
  ["oidc", { ENGINE_AUTH_BACKEND: "oidc", ENGINE_OIDC_ISSUERS: "http://127.0.0.1:9/" }],
])("pages of others sign nobody in: authentication is %s", async (backend, env) => {
  const engine = await start(env);
  const { host, port } = new URL(engine.url);
  const type = { "content-type": "application/json" };
  const grants = ({ headers }: Reply) => Object.keys(headers).filter((name) => name.startsWith("access-control-allow"));
  for (const headers of [
    { origin: EVIL },
    { origin: "null" },
    { "sec-fetch-site": "cross-site" },
    { origin: `http://rebound.example:${port}`, host: `rebound.example:${port}` },
  ]) {
    const reply = await call(engine, LOGIN, { host, ...type, ...headers }, PASSWORD);
    expect([reply.status, reply.message, grants(reply)]).toEqual([403, expect.stringContaining("forbidden: "), []]);
  }
  const asked = {
    origin: EVIL,
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type",
  };
  const preflight = await call(engine, "OPTIONS /v1/auth/login", asked);
  expect([preflight.status, grants(preflight)]).toEqual([403, []]);
  // There is such a user only where nobody is kept out, or passwords are what lets in.
  const signsIn = backend.startsWith("off") || backend.startsWith("session") ? 200 : 401;
  const own = await call(engine, LOGIN, { ...type, origin: engine.url }, PASSWORD);
  expect([own.status, grants(own)]).toEqual([signsIn, []]);
  expect((await call(engine, LOGIN, type, PASSWORD)).status).toBe(signsIn);
});

test("pages of origins that are listed sign in, where * lets in all others to the other routes", async () => {
  const origins = "https://app.example, *";
  const engine = await start({ ENGINE_AUTH_BACKEND: "session", ENGINE_CORS_ALLOWED_ORIGINS: origins });
  const page = { origin: "https://app.example", "content-type": "application/json" };
  const reply = await call(engine, LOGIN, page, PASSWORD);
  expect(reply.status).toBe(200);
  expect(reply.headers).toMatchObject({ "access-control-allow-origin": "https://app.example", vary: "Origin" });
  const preflight = await call(engine, "OPTIONS /v1/auth/login", page);
  expect(preflight.headers).toMatchObject({ "access-control-allow-origin": "https://app.example" });
  expect((await call(engine, SCHEMA, { origin: EVIL })).headers["access-control-allow-origin"]).toBe("*");
});
