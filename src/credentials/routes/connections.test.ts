import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ADMIN, by } from "../../auth/access.test-kit.ts";
import { AuditLog } from "../../auth/audit.ts";
import { createAuthenticator } from "../../auth/authenticator.ts";
import type { Caller } from "../../auth/caller.ts";
import { FailureLimit } from "../../auth/failure-limit.ts";
import { keyringOf } from "../../auth/sealing/keyring.ts";
import { openMemoryCatalog } from "../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../core/clock.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { createLog } from "../../core/log.ts";
import { createMetrics } from "../../core/metrics.ts";
import { systemRandom } from "../../core/random.ts";
import { Credentials } from "../credentials.ts";
import { DeviceFlows } from "../oauth/device-flows.ts";
import { ProviderDirectory } from "../oauth/directory.ts";
import { OAuthFlows } from "../oauth/flows.ts";
import { appsOf, providersOf } from "../oauth/presets.ts";
import { APP, decideOnDevice, startProvider, TestBrowser, type TestProvider } from "../oauth/provider.test-kit.ts";
import { OAuthTokens } from "../oauth/tokens.ts";
import { serveApp } from "../../server/app.test-kit.ts";
import { oauthFlowRoute } from "./oauth.ts";
import { routesOf } from "../../server/route.ts";
import { CONNECTION_ROUTES } from "./connections.ts";

/** Where browsers think the server is; tests connect to where it is. */
const BASE = "http://engine.test:8080";
const CALLBACK = `${BASE}/api/v1/oauth/id/callback`;
const UI_CALLBACK = "https://ui.test/done?from=id";

const clock = new ManualClock();
const { catalog } = openMemoryCatalog(clock);
const { records } = catalog;
const metrics = createMetrics();
/** Everything that the server said, but for what it stores. */
const said: string[] = [];
let provider: TestProvider;
let server: Awaited<ReturnType<typeof serveApp>>;
let credentials: Credentials;
let audit: AuditLog;
let url: string;
let browser: TestBrowser;

const CALLERS: Readonly<Record<string, Caller>> = {
  ann: { ...ADMIN, subject: "ann", role: "write", databases: ["logs"] },
  bob: { ...ADMIN, subject: "bob", role: "write" },
  reader: { ...ADMIN, subject: "reader", role: "read" },
  root: ADMIN,
};

beforeAll(async () => {
  provider = await startProvider([CALLBACK, UI_CALLBACK]);
  const [random, newId] = [systemRandom, uuidV7Source(clock, systemRandom)];
  const log = createLog("trace", { write: (line) => void said.push(line) });
  const keyring = keyringOf(randomBytes(32).toString("base64"), []);
  audit = new AuditLog(records, newId);
  credentials = new Credentials({ records, newId, random, audit, keyring });
  const app = { client_id: APP.clientId, client_secret: APP.clientSecret };
  const consent = { scopes: ["openid", "offline_access"], parameters: { prompt: "consent" } };
  const settings = {
    id: { ...app, issuer: provider.url, title: "Our <Id>", ...consent },
    gone: { ...app, issuer: "http://127.0.0.1:9" },
    mixed: { ...app, issuer: `${provider.url}/` },
    nodevice: { ...app, authorize_url: `${provider.url}/auth`, token_url: `${provider.url}/token` },
  };
  const providers = new ProviderDirectory({ providers: providersOf(settings), apps: appsOf(settings), clock });
  const common = { records, audit, credentials, keyring, random, clock, log, providers, newId, catalog };
  const deps = {
    oauth: new OAuthFlows({ ...common, redirectBase: BASE }),
    oauthReturnBase: "https://ui.test/app",
    random,
    devices: new DeviceFlows(common),
    tokens: new OAuthTokens(common),
    credentials,
    listed: new Set(Object.keys(settings)),
    redirectUris: [UI_CALLBACK],
  };
  const backends = [{ recognizes: () => true, authenticate: (token: string) => Promise.resolve(CALLERS[token]) }];
  const authenticator = createAuthenticator({ isOn: true, backends, failures: new FailureLimit({ clock }) });
  const routes = routesOf([...CONNECTION_ROUTES, oauthFlowRoute], { here: deps });
  server = await serveApp({ clock, newId, log, metrics, authenticator, routes });
  url = server.url;
});

afterAll(async () => {
  await server.close();
  await provider.close();
  await catalog.close();
});

beforeEach(() => {
  browser = new TestBrowser();
});

type Answered = { status: number; headers: Headers; text: string; json: Record<string, unknown> };

async function answered(response: Response): Promise<Answered> {
  const { status, headers } = response;
  const text = await response.text();
  const secretFree = [...headers].filter(([name]) => name !== "set-cookie" && name !== "location");
  said.push(text, JSON.stringify(secretFree));
  const isJson = text !== "" && headers.get("content-type")?.startsWith("application/json") === true;
  return { status, headers, text, json: isJson ? (JSON.parse(text) as Record<string, unknown>) : {} };
}

type CallOptions = { as?: string; json?: unknown };

async function call(method: string, path: string, { as = "ann", json }: CallOptions = {}): Promise<Answered> {
  const headers = { Authorization: `Bearer ${as}`, ...(json !== undefined && { "Content-Type": "application/json" }) };
  const body = json === undefined ? {} : { body: JSON.stringify(json) };
  return await answered(await fetch(`${url}${path}`, { method, headers, redirect: "manual", ...body }));
}

const codeOf = ({ json }: Answered) => (json["error"] as { code: string } | undefined)?.code;
const refused = (answer: Answered) => [answer.status, codeOf(answer)];

/** The page of the provider to which the flow leads. */
async function authorize(query = "", options: { as?: string } = {}): Promise<string> {
  const answer = await call("GET", `/api/v1/oauth/id/authorize${query}`, options);
  expect(answer.status).toBe(302);
  return answer.headers.get("location") ?? "";
}

/** From there to the address of this server to which the provider sends the browser. */
async function granted(page: string, by = browser): Promise<string> {
  const callback = await by.walk(page, BASE);
  return callback.replace(BASE, url);
}

const take = async (callback: string, headers: Record<string, string> = {}) =>
  answered(await fetch(callback, { headers }));

async function connect(): Promise<string> {
  const { status, json } = await take(await granted(await authorize()));
  expect(status).toBe(200);
  return String(json["credential_id"]);
}

async function tokensOf(id: string): Promise<{ access_token: string; refresh_token?: string | undefined }> {
  const { value } = await credentials.reveal(id, ADMIN);
  if (value.kind !== "oauth2") throw new Error("another kind");
  return value;
}

describe("a flow in a browser", () => {
  test("leads to the provider, as its issuer says, and ends with a credential of the one who began it", async () => {
    const page = await authorize();
    expect(page.startsWith(`${provider.url}/auth?`)).toBe(true);
    const asked = Object.fromEntries(new URL(page).searchParams);
    expect(asked).toMatchObject({
      client_id: APP.clientId,
      redirect_uri: CALLBACK,
      scope: "openid offline_access",
      prompt: "consent",
      code_challenge_method: "S256",
    });
    const done = await take(await granted(page));
    expect([done.status, done.json]).toEqual([200, { credential_id: expect.any(String) as string, provider: "id" }]);
    expect(done.headers.get("cache-control")).toBe("no-store");
    const id = String(done.json["credential_id"]);
    const { credential, value } = await credentials.reveal(id, ADMIN);
    expect(credential).toMatchObject({
      label: "Our <Id>",
      createdBy: "ann",
      databases: ["logs"],
      metadata: { provider: "id" },
    });
    expect(value).toMatchObject({ kind: "oauth2", provider: "id", refresh_token: expect.any(String) as string });
    const flow = await call("GET", `/v1/oauth/flows/${asked["state"]}`);
    expect(flow.json).toEqual({ status: "done", credential_id: id });
    expect((await call("GET", `/v1/oauth/flows/${asked["state"]}`, { as: "bob" })).status).toBe(404);
  });

  test("may send the browser to an address of the list, whose page hands the answer on", async () => {
    const page = await authorize(`?redirect_uri=${encodeURIComponent(UI_CALLBACK)}`);
    const sent = new URL(await browser.walk(page, UI_CALLBACK));
    expect(sent.searchParams.get("from")).toBe("id");
    sent.searchParams.delete("from");
    const done = await take(`${url}/api/v1/oauth/id/callback${sent.search}`);
    expect(done.status).toBe(200);
    const own = await authorize(`?redirect_uri=${encodeURIComponent(CALLBACK)}`);
    expect(new URL(own).searchParams.get("redirect_uri")).toBe(CALLBACK);
  });

  test.each([
    "https://ui.test/done",
    "https://ui.test/done?from=id&x=1",
    "https://ui.test/done?from=id#",
    "https://UI.test/done?from=id",
    "https://ui.test/done?from=ID",
    `${CALLBACK}/`,
    "https://ui.test/done/../done?from=id",
    "https://evil.test/done?from=id",
    "",
  ])("does not send it to %j", async (redirectUri) => {
    const answer = await call("GET", `/api/v1/oauth/id/authorize?redirect_uri=${encodeURIComponent(redirectUri)}`);
    expect(refused(answer)).toEqual([400, "invalid_parameter"]);
    expect(answer.headers.get("location")).toBeNull();
  });

  test("is for those who may write, and of providers that are described", async () => {
    expect((await call("GET", "/api/v1/oauth/id/authorize", { as: "reader" })).status).toBe(403);
    expect((await call("GET", "/api/v1/oauth/id/authorize", { as: "nobody" })).status).toBe(401);
    expect((await call("HEAD", "/api/v1/oauth/id/authorize")).status).toBe(405);
    // The program knows it, and the operator has not described it.
    expect(refused(await call("GET", "/api/v1/oauth/github/authorize"))).toEqual([404, "not_found"]);
    expect(refused(await call("GET", "/api/v1/oauth/google/authorize"))).toEqual([404, "not_found"]);
    expect(refused(await call("GET", "/api/v1/oauth/constructor/authorize"))).toEqual([404, "not_found"]);
    expect(refused(await call("GET", "/api/v1/oauth/A!/authorize"))).toEqual([400, "invalid_parameter"]);
  });

  test("needs an issuer that answers, and for itself", async () => {
    expect(refused(await call("GET", "/api/v1/oauth/gone/authorize"))).toEqual([503, "unavailable"]);
    const mixed = await call("GET", "/api/v1/oauth/mixed/authorize");
    expect(refused(mixed)).toEqual([503, "unavailable"]);
    expect(mixed.text).toContain("another issuer");
  });
});

describe("the callback", () => {
  test("takes an answer once, also of many that come together", async () => {
    const callback = await granted(await authorize());
    const before = provider.tokenRequests();
    const answers = await Promise.all(Array.from({ length: 8 }, () => take(callback)));
    const codes = answers.map((answer) => codeOf(answer) ?? String(answer.status)).toSorted();
    expect(codes).toEqual(["200", ...Array.from({ length: 7 }, () => "invalid_parameter")]);
    expect(provider.tokenRequests() - before).toBe(1);
    const head = await fetch(callback, { method: "HEAD" });
    expect(head.status).toBe(405);
  });

  test.each([
    ["a state of nobody", (from: string) => from.replace(/state=[^&]+/, `state=${"x".repeat(43)}`)],
    ["a state in another form", (from: string) => from.replace(/state=[^&]+/, "state=%00")],
    ["no state", (from: string) => from.replace(/state=[^&]+/, "")],
    ["no code", (from: string) => from.replace(/code=[^&]+/, "code=")],
    ["another provider", (from: string) => from.replace("/id/", "/nodevice/")],
  ])("does not take one with %s, which uses nothing up", async (_, changed) => {
    const callback = await granted(await authorize());
    const before = provider.tokenRequests();
    expect(refused(await take(changed(callback)))).toEqual([400, "invalid_parameter"]);
    expect(provider.tokenRequests()).toBe(before);
    expect((await take(callback)).status).toBe(200);
  });

  test("does not take one after ten minutes", async () => {
    const callback = await granted(await authorize());
    clock.advance(600_000);
    expect(refused(await take(callback))).toEqual([410, "oauth_expired"]);
  });

  test("fails with the code of another flow, with another issuer, and when the owner says no", async () => {
    const stolen = new URL(await granted(await authorize("", { as: "bob" }))).searchParams.get("code");
    const mine = await granted(await authorize());
    expect(refused(await take(mine.replace(/code=[^&]+/, `code=${stolen}`)))).toEqual([502, "oauth_failed"]);
    const other = await granted(await authorize());
    expect(refused(await take(other.replace(/iss=[^&]+/, "iss=https%3A%2F%2Fevil.test")))).toEqual([
      502,
      "oauth_failed",
    ]);
    const denied = await granted(await authorize());
    const answer = await take(denied.replace(/code=[^&]+/, "error=access_denied"));
    expect(refused(answer)).toEqual([403, "oauth_denied"]);
    const [entry] = await audit.list({ limit: 1 });
    expect(entry).toMatchObject({ action: "oauth.finish", outcome: "failed", actor: "ann" });
  });

  test("shows a browser that did not begin the flow whom it is for, before anything happens", async () => {
    const callback = await granted(await authorize());
    const before = provider.tokenRequests();
    const question = await take(callback, { Accept: "text/html,*/*;q=0.8", "Sec-Fetch-Site": "cross-site" });
    expect([question.status, question.text.includes("<b>ann</b>")]).toEqual([200, true]);
    expect(question.text).toContain("Our &lt;Id&gt;");
    expect(provider.tokenRequests()).toBe(before);
    const fields = Object.fromEntries(
      [...question.text.matchAll(/name="(\w+)" value="([^"]*)">/g)].map(([, name = "", value = ""]) => [name, value]),
    );
    const post = async (headers: Record<string, string>) => {
      const body = new URLSearchParams({ ...fields, decision: "connect" }).toString();
      const type = { "Content-Type": "application/x-www-form-urlencoded" };
      const address = callback.split("?")[0] ?? "";
      return await answered(await fetch(address, { method: "POST", headers: { ...type, ...headers }, body }));
    };
    expect((await post({ Origin: "https://evil.test" })).status).toBe(403);
    const done = await post({ Origin: BASE, "Sec-Fetch-Site": "same-origin" });
    expect([done.status, done.text.includes("The account is connected")]).toEqual([200, true]);
  });

  test("shows the result to the browser that began it", async () => {
    const response = await fetch(`${url}/api/v1/oauth/id/authorize`, {
      headers: { Authorization: "Bearer ann" },
      redirect: "manual",
    });
    const [cookie = ""] = response.headers.getSetCookie();
    expect(cookie).toMatch(
      /^engine_oauth_\w{16}=[\w-]{43}; Path=\/api\/v1\/oauth; HttpOnly; SameSite=Lax; Max-Age=600$/,
    );
    const callback = await granted(response.headers.get("location") ?? "");
    const Cookie = cookie.split(";")[0] ?? "";
    const page = await take(callback, { Accept: "text/html", Cookie });
    expect([page.status, page.text.includes("The account is connected")]).toEqual([200, true]);
  });

  test("takes nothing that a page of another site makes a browser send", async () => {
    const callback = await granted(await authorize());
    const foreign = [
      { Accept: "image/avif,*/*;q=0.8", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors" },
      { Accept: "application/json", "Sec-Fetch-Site": "same-site" },
      { Accept: "application/json", Origin: "https://evil.test" },
    ];
    for (const headers of foreign) expect(refused(await take(callback, headers))).toEqual([403, "forbidden"]);
    expect((await take(callback, { "Sec-Fetch-Site": "same-origin" })).status).toBe(200);
  });
});

describe("a flow without a browser", () => {
  const begin = async (as = "ann") => (await call("GET", "/api/v1/oauth/id/device-code", { as })).json;
  const poll = async (code: unknown, as = "ann") =>
    await call("POST", "/api/v1/oauth/id/device-poll", { as, json: { device_code: code } });
  /** What the provider says from here on in place of the tokens. */
  const says = (error: string) =>
    provider.answerTokensWith((response) => response.writeHead(400).end(JSON.stringify({ error })));

  test("waits for the owner, asks no more often than the provider wants, and ends with a credential", async () => {
    const begun = await begin();
    expect(begun).toEqual({
      device_code: expect.stringMatching(/^[\w-]{43}$/) as string,
      user_code: expect.stringMatching(/^[A-Z]{4}-[A-Z]{4}$/) as string,
      verification_uri: `${provider.url}/device`,
      expires_in: 600,
      interval: 5,
    });
    const code = begun["device_code"];
    const before = provider.tokenRequests();
    const early = await poll(code);
    expect([early.status, early.json]).toEqual([202, { status: "slow_down", interval: 5 }]);
    expect(provider.tokenRequests()).toBe(before);
    clock.advance(5_000);
    const waiting = await Promise.all(Array.from({ length: 6 }, () => poll(code)));
    expect(waiting.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 202));
    expect(waiting.map(({ json }) => String(json["status"])).toSorted()).toEqual([
      "pending",
      ...Array.from({ length: 5 }, () => "slow_down"),
    ]);
    expect(provider.tokenRequests() - before).toBe(1);
    await decideOnDevice(provider.url, String(begun["user_code"]), "yes");
    clock.advance(4_999);
    expect((await poll(code)).json).toEqual({ status: "slow_down", interval: 5 });
    clock.advance(1);
    const done = await poll(code);
    expect([done.status, done.json]).toEqual([200, { credential_id: expect.any(String) as string, provider: "id" }]);
    // An answer that was lost can be had again.
    expect((await poll(code)).json).toEqual(done.json);
    expect(provider.tokenRequests() - before).toBe(2);
    const { credential, value } = await credentials.reveal(String(done.json["credential_id"]), ADMIN);
    expect(credential).toMatchObject({ createdBy: "ann", databases: ["logs"], kind: "oauth2" });
    expect(value).toMatchObject({ provider: "id", access_token: expect.any(String) as string });
    const actions = (await audit.list({ limit: 3 })).map(({ action, outcome }) => `${action} ${outcome}`);
    expect(actions.toSorted()).toEqual(["credential.create ok", "oauth.finish ok", "oauth.start ok"]);
  });

  test("is told apart when the owner says no, and when nobody comes in time", async () => {
    const denied = await begin();
    await decideOnDevice(provider.url, String(denied["user_code"]), "no");
    clock.advance(5_000);
    for (let i = 0; i < 2; i++) expect(refused(await poll(denied["device_code"]))).toEqual([403, "oauth_denied"]);
    const late = await begin();
    clock.advance(600_000);
    const before = provider.tokenRequests();
    expect(refused(await poll(late["device_code"]))).toEqual([410, "oauth_expired"]);
    expect(provider.tokenRequests()).toBe(before);
  });

  test("slows down when the provider says so, or does not answer", async () => {
    const { device_code: code } = await begin();
    clock.advance(5_000);
    says("slow_down");
    expect((await poll(code)).json).toEqual({ status: "slow_down", interval: 10 });
    says("authorization_pending");
    clock.advance(9_999);
    expect((await poll(code)).json).toEqual({ status: "slow_down", interval: 10 });
    clock.advance(1);
    expect((await poll(code)).json).toEqual({ status: "pending", interval: 10 });
    provider.answerTokensWith((response) => response.destroy());
    clock.advance(10_000);
    expect(refused(await poll(code))).toEqual([503, "unavailable"]);
    expect((await poll(code)).json).toEqual({ status: "slow_down", interval: 20 });
    provider.answerTokensWith(undefined);
    clock.advance(20_000);
    expect((await poll(code)).json).toEqual({ status: "pending", interval: 20 });
  });

  test.each([
    ["expired_token", [410, "oauth_expired"]],
    ["authorization_declined", [403, "oauth_denied"]],
    ["invalid_grant", [502, "oauth_failed"]],
    ["canary <b>", [502, "oauth_failed"]],
  ])("ends when the provider says %s", async (error, expected) => {
    const { device_code: code } = await begin();
    clock.advance(5_000);
    says(error);
    const answer = await poll(code);
    provider.answerTokensWith(undefined);
    expect(refused(answer)).toEqual(expected);
    expect(answer.text).not.toContain("canary");
    expect(refused(await poll(code))).toEqual(expected);
  });

  test("is of the one who began it, with that provider", async () => {
    const { device_code: code } = await begin();
    expect(refused(await poll(code, "bob"))).toEqual([404, "not_found"]);
    const elsewhere = await call("POST", "/api/v1/oauth/nodevice/device-poll", { json: { device_code: code } });
    expect(refused(elsewhere)).toEqual([404, "not_found"]);
    expect(refused(await poll("nonsense"))).toEqual([404, "not_found"]);
    expect((await call("POST", "/api/v1/oauth/id/device-poll", { json: {} })).status).toBe(400);
    expect((await call("GET", "/api/v1/oauth/id/device-code", { as: "reader" })).status).toBe(403);
    expect((await call("HEAD", "/api/v1/oauth/id/device-code")).status).toBe(405);
    expect(refused(await call("GET", "/api/v1/oauth/nodevice/device-code"))).toEqual([501, "not_configured"]);
    expect(refused(await call("GET", "/api/v1/oauth/nobody/device-code"))).toEqual([404, "not_found"]);
  });
});

describe("a refresh", () => {
  const refresh = async (id: string, { as = "ann", name = "id" } = {}) =>
    await call("POST", `/api/v1/oauth/${name}/refresh`, { as, json: { credential_id: id } });

  test("renews the tokens, with one question of however many ask, and takes the next refresh token then", async () => {
    const id = await connect();
    const before = await tokensOf(id);
    clock.advance(10_000);
    const asked = provider.tokenRequests();
    const answers = await Promise.all(Array.from({ length: 6 }, () => refresh(id)));
    const expires_at = new Date(clock.nowMs() + 3_600_000).toISOString();
    for (const { status, json } of answers) {
      expect([status, json]).toEqual([200, { credential_id: id, provider: "id", expires_at }]);
    }
    expect(provider.tokenRequests() - asked).toBe(1);
    const after = await tokensOf(id);
    expect(after.access_token).not.toBe(before.access_token);
    expect(after.refresh_token).not.toBe(before.refresh_token);
    expect((await refresh(id, { as: "root" })).status).toBe(200);
    expect((await tokensOf(id)).refresh_token).not.toBe(after.refresh_token);
  });

  test("is not of credentials of others, of other providers, or of other kinds", async () => {
    const id = await connect();
    const pat = await credentials.create(
      { label: "p", value: { kind: "pat", token: "t" } },
      by(CALLERS["ann"] ?? ADMIN),
    );
    const before = provider.tokenRequests();
    const missing = [404, "credential_not_found"];
    expect(refused(await refresh(id, { as: "bob" }))).toEqual(missing);
    expect(refused(await refresh(id, { name: "nodevice" }))).toEqual(missing);
    expect(refused(await refresh(pat.id))).toEqual(missing);
    expect(refused(await refresh("nothing\0"))).toEqual(missing);
    expect((await refresh(id, { as: "reader" })).status).toBe(403);
    expect(provider.tokenRequests()).toBe(before);
  });

  test("says that an account must be connected again, and that a grant cannot be renewed", async () => {
    const id = await connect();
    provider.answerTokensWith((response) => response.writeHead(400).end('{"error":"invalid_grant"}'));
    for (let i = 0; i < 2; i++) expect(refused(await refresh(id))).toEqual([409, "conflict"]);
    provider.answerTokensWith((response) => response.destroy());
    const away = await connectedByHand("r");
    expect(refused(await refresh(away))).toEqual([503, "unavailable"]);
    provider.answerTokensWith(undefined);
    const forever = await connectedByHand(undefined);
    expect(refused(await refresh(forever))).toEqual([409, "conflict"]);
    // Its access token may still be good.
    expect((await credentials.get(forever, ADMIN)).status).toBe("ok");
  });

  async function connectedByHand(refresh_token: string | undefined): Promise<string> {
    const value = { kind: "oauth2", access_token: "canary-by-hand", provider: "id", refresh_token } as const;
    return (await credentials.create({ label: "x", value }, by(CALLERS["ann"] ?? ADMIN))).id;
  }
});

test("nothing that was said, logged or stored holds a token, a code of the provider or a secret", async () => {
  const begun = (await call("GET", "/api/v1/oauth/id/device-code")).json;
  const callback = await granted(await authorize());
  const id = String((await take(callback)).json["credential_id"]);
  const first = await tokensOf(id);
  await call("POST", "/api/v1/oauth/id/refresh", { json: { credential_id: id } });
  const second = await tokensOf(id);
  const code = new URL(callback).searchParams.get("code") ?? "";
  const tokens = [first, second].flatMap(({ access_token, refresh_token = "" }) => [access_token, refresh_token]);
  const canaries = [APP.clientSecret, "canary-by-hand", code, ...tokens];
  expect(canaries.filter((text) => text.length < 10)).toEqual([]);
  const tables = await records.rows("SELECT name FROM sqlite_master WHERE type = 'table'");
  const stored = await Promise.all(tables.map(({ name }) => records.rows(`SELECT * FROM "${String(name)}"`)));
  const dump = JSON.stringify(stored);
  expect(dump).toContain("oauth.finish");
  expect(tables.map(({ name }) => name)).toContain("oauth_device_flows");
  expect(dump).not.toContain(String(begun["device_code"]));
  const all = [...said, dump, await metrics.registry.metrics()].join("\n");
  // The question's form carries the code on, to the browser that brought it.
  const elsewhere = all.replaceAll(/<input type="hidden" name="code" value="[^"]*">/g, "");
  expect(canaries.filter((text) => elsewhere.includes(text))).toEqual([]);
});
