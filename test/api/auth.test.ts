import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

let engine: Engine;
let removeHome: () => Promise<void>;
let home: string;

const ENV = {
  ENGINE_AUTH_BACKEND: "session",
  ENGINE_ADMIN_USER: "root",
  ENGINE_ADMIN_PASSWORD: "correct horse",
  ENGINE_INTERNAL_BEARER: "of-the-engine",
};

beforeAll(async () => {
  ({ home, remove: removeHome } = await temporaryHome());
  engine = await startEngine({ home, env: ENV });
});

afterAll(async () => {
  await engine.stop();
  await removeHome();
});

type Reply = { status: number; headers: Headers; json: Record<string, unknown> };

async function call(method: string, path: string, token?: string, body?: unknown): Promise<Reply> {
  const response = await fetch(engine.url + path, {
    method,
    headers: {
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const json = text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : {};
  return { status: response.status, headers: response.headers, json };
}

async function signIn(username = "root", password = "correct horse"): Promise<{ access: string; refresh: string }> {
  const { status, json } = await call("POST", "/v1/auth/login", undefined, { username, password });
  expect({ status, error: json["error"] }).toEqual({ status: 200, error: undefined });
  return { access: String(json["access_token"]), refresh: String(json["refresh_token"]) };
}

const codeOf = ({ json }: Reply) => (json["error"] as { code?: string } | undefined)?.code;

describe("a server that asks for tokens", () => {
  test("lets nobody in without one, and says how", async () => {
    const reply = await call("GET", "/v1/catalog/schema");
    expect(reply.status).toBe(401);
    expect(codeOf(reply)).toBe("unauthorized");
    expect(reply.headers.get("www-authenticate")).toBe('Bearer realm="engine"');
    expect(await call("GET", "/health")).toMatchObject({ status: 200 });
    expect(await call("GET", "/metrics")).toMatchObject({ status: 200 });
    expect((await call("GET", "/v1/auth/config")).json).toMatchObject({ backend: "session", enabled: true });
  });

  test("signs in the admin of the configuration, and signs out", async () => {
    const { access } = await signIn();
    const me = await call("GET", "/v1/auth/me", access);
    expect(me.json).toEqual({ subject: "root", kind: "session", role: "admin", databases: null });
    expect(await call("POST", "/v1/auth/logout", access)).toMatchObject({ status: 200 });
    const over = await call("GET", "/v1/auth/me", access);
    expect(over.status).toBe(401);
    expect(over.headers.get("www-authenticate")).toContain('error="invalid_token"');
  });

  test("knows itself by its own token", async () => {
    const me = await call("GET", "/v1/auth/me", "of-the-engine");
    expect(me.json).toMatchObject({ subject: "engine", kind: "internal", role: "admin" });
    expect(await call("GET", "/v1/auth/me", "of-the-engin")).toMatchObject({ status: 401 });
  });

  test("refuses wrong passwords and malformed bodies without repeating them", async () => {
    const wrong = await call("POST", "/v1/auth/login", undefined, { username: "root", password: "canary-1" });
    expect([wrong.status, codeOf(wrong)]).toEqual([401, "unauthorized"]);
    for (const body of [{}, { username: "root" }, { username: 1, password: "canary-2" }, ["canary-3"], "canary-4"]) {
      const reply = await call("POST", "/v1/auth/login", undefined, body);
      expect([reply.status, codeOf(reply)]).toEqual([400, "bad_request_body"]);
      expect(JSON.stringify(reply.json)).not.toContain("canary");
    }
    const broken = await fetch(`${engine.url}/v1/auth/login`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: '{"password":"canary-5",',
    });
    expect(broken.status).toBe(400);
    expect(await broken.text()).not.toContain("canary");
    expect(engine.log()).not.toContain("canary");
  });

  test("exchanges refresh tokens, and ends the session of one that comes twice", async () => {
    const { refresh } = await signIn();
    const next = await call("POST", "/v1/auth/refresh", undefined, { refresh_token: refresh });
    expect(next.headers.get("cache-control")).toBe("no-store");
    const access = String(next.json["access_token"]);
    expect(await call("GET", "/v1/auth/me", access)).toMatchObject({ status: 200 });
    expect(await call("POST", "/v1/auth/refresh", undefined, { refresh_token: refresh })).toMatchObject({
      status: 401,
    });
    expect(await call("GET", "/v1/auth/me", access)).toMatchObject({ status: 401 });
  });

  test("has users with roles, and the role holds on every request", async () => {
    const { access } = await signIn();
    const ann = { username: "ann", password: "battery staple", role: "read" };
    expect(await call("POST", "/v1/admin/users", access, ann)).toMatchObject({ status: 200, json: { role: "read" } });
    const { access: hers } = await signIn("ann", ann.password);
    expect((await call("GET", "/v1/catalog/schema", hers)).status).toBe(200);
    const refused = await call("GET", "/v1/admin/users", hers);
    expect([refused.status, codeOf(refused)]).toEqual([403, "forbidden"]);
    const ingest = () =>
      fetch(`${engine.url}/v1/ingest`, {
        method: "POST",
        headers: { Authorization: `Bearer ${hers}`, "X-Table": "t" },
        body: '{"body":"x"}\n',
      });
    expect((await ingest()).status).toBe(403);
    expect(await call("PATCH", "/v1/admin/users/ann", access, { role: "write" })).toMatchObject({ status: 200 });
    expect((await ingest()).status).toBe(200);
    const reset = await call("POST", "/v1/admin/users/ann/password", access, { password: "another staple" });
    expect(reset.status).toBe(200);
    expect((await ingest()).status).toBe(401);
    expect(await call("DELETE", "/v1/admin/users/ann", access)).toMatchObject({ status: 200 });
    expect(codeOf(await call("DELETE", "/v1/admin/users/root", access))).toBe("conflict");
    const { json } = await call("GET", "/v1/admin/audit?target=ann&limit=10", access);
    const actions = (json["entries"] as { action: string }[]).map(({ action }) => action);
    expect(actions).toEqual(["user.delete", "user.password", "user.role", "auth.login", "user.create"]);
  });

  test("makes tokens for programs, which do no more than they say", async () => {
    const { access } = await signIn();
    const made = await call("POST", "/v1/auth/tokens", access, { name: "ci", role: "admin", databases: ["logs"] });
    expect(made.status).toBe(200);
    const token = String(made.json["token"]);
    expect((await call("GET", "/v1/auth/me", token)).json).toMatchObject({ kind: "api_token", databases: ["logs"] });
    expect(await call("GET", "/v1/admin/users", token)).toMatchObject({ status: 403 });
    expect(await call("POST", "/v1/auth/tokens", token, { name: "more" })).toMatchObject({ status: 403 });
    const past = await call("POST", "/v1/auth/tokens", access, { name: "x", expires_at: "2020-01-01T00:00:00Z" });
    expect(codeOf(past)).toBe("invalid_parameter");
    const { json } = await call("GET", "/v1/auth/tokens", access);
    expect(json["tokens"]).toMatchObject([{ name: "ci", owner: "root", databases: ["logs"], expires_at: null }]);
    expect(JSON.stringify(json)).not.toContain(token);
    expect(await call("DELETE", `/v1/auth/tokens/${String(made.json["id"])}`, access)).toMatchObject({ status: 200 });
    expect(await call("GET", "/v1/auth/me", token)).toMatchObject({ status: 401 });
  });

  test("keeps users and sessions over a restart", async () => {
    const { access } = await signIn();
    await engine.stop();
    engine = await startEngine({ home, env: { ...ENV, ENGINE_ADMIN_PASSWORD: "not taken any more" } });
    expect(await call("GET", "/v1/auth/me", access)).toMatchObject({ status: 200 });
    await signIn();
  });
});

describe("a server with tokens in its configuration", () => {
  test("takes those and no others, each with its role", async () => {
    const other = await temporaryHome();
    const configured = await startEngine({ home: other.home, env: { ENGINE_AUTH_TOKENS: "r-1:read,w-1:write" } });
    const status = async (token: string, method: string, path: string) => {
      const headers = { Authorization: `Bearer ${token}` };
      return (await fetch(configured.url + path, { method, headers })).status;
    };
    expect(await status("r-1", "GET", "/v1/catalog/schema")).toBe(200);
    expect(await status("r-1", "POST", "/v1/admin/databases/d/tables/t")).toBe(403);
    expect(await status("w-1", "POST", "/v1/admin/databases/d/tables/t")).toBe(200);
    expect(await status("w-2", "GET", "/v1/catalog/schema")).toBe(401);
    expect(await status("w-1", "GET", "/v1/admin/users")).toBe(403);
    expect(configured.log()).not.toMatch(/r-1|w-1/);
    await configured.stop();
    await other.remove();
  });

  test("names databases in its metrics to a token that may know them, and to nobody else", async () => {
    const other = await temporaryHome();
    const env = { ENGINE_AUTH_TOKENS: "a-token-that-reads:read,a-token-for-all-of-it:admin" };
    const configured = await startEngine({ home: other.home, env });
    const ask = (
      path: string,
      token: string | undefined,
      init: { method?: string; headers?: Record<string, string>; body?: string } = {},
    ) => {
      const authorization = token === undefined ? {} : { Authorization: `Bearer ${token}` };
      return fetch(configured.url + path, { ...init, headers: { ...authorization, ...init.headers } });
    };
    const ingested = await ask("/v1/ingest", "a-token-for-all-of-it", {
      method: "POST",
      headers: { "X-Database": "secret_customer", "X-Table": "secret_table" },
      body: '{"body":"x"}\n',
    });
    expect(ingested.status).toBe(200);
    const made = await ask("/v1/auth/tokens", "a-token-for-all-of-it", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ name: "limited", role: "admin", databases: ["secret_customer"] }),
    });
    const { token: limited } = (await made.json()) as { token: string };
    const metrics = async (token?: string) => {
      const answer = await ask("/metrics", token);
      expect([answer.status, answer.headers.get("content-type")]).toEqual([200, expect.stringMatching(/^text\/plain/)]);
      return await answer.text();
    };
    for (const token of [undefined, "wrong", limited]) {
      const text = await metrics(token);
      expect(text).not.toContain("secret");
      expect(text).toContain('engine_ingest_rows_total{database="_other"} 1\n');
      expect(text).toContain(
        'engine_http_request_duration_seconds_count{method="POST",route="/v1/ingest",status="200"} 1\n',
      );
    }
    for (const token of ["a-token-that-reads", "a-token-for-all-of-it"]) {
      expect(await metrics(token)).toContain('engine_ingest_rows_total{database="secret_customer"} 1\n');
    }
    await configured.stop();
    await other.remove();
  });
});
