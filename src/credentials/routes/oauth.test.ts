import { routesOf } from "../../server/route.ts";
import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ADMIN, openAccess, type Access } from "../../auth/access.test-kit.ts";
import { createAuthenticator } from "../../auth/authenticator.ts";
import type { Caller } from "../../auth/caller.ts";
import { FailureLimit } from "../../auth/failure-limit.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { createLog } from "../../core/log.ts";
import { createMetrics } from "../../core/metrics.ts";
import { systemRandom } from "../../core/random.ts";
import { Credentials } from "../credentials.ts";
import { keyringOf } from "../../auth/sealing/keyring.ts";
import { OAuthFlows } from "../oauth/flows.ts";
import {
  APP,
  at,
  directoryOf,
  startProvider,
  TENANT_APP,
  TestBrowser,
  type TestProvider,
} from "../oauth/provider.test-kit.ts";
import { PROVIDERS } from "../oauth/providers.ts";
import { serveApp } from "../../server/app.test-kit.ts";
import * as oauth from "./oauth.ts";

/** Where browsers think the server is, and where it is: providers compare the first, tests connect to the second. */
const BASE = "http://engine.test:8080";
const SECURE_BASE = "https://engine.test";
const UI = "https://ui.test/app";
const RETURN_ORIGIN = "https://ui.test";
const CALLBACK = `${BASE}/v1/oauth/google/callback`;

let access: Access;
let provider: TestProvider;
const servers: { close: () => Promise<void> }[] = [];
let serve: (redirectBase: string, returnBase: string) => Promise<string>;
let credentials: Credentials;
let url: string;
let browser: TestBrowser;
/** Everything that the server said, but for what it stores. */
const said: string[] = [];
const metrics = createMetrics();

const CALLERS: Readonly<Record<string, Caller>> = {
  ann: { ...ADMIN, subject: "ann<script>alert(1)</script>", role: "write", databases: ["logs"] },
  bob: { ...ADMIN, subject: "bob", role: "write" },
  reader: { ...ADMIN, subject: "reader", role: "read" },
};

beforeAll(async () => {
  access = await openAccess();
  provider = await startProvider([CALLBACK, CALLBACK.replace(BASE, SECURE_BASE)]);
  const { records, audit, clock } = access;
  const [random, newId] = [systemRandom, uuidV7Source(clock, systemRandom)];
  const keyring = keyringOf(randomBytes(32).toString("base64"), []);
  const log = createLog("trace", { write: (line) => void said.push(line) });
  credentials = new Credentials({ records, newId, random, audit, keyring });
  const found = { google: at(provider.url), atlassian: at(provider.url, PROVIDERS.atlassian) };
  const providers = directoryOf(clock, found, { google: APP, atlassian: APP, slack: { clientId: "half" } });
  const common = { records, audit, credentials, keyring, random, log, providers };
  const routesFor = (flows: OAuthFlows, oauthReturnBase: string) => {
    const deps = { oauth: flows, oauthReturnBase, random };
    return routesOf([oauth.startOAuthRoute, oauth.oauthCallbackRoute, oauth.confirmOAuthRoute, oauth.oauthFlowRoute], {
      here: deps,
    });
  };
  const authenticate = (token: string) => Promise.resolve(CALLERS[token]);
  const backends = [{ recognizes: () => true, authenticate }];
  const authenticator = createAuthenticator({ isOn: true, backends, failures: new FailureLimit({ clock }) });
  serve = async (redirectBase, returnBase) => {
    const routes = routesFor(new OAuthFlows({ ...common, redirectBase }), returnBase);
    const server = await serveApp({ clock, newId, log, metrics, authenticator, routes });
    servers.push(server);
    return server.url;
  };
  url = await serve(BASE, UI);
});

afterAll(async () => {
  for (const server of servers) await server.close();
  await provider.close();
  await access.close();
});

beforeEach(() => {
  browser = new TestBrowser();
});

type Started = { authorize_url: string; state: string };
type Answered = { status: number; headers: Headers; text: string };

const here = (address: string) => address.replace(BASE, url);

async function answered(response: Response): Promise<Answered> {
  const text = await response.text();
  said.push(text, JSON.stringify([...response.headers].filter(([name]) => name !== "set-cookie")));
  return { status: response.status, headers: response.headers, text };
}

async function startRaw(body: unknown, { as = "ann", name = "google", from = browser } = {}): Promise<Answered> {
  const headers = { Authorization: `Bearer ${as}`, "Content-Type": "application/json", Accept: "application/json" };
  const request = { method: "POST", headers, body: JSON.stringify(body) };
  return await answered(await from.open(`${url}/v1/oauth/${name}/start`, request));
}

async function start(extra: Readonly<Record<string, unknown>> = {}, options = {}): Promise<Started> {
  const { status, text } = await startRaw({ data_source_type: "drive", ...extra }, options);
  expect([status, text.slice(0, 10)]).toEqual([200, '{"authoriz']);
  return JSON.parse(text) as Started;
}

/** From the provider's page to the address of this server to which it sends the browser. */
async function granted(started: Started, by = browser): Promise<string> {
  const callback = await by.walk(started.authorize_url, BASE);
  expect(callback.startsWith(`${CALLBACK}?`)).toBe(true);
  return here(callback);
}

const open = async (address: string, by = browser) => answered(await by.open(address));

async function statusOf(state: string, as = "ann"): Promise<unknown> {
  const headers = { Authorization: `Bearer ${as}` };
  const { status, text } = await answered(await fetch(`${url}/v1/oauth/flows/${state}`, { headers }));
  return status === 200 ? JSON.parse(text) : status;
}

/** What the page tells its opener, and whom. */
function messageIn({ text }: Answered): { message: Record<string, unknown>; origin: unknown } {
  const [, script = ""] = /window\.opener\.postMessage\((.*)\); window\.close\(\)/.exec(text) ?? [];
  const [message, origin] = JSON.parse(`[${script}]`) as [Record<string, unknown>, unknown];
  return { message, origin };
}

async function post(fields: Record<string, string>, headers: Record<string, string>): Promise<Answered> {
  const body = new URLSearchParams(fields).toString();
  const all = { "Content-Type": "application/x-www-form-urlencoded", ...headers };
  return await answered(await new TestBrowser().open(here(CALLBACK), { method: "POST", headers: all, body }));
}

/** The fields of the form with the question. */
function fieldsIn({ text }: Answered): Record<string, string> {
  const inputs = text.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g);
  return Object.fromEntries([...inputs].map(([, name = "", value = ""]) => [name, value]));
}

const SAME_SITE = { Origin: BASE, "Sec-Fetch-Site": "same-origin" };
const IS_USED = /taken only once/;

describe("a flow in the browser that started it", () => {
  test("ends with a credential of the one who started it, and tells the user interface and no other", async () => {
    const started = await start({ label: "my drive" });
    expect(await statusOf(started.state)).toEqual({ status: "pending", credential_id: null });
    const asked = new URL(started.authorize_url).searchParams;
    expect(Object.fromEntries(asked)).toMatchObject({
      client_id: APP.clientId,
      response_type: "code",
      redirect_uri: CALLBACK,
      scope: "openid offline_access",
      access_type: "offline",
      prompt: "consent",
      code_challenge_method: "S256",
      state: started.state,
    });
    const page = await open(await granted(started));
    expect(page.status).toBe(200);
    const { message, origin } = messageIn(page);
    expect(origin).toBe(RETURN_ORIGIN);
    const { credential_id: id } = message;
    expect(message).toEqual({ type: "engine.oauth", status: "done", credential_id: id, state: started.state });
    expect(await statusOf(started.state)).toEqual({ status: "done", credential_id: id });
    const { credential, value } = await credentials.reveal(String(id), ADMIN);
    expect(credential).toMatchObject({
      label: "my drive",
      kind: "oauth2",
      createdBy: CALLERS["ann"]?.subject,
      databases: ["logs"],
      status: "ok",
      metadata: {
        provider: "google",
        data_source_type: "drive",
      },
    });
    expect(value).toMatchObject({ kind: "oauth2", provider: "google", token_type: "bearer" });
    expect(Object.keys(value)).toContain("refresh_token");
    expect(Object.keys(value)).not.toContain("client_secret");
    expect((credential.expiresAtMs ?? 0) - access.clock.nowMs()).toBe(3_600_000);
    const actions = (await access.audit.list({ limit: 3 })).map(({ action, outcome }) => `${action} ${outcome}`);
    expect(actions.toSorted()).toEqual(["credential.create ok", "oauth.finish ok", "oauth.start ok"]);
  });

  test("has a page that nothing runs or loads on but its own script, and that nobody keeps or frames", async () => {
    const { headers, text } = await open(await granted(await start()));
    const [, nonce] = /script nonce="([^"]{22,})"/.exec(text) ?? [];
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy.split("; ").toSorted()).toEqual([
      "base-uri 'none'",
      "default-src 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      `script-src 'nonce-${nonce}'`,
      `style-src 'nonce-${nonce}'`,
    ]);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("x-frame-options")).toBe("DENY");
    expect(headers.get("cross-origin-opener-policy")).toBeNull();
    expect(headers.get("location")).toBeNull();
    expect(text).toContain(`<a href="${UI}">`);
    expect(text).not.toContain('"*"');
  });

  test("may bring an app of its own, which the credential keeps", async () => {
    const { clientId: client_id, clientSecret: client_secret } = TENANT_APP;
    const started = await start({ client_id, client_secret, scopes: ["openid"] });
    expect(new URL(started.authorize_url).searchParams.get("client_id")).toBe(client_id);
    const { message } = messageIn(await open(await granted(started)));
    const { value } = await credentials.reveal(String(message["credential_id"]), ADMIN);
    expect(value).toMatchObject({ client_id, client_secret });
  });

  test("marks the browser for that flow only, in a cookie that no page reads", async () => {
    const headers = { Authorization: "Bearer ann", "Content-Type": "application/json" };
    const body = JSON.stringify({ data_source_type: "drive" });
    const response = await fetch(`${url}/v1/oauth/google/start`, { method: "POST", headers, body });
    const { state } = (await response.json()) as Started;
    const [cookie = ""] = response.headers.getSetCookie();
    expect(cookie).toMatch(
      /^engine_oauth_[0-9a-f]{16}=[\w-]{43}; Path=\/v1\/oauth; HttpOnly; SameSite=Lax; Max-Age=600$/,
    );
    expect(response.headers.get("cache-control")).toBe("no-store");
    const dump = JSON.stringify(await access.records.rows("SELECT * FROM oauth_flows"));
    expect(dump).not.toContain(state);
    expect(dump).not.toContain(/=([\w-]+);/.exec(cookie)?.[1]);
  });
});

test("over https no other host of the domain can mark a browser, and the user interface may be the server's own", async () => {
  const secure = await serve(SECURE_BASE, SECURE_BASE);
  const headers = { Authorization: "Bearer ann", "Content-Type": "application/json" };
  const body = JSON.stringify({ data_source_type: "drive" });
  const response = await fetch(`${secure}/v1/oauth/google/start`, { method: "POST", headers, body });
  const { authorize_url: address } = (await response.json()) as Started;
  const [cookie = ""] = response.headers.getSetCookie();
  expect(cookie).toMatch(
    /^__Host-engine_oauth_\w{16}=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=600$/,
  );
  const callback = (await browser.walk(address, SECURE_BASE)).replace(SECURE_BASE, secure);
  const plain = cookie.split(";")[0]?.replace("__Host-", "") ?? "";
  const asked = await answered(await fetch(callback, { headers: { Cookie: plain } }));
  expect(asked.text).toContain("This was not started in this browser");
  const page = await answered(await fetch(callback, { headers: { Cookie: `__Host-${plain}` } }));
  expect(messageIn(page)).toMatchObject({ message: { status: "done" }, origin: SECURE_BASE });
  const [cleared = ""] = page.headers.getSetCookie();
  expect(cleared).toMatch(/^__Host-engine_oauth_\w{16}=; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=0$/);
});

describe("an answer", () => {
  test("is taken once", async () => {
    const callback = await granted(await start());
    const before = provider.tokenRequests();
    expect((await open(callback)).status).toBe(200);
    const again = await open(callback);
    expect(again.status).toBe(400);
    expect(again.text).toMatch(IS_USED);
    expect(again.text).not.toContain("<script");
    expect(provider.tokenRequests() - before).toBe(1);
  });

  test("is taken once of many that come together", async () => {
    const callback = await granted(await start());
    const before = provider.tokenRequests();
    const cookie = { headers: { Cookie: browser.cookies(callback) } };
    const pages = await Promise.all(Array.from({ length: 12 }, async () => answered(await fetch(callback, cookie))));
    const taken = pages.filter(({ status }) => status === 200);
    expect([taken.length, pages.filter(({ text }) => IS_USED.test(text)).length]).toEqual([1, 11]);
    expect(provider.tokenRequests() - before).toBe(1);
  });

  test("is not used up by a look at it", async () => {
    const callback = await granted(await start());
    expect((await browser.open(callback, { method: "HEAD" })).status).toBe(405);
    expect((await open(callback)).status).toBe(200);
  });

  test.each([
    ["of no flow", (callback: string) => callback.replace(/state=[^&]+/, `state=${"x".repeat(43)}`)],
    ["of a state in another form", (callback: string) => callback.replace(/state=[^&]+/, "state=%3Cscript%3E")],
    ["without a state", (callback: string) => callback.replace(/state=[^&]+/, "")],
    ["without a code", (callback: string) => callback.replace(/code=[^&]+/, "code=")],
    ["of a flow of another provider", (callback: string) => callback.replace("/google/", "/atlassian/")],
  ])("%s changes nothing", async (_, changed) => {
    const started = await start();
    const callback = await granted(started);
    const before = provider.tokenRequests();
    const page = await open(changed(callback));
    expect(page.status).toBe(400);
    expect(page.text).not.toContain("<script");
    expect(provider.tokenRequests()).toBe(before);
    expect(await statusOf(started.state)).toEqual({ status: "pending", credential_id: null });
    expect((await open(callback)).status).toBe(200);
  });

  test("comes too late after ten minutes", async () => {
    const started = await start();
    const callback = await granted(started);
    access.clock.advance(600_000);
    expect(await statusOf(started.state)).toEqual({ status: "expired", credential_id: null });
    const page = await open(callback);
    expect(page.status).toBe(400);
    expect(messageIn(page)).toMatchObject({ message: { status: "expired" }, origin: RETURN_ORIGIN });
    access.clock.advance(86_400_001);
    await start();
    expect(await statusOf(started.state)).toBe(404);
  });

  test.each([
    ["whose code was changed", (callback: string) => callback.replace(/code=[^&]+/, "code=nonsense"), "invalid_grant"],
    [
      "of another issuer",
      (callback: string) => callback.replace(/iss=[^&]+/, "iss=https%3A%2F%2Fevil.test"),
      "provider_unreachable",
    ],
    ["that is a refusal", (callback: string) => callback.replace(/code=[^&]+/, "error=access_denied"), "access_denied"],
  ])("%s ends the flow as failed", async (_, changed, detail) => {
    const started = await start();
    const page = await open(changed(await granted(started)));
    expect(page.status).toBe(200);
    expect(page.text).toContain(`(${detail})`);
    expect(messageIn(page).message).toMatchObject({ status: "failed", credential_id: null, state: started.state });
    expect(await statusOf(started.state)).toEqual({ status: "failed", credential_id: null });
    const [entry] = await access.audit.list({ limit: 1 });
    expect(entry).toMatchObject({ action: "oauth.finish", outcome: "failed", details: { provider: "google", detail } });
  });

  test("with the code of another flow fails: the verifier is another", async () => {
    const [mine, other] = [await start(), await start({}, { as: "bob" })];
    const [callback, stolen] = [await granted(mine), await granted(other)];
    const code = new URL(stolen).searchParams.get("code") ?? "";
    const page = await open(callback.replace(/code=[^&]+/, `code=${code}`));
    expect(page.text).toContain("(invalid_grant)");
  });

  test("shows nothing as HTML that came from outside", async () => {
    const { state } = await start({ label: "<img src=x onerror=alert(2)>" });
    const attack = "%3C/script%3E%3Cscript%3Ealert(3)%3C/script%3E";
    const callback = `${here(CALLBACK)}?state=${state}&error=${attack}&error_description=${attack}`;
    const refused = await open(callback);
    expect(refused.text).toContain("(unknown_error)");
    const other = await start({ label: "<img src=x onerror=alert(2)>" });
    const question = await open(`${here(CALLBACK)}?state=${other.state}&code=${attack}`, new TestBrowser());
    expect(question.text).toContain("&lt;img src=x");
    expect(question.text).toContain("ann&lt;script&gt;");
    for (const { text } of [refused, question]) expect(text).not.toMatch(/<img|<script>|alert\(3\)<\/script/);
  });

  test("whose exchange fails leaves no credential, whatever the provider says", async () => {
    const answers: [number, string, string][] = [
      [500, "canary-answer-1", "provider_unreachable"],
      [200, "canary-answer-2", "provider_unreachable"],
      [200, '{"token_type":"bearer"}', "provider_unreachable"],
      [400, '{"error":"invalid_client","error_description":"canary-answer-3"}', "invalid_client"],
      [401, '{"error":"<b>canary-answer-4"}', "unknown_error"],
      [302, "canary-answer-5", "provider_unreachable"],
      [200, JSON.stringify({ access_token: "x".repeat(70_000) }), "invalid_tokens"],
      [200, JSON.stringify({ access_token: "x".repeat(700_000) }), "provider_unreachable"],
    ];
    const before = (await credentials.list(ADMIN)).length;
    for (const [status, body, detail] of answers) {
      const callback = await granted(await start());
      provider.answerTokensWith((response) => response.writeHead(status, { Location: "http://evil.test" }).end(body));
      expect((await open(callback)).text).toContain(`(${detail})`);
      provider.answerTokensWith(undefined);
    }
    const callback = await granted(await start());
    provider.answerTokensWith((response) => response.destroy());
    expect((await open(callback)).text).toContain("(provider_unreachable)");
    provider.answerTokensWith(undefined);
    expect(await credentials.list(ADMIN)).toHaveLength(before);
  });
});

describe("an answer in another browser than the one that started", () => {
  test("waits until a person has seen for whom it is and agreed", async () => {
    const started = await start({ label: "shared" });
    const victim = new TestBrowser();
    const callback = await granted(started, victim);
    const before = provider.tokenRequests();
    const question = await open(callback, victim);
    expect(question.status).toBe(200);
    expect(question.text).toContain("ann&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(question.text).toContain("<b>shared</b>");
    expect(question.text).not.toContain("<script");
    expect(question.headers.get("content-security-policy")).toContain("form-action 'self'");
    expect(question.headers.get("referrer-policy")).toBe("same-origin");
    expect(question.text).toContain('<meta name="referrer" content="same-origin">');
    expect(provider.tokenRequests()).toBe(before);
    expect(await statusOf(started.state)).toEqual({ status: "pending", credential_id: null });
    const done = await post({ ...fieldsIn(question), decision: "connect" }, SAME_SITE);
    expect(messageIn(done)).toMatchObject({ message: { status: "done" }, origin: RETURN_ORIGIN });
    expect(await statusOf(started.state)).toMatchObject({ status: "done" });
    const again = await post({ ...fieldsIn(question), decision: "connect" }, SAME_SITE);
    expect(again.status).toBe(400);
    expect(again.text).toMatch(IS_USED);
  });

  test("is dropped when that person says no", async () => {
    const started = await start();
    const question = await open(await granted(started, new TestBrowser()), new TestBrowser());
    const before = provider.tokenRequests();
    const page = await post({ ...fieldsIn(question), decision: "cancel" }, SAME_SITE);
    expect(page.text).toContain("(cancelled)");
    expect(provider.tokenRequests()).toBe(before);
    expect(await statusOf(started.state)).toEqual({ status: "failed", credential_id: null });
  });

  test("is not taken from the page of another site, nor without saying from where", async () => {
    const started = await start();
    const question = await open(await granted(started, new TestBrowser()), new TestBrowser());
    const fields = { ...fieldsIn(question), decision: "connect" };
    const strange: Record<string, string>[] = [
      {},
      { Origin: "null" },
      { Origin: "https://evil.test" },
      { Origin: `${BASE}.evil.test` },
      { Origin: "https://engine.test:8080" },
      { "Sec-Fetch-Site": "cross-site" },
      { "Sec-Fetch-Site": "same-site", Origin: BASE },
      { "Sec-Fetch-Site": "same-origin", Origin: "https://evil.test" },
    ];
    for (const headers of strange) {
      const { status } = await post(fields, headers);
      expect({ headers, status }).toEqual({ headers, status: 403 });
    }
    expect(await statusOf(started.state)).toEqual({ status: "pending", credential_id: null });
    expect((await post({ ...fields, decision: "" }, SAME_SITE)).status).toBe(400);
    expect((await post({ decision: "connect" }, SAME_SITE)).status).toBe(400);
    expect((await post({ ...fields, pad: "x".repeat(20_000) }, SAME_SITE)).status).toBe(413);
    expect((await post(fields, { "Sec-Fetch-Site": "same-origin" })).status).toBe(200);
  });

  test("asks also where the cookie is of another flow, or not its value", async () => {
    const [started, other] = [await start(), await start()];
    const callback = await granted(started);
    const name = async (state: string) => {
      const { createHash } = await import("node:crypto");
      return `engine_oauth_${createHash("sha256").update(state).digest("hex").slice(0, 16)}`;
    };
    const jar = Object.fromEntries(
      browser
        .cookies(callback)
        .split("; ")
        .map((pair) => pair.split("=", 2)),
    );
    const [own, others] = [await name(started.state), await name(other.state)];
    for (const cookie of [`${others}=${jar[others]}`, `${own}=${jar[others]}`, `${own}=`, `x${own}=${jar[own]}`]) {
      const page = await answered(await fetch(callback, { headers: { Cookie: cookie } }));
      expect(page.text).toContain("This was not started in this browser");
    }
    const page = await answered(await fetch(callback, { headers: { Cookie: `a=b; ${own}=${jar[own]}` } }));
    expect(messageIn(page).message).toMatchObject({ status: "done" });
  });
});

describe("starting", () => {
  const codeOf = ({ text }: Answered) => (JSON.parse(text) as { error: { code: string } }).error.code;

  test.each([
    ["google", { data_source_type: "notes" }, "bad_request_body", "drive"],
    ["google", { data_source_type: "constructor" }, "bad_request_body", "drive"],
    ["google", {}, "bad_request_body", "data_source_type"],
    ["google", { data_source_type: "drive", client_id: "x" }, "bad_request_body", "go together"],
    ["google", { data_source_type: "drive", client_secret: "canary-1" }, "bad_request_body", "go together"],
    ["google", { data_source_type: "drive", scopes: ["a b"] }, "bad_request_body", "scope"],
    ["google", { data_source_type: "drive", extra: 1 }, "bad_request_body", "extra"],
    ["notion", { data_source_type: "notes" }, "not_configured", "ENGINE_OAUTH_NOTION_CLIENT_ID"],
    [
      "notion",
      { data_source_type: "notes", scopes: ["a"], client_id: "i", client_secret: "s" },
      "bad_request_body",
      "none",
    ],
    ["slack", { data_source_type: "chat" }, "not_configured", "ENGINE_OAUTH_SLACK_CLIENT_SECRET"],
    ["github", { data_source_type: "drive" }, "invalid_parameter", "google"],
    ["flows", { data_source_type: "drive" }, "method_not_allowed", "GET"],
  ])("%s with %j is refused as %s", async (name, body, code, word) => {
    const reply = await startRaw(body, { name });
    expect(codeOf(reply)).toBe(code);
    expect(reply.text).toContain(word);
  });

  test("takes another provider's own app without one of the operator's", async () => {
    const app = { client_id: "i", client_secret: "canary-notion-secret" };
    const { authorize_url: address } = await start({ data_source_type: "notes", ...app }, { name: "notion" });
    const asked = new URL(address);
    expect(asked.origin).toBe("https://api.notion.com");
    expect([...asked.searchParams.keys()].toSorted()).toEqual([
      "client_id",
      "owner",
      "redirect_uri",
      "response_type",
      "state",
    ]);
    const chat = await start({ data_source_type: "chat", ...app }, { name: "slack" });
    const slack = new URL(chat.authorize_url).searchParams;
    expect([slack.get("scope"), slack.get("user_scope")?.split(",").includes("channels:history")]).toEqual([
      null,
      true,
    ]);
  });

  test("is for those who may write, and so is asking; others do not see the flow", async () => {
    const { state } = await start();
    expect((await startRaw({ data_source_type: "drive" }, { as: "reader" })).status).toBe(403);
    expect((await startRaw({ data_source_type: "drive" }, { as: "nobody" })).status).toBe(401);
    expect(await statusOf(state, "reader")).toBe(403);
    expect(await statusOf(state, "bob")).toBe(404);
    expect(await statusOf("nonsense")).toBe(404);
    expect(await statusOf(`${state}%00`)).toBe(404);
  });

  test("with an address that the provider does not know is refused there, and no code comes back", async () => {
    const { authorize_url: address } = await start();
    const changed = address.replace(/redirect_uri=[^&]+/, "redirect_uri=https%3A%2F%2Fevil.test%2Fcb");
    await expect(browser.walk(changed, "https://evil.test")).rejects.toThrow(/redirect_uri/);
  });
});

test("nothing that was said or stored holds a secret, a code or a token", async () => {
  const started = await start();
  const callback = await granted(started);
  const { message } = messageIn(await open(callback));
  const { value } = await credentials.reveal(String(message["credential_id"]), ADMIN);
  if (value.kind !== "oauth2") throw new Error("another kind");
  const code = new URL(callback).searchParams.get("code") ?? "";
  const canaries = ["canary", code, value.access_token, value.refresh_token ?? ""];
  expect(canaries.map(({ length }) => length > 5)).toEqual([true, true, true, true]);
  const tables = await access.records.rows("SELECT name FROM sqlite_master WHERE type = 'table'");
  const stored = await Promise.all(tables.map(({ name }) => access.records.rows(`SELECT * FROM "${String(name)}"`)));
  expect(tables.map(({ name }) => name)).toContain("oauth_flows");
  const all = [...said, JSON.stringify(stored), await metrics.registry.metrics()].join("\n");
  const encoded = (text: string) => [text, encodeURIComponent(text), Buffer.from(text).toString("base64").slice(0, -4)];
  // The question's form carries the code on, to the browser that brought it.
  const elsewhere = all.replaceAll(/<input type="hidden" name="code" value="[^"]*">/g, "");
  expect(canaries.flatMap(encoded).filter((text) => elsewhere.includes(text))).toEqual([]);
  expect(said.join("").length).toBeGreaterThan(10_000);
});
