import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startIssuer, type TestIssuer } from "../../src/auth/jwt/issuer.test-kit.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

type Reply = { status: number; headers: Headers; json: Record<string, unknown> };

async function call(engine: Engine, path: string, token?: string, options: RequestInit = {}): Promise<Reply> {
  const headers = new Headers(options.headers);
  if (token !== undefined) headers.set("Authorization", `Bearer ${token}`);
  const response = await fetch(engine.url + path, { ...options, headers });
  const text = await response.text();
  const json = text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : {};
  return { status: response.status, headers: response.headers, json };
}

const post = (body: unknown): RequestInit => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
});

const codeOf = ({ json }: Reply) => (json["error"] as { code?: string } | undefined)?.code;
const me = (engine: Engine, token: string) => call(engine, "/v1/auth/me", token);
const nowSecs = () => Math.floor(Date.now() / 1_000);

/** A server with its own home, and what takes both away. */
async function startOwn(env: Record<string, string>): Promise<{ engine: Engine; end: () => Promise<void> }> {
  const { home, remove } = await temporaryHome();
  const engine = await startEngine({ home, env });
  const end = async () => {
    await engine.stop();
    await remove();
  };
  return { engine, end };
}

describe("a server that takes the tokens of OIDC issuers", () => {
  let issuers: TestIssuer[];
  let engine: Engine;
  let end: () => Promise<void>;

  beforeAll(async () => {
    issuers = await Promise.all([startIssuer({ claims: { engine_role: ["read", "write"] } }), startIssuer()]);
    const names = issuers.map(({ issuer }) => issuer).join(",");
    ({ engine, end } = await startOwn({ ENGINE_AUTH_BACKEND: "oidc", ENGINE_OIDC_ISSUERS: names }));
  });
  afterAll(async () => {
    await end();
    await Promise.all(issuers.map((issuer) => issuer.stop()));
  });

  const issuer = (i = 0): TestIssuer => {
    const found = issuers[i];
    if (found === undefined) throw new Error(`there is no issuer ${i}`);
    return found;
  };
  const claims = (more: Record<string, unknown> = {}, i = 0) => ({
    iss: issuer(i).issuer,
    aud: "engine",
    sub: "ann",
    engine_role: "read",
    exp: nowSecs() + 600,
    ...more,
  });
  const sign = (more: Record<string, unknown> = {}, i = 0) => issuer(i).sign(claims(more, i));

  test("says whose tokens it takes", async () => {
    const { json } = await call(engine, "/v1/auth/config");
    expect(json).toMatchObject({ backend: "oidc", enabled: true, identity_provider: null });
    expect(json["issuers"]).toEqual(issuers.map((each) => each.issuer));
  });

  test("asks an issuer nothing before its first token, and then for its keys once", async () => {
    expect(issuer(1).asked).toEqual([]);
    const replies = await Promise.all(Array.from({ length: 20 }, async () => me(engine, await sign({}, 1))));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    expect(issuer(1).asked).toEqual(["/.well-known/openid-configuration", "/jwks"]);
  });

  test("takes a token that the issuer granted, with the role and the databases that it says", async () => {
    const token = await issuer().grant();
    const { json } = await me(engine, token);
    expect(json).toEqual({ subject: `${issuer().issuer}#robot`, kind: "oidc", role: "write", databases: null });
    const ingest = (bearer: string) =>
      call(engine, "/v1/ingest", bearer, { method: "POST", headers: { "X-Table": "t" }, body: '{"body":"x"}\n' });
    expect(await ingest(token)).toMatchObject({ status: 200 });
    expect(codeOf(await ingest(await sign()))).toBe("forbidden");
    const limited = await me(engine, await sign({ engine_role: "admin", engine_databases: "logs,Traces" }));
    expect(limited.json).toMatchObject({ role: "admin", databases: ["logs", "traces"] });
  });

  test("tells callers of one name by their issuers", async () => {
    const replies = await Promise.all([0, 1].map(async (i) => me(engine, await sign({}, i))));
    expect(replies.map(({ json }) => json["subject"])).toEqual(issuers.map((each) => `${each.issuer}#ann`));
  });

  test("answers 401 to what is no good token, 403 to a good one without a role", async () => {
    const broken = (await sign()).slice(0, -8);
    for (const token of [broken, await sign({ aud: "other" }), await sign({ exp: nowSecs() - 61 }), "a.b.c", "x"]) {
      const reply = await me(engine, token);
      expect([reply.status, codeOf(reply)]).toEqual([401, "unauthorized"]);
      expect(reply.headers.get("www-authenticate")).toContain('error="invalid_token"');
    }
    expect(await me(engine, await sign({ exp: nowSecs() - 50 }))).toMatchObject({ status: 200 });
    const nobody = await me(engine, await sign({ engine_role: "guest" }));
    expect([nobody.status, codeOf(nobody)]).toEqual([403, "forbidden"]);
    expect(engine.log()).not.toContain(broken.slice(0, 40));
  });

  test("gives its callers tokens that end", async () => {
    const admin = await sign({ engine_role: "admin" });
    const forever = await call(engine, "/v1/auth/tokens", admin, post({ name: "ci" }));
    expect(codeOf(forever)).toBe("invalid_parameter");
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const made = await call(engine, "/v1/auth/tokens", admin, post({ name: "ci", expires_at }));
    expect(made.status).toBe(200);
    const { json } = await me(engine, String(made.json["token"]));
    expect(json).toMatchObject({ kind: "api_token", subject: `${issuer().issuer}#ann` });
  });
});

describe("a server whose issuer is away", () => {
  test("starts, says that it cannot judge tokens, and takes them once the issuer is back", async () => {
    const issuer = await startIssuer();
    await issuer.stop();
    const { engine, end } = await startOwn({ ENGINE_AUTH_BACKEND: "oidc", ENGINE_OIDC_ISSUERS: issuer.issuer });
    const token = await issuer.sign({
      iss: issuer.issuer,
      aud: "engine",
      sub: "ann",
      engine_role: "read",
      exp: nowSecs() + 600,
    });
    const away = await me(engine, token);
    expect([away.status, codeOf(away)]).toEqual([503, "unavailable"]);
    expect(Number(away.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await call(engine, "/health")).toMatchObject({ status: 200 });
    await issuer.start();
    await expect.poll(async () => (await me(engine, token)).status, { interval: 200 }).toBe(200);
    await issuer.stop();
    expect(await me(engine, token)).toMatchObject({ status: 200 });
    await end();
  });
});

describe("a server with an identity provider", () => {
  let provider: TestIssuer;
  let engine: Engine;
  let end: () => Promise<void>;

  beforeAll(async () => {
    provider = await startIssuer({ path: "/auth/v1", keysPath: "/.well-known/jwks.json", audience: "authenticated" });
    ({ engine, end } = await startOwn({
      ENGINE_AUTH_BACKEND: "idp",
      ENGINE_IDP_URL: provider.issuer.replace("/auth/v1", "/"),
      ENGINE_IDP_ANON_KEY: "public-key",
      ENGINE_IDP_PROVIDERS: "google,github",
      ENGINE_ADMIN_EMAILS: "Boss@x.example",
      ENGINE_ALLOWED_EMAIL_DOMAINS: "x.example",
      ENGINE_ADMIN_USER: "root",
      ENGINE_ADMIN_PASSWORD: "correct horse",
    }));
  });
  afterAll(async () => {
    await end();
    await provider.stop();
  });

  const sign = (user: string, more: Record<string, unknown> = {}) =>
    provider.sign({
      iss: provider.issuer,
      aud: "authenticated",
      sub: `id-of-${user}`,
      email: `${user}@x.example`,
      iat: nowSecs(),
      exp: nowSecs() + 600,
      role: "authenticated",
      ...more,
    });

  test("says what the login page needs", async () => {
    const shown = { url: provider.issuer.replace("/auth/v1", ""), public_key: "public-key" };
    expect((await call(engine, "/v1/auth/config")).json).toMatchObject({
      backend: "idp",
      enabled: true,
      password_login: true,
      issuers: [],
      identity_provider: { ...shown, providers: ["google", "github"] },
    });
  });

  test("makes users of those who sign in there, and records where they came from", async () => {
    const boss = await sign("boss");
    const expected = { subject: "boss@x.example", kind: "idp", role: "admin", databases: null };
    expect((await me(engine, boss)).json).toEqual(expected);
    expect((await me(engine, await sign("ann"))).json).toMatchObject({ subject: "ann@x.example", role: "read" });
    const { json } = await call(engine, "/v1/admin/users", boss);
    expect(json["users"]).toMatchObject([
      { username: "ann@x.example", source: "idp", role: "read" },
      { username: "boss@x.example", source: "idp", role: "admin" },
      { username: "root", source: "local", role: "admin" },
    ]);
    const audit = await call(engine, "/v1/admin/audit?target=ann@x.example", boss);
    expect(audit.json["entries"]).toMatchObject([
      { action: "user.create", actor: "ann@x.example", actor_kind: "idp", address: "127.0.0.1" },
    ]);
    expect((audit.json["entries"] as { request_id: string }[])[0]?.request_id).toMatch(/.{8}/);
    expect(provider.asked).toEqual(["/auth/v1/.well-known/jwks.json"]);
  });

  test("refuses those of other domains, and knows its own users beside them", async () => {
    const stranger = await me(engine, await sign("eve", { email: "eve@y.example" }));
    expect([stranger.status, codeOf(stranger)]).toEqual([403, "forbidden"]);
    const login = await call(
      engine,
      "/v1/auth/login",
      undefined,
      post({ username: "root", password: "correct horse" }),
    );
    const root = await me(engine, String(login.json["access_token"]));
    expect(root.json).toMatchObject({ subject: "root", kind: "session", role: "admin" });
  });

  test("gives its users tokens that end with them", async () => {
    const boss = await sign("boss");
    const made = await call(engine, "/v1/auth/tokens", await sign("bob"), post({ name: "ci", role: "read" }));
    const token = String(made.json["token"]);
    expect((await me(engine, token)).json).toMatchObject({ subject: "bob@x.example", kind: "api_token" });
    const deleted = await call(engine, "/v1/admin/users/bob@x.example", boss, { method: "DELETE" });
    expect(deleted.status).toBe(200);
    expect(await me(engine, token)).toMatchObject({ status: 401 });
  });
});

describe("a server that is told to check tokens of no issuer", () => {
  test("lets nobody in, and says so", async () => {
    const { engine, end } = await startOwn({ ENGINE_AUTH_BACKEND: "oidc" });
    expect(await me(engine, "a.b.c")).toMatchObject({ status: 401 });
    expect(await call(engine, "/v1/catalog/schema")).toMatchObject({ status: 401 });
    expect(engine.log()).toContain("ENGINE_OIDC_ISSUERS names no issuer");
    await end();
  });
});
