import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PRESET_PROVIDERS } from "./option-kinds.ts";
import { ManualClock } from "../../core/clock.ts";
import { ProviderDirectory } from "./directory.ts";
import { appsOf, providersOf } from "./presets.ts";
import { askForDevice, authorizationUrl, beginDevice, exchangeCode } from "./token-client.ts";

/** What operators describe, and what the presets are sent and answer, from a server that says what it is told to. */
let server: Server;
let url: string;
let answer: { status: number; body: unknown } = { status: 200, body: {} };
let asked: Record<string, string>;

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      asked = Object.fromEntries(new URLSearchParams(body));
      response.writeHead(answer.status, { "Content-Type": "application/json" }).end(JSON.stringify(answer.body));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => server.close());

const clock = new ManualClock();
const APP = { client_id: "an-app", client_secret: "a-secret" };

function directory(settings: Parameters<typeof providersOf>[0]): ProviderDirectory {
  return new ProviderDirectory({ providers: providersOf(settings), apps: appsOf(settings), clock });
}

const here = () => ({ token_url: `${url}/token`, device_authorization_url: `${url}/device` });

test.each(PRESET_PROVIDERS)("%s needs no more than an app, and is asked over https", async (name) => {
  const { provider, app } = await directory({ [name]: APP }).client(name);
  expect(app).toEqual({ clientId: "an-app", clientSecret: "a-secret" });
  const { authorizationEndpoint, tokenEndpoint, deviceAuthorizationEndpoint = tokenEndpoint } = provider;
  for (const address of [authorizationEndpoint, tokenEndpoint, deviceAuthorizationEndpoint]) {
    expect(new URL(address).protocol).toBe("https:");
  }
});

test("what an operator describes goes before a preset, and the rest of the preset stays", async () => {
  const ours = { ...APP, title: "Ours", scopes: ["read_repository"], parameters: { a: "b" }, pkce: false };
  const settings = {
    github: { ...ours, authorize_url: "https://git.example/authorize" },
    google: { ...APP, issuer: "https://id.example" },
  };
  const all = directory(settings);
  const { provider } = await all.client("github");
  expect(provider).toMatchObject({
    title: "Ours",
    issuer: undefined,
    authorizationEndpoint: "https://git.example/authorize",
    tokenEndpoint: "https://github.com/login/oauth/access_token",
    usualScopes: ["read_repository"],
    parameters: { a: "b" },
    pkce: false,
  });
  // Another issuer says its own endpoints; data sources read with the same scopes.
  expect(all.get("google")).toMatchObject({ issuer: "https://id.example", authorizationEndpoint: undefined });
  expect(Object.keys(all.get("google").scopes)).toContain("drive");
  expect(() => all.get("constructor")).toThrow(/no provider/);
  await expect(all.client("notion")).rejects.toMatchObject({ code: "not_configured" });
});

test("GitHub's refusals have the status 200, words of its own, and scopes with commas", async () => {
  const client = await directory({ github: { ...APP, ...here() } }).client("github");
  const answered = { code: "c", issuer: undefined };
  const flow = { redirectUri: "https://engine.test/cb?x=1", state: "s", verifier: "v".repeat(43) };
  answer = { status: 200, body: { error: "bad_verification_code", error_description: "canary" } };
  expect(await exchangeCode(client, answered, flow)).toEqual({ kind: "refused", error: "invalid_grant" });
  // Letter by letter as it was asked for, also with a query.
  expect(asked["redirect_uri"]).toBe("https://engine.test/cb?x=1");
  answer = { status: 200, body: { access_token: "a", token_type: "bearer", scope: "repo,gist" } };
  expect(await exchangeCode(client, answered, { ...flow, redirectUri: "https://engine.test" })).toMatchObject({
    kind: "tokens",
    tokens: { accessToken: "a", scope: "repo gist", expiresAtMs: undefined },
  });
  expect(asked["redirect_uri"]).toBe("https://engine.test");
  answer = { status: 200, body: { error: "authorization_pending", interval: 5 } };
  expect(await askForDevice(client, "d")).toEqual({ kind: "refused", error: "authorization_pending" });
  expect(asked).toMatchObject({ grant_type: "urn:ietf:params:oauth:grant-type:device_code", device_code: "d" });
});

test("a device flow begins with what the provider says, whichever name it has for the address", async () => {
  const client = await directory({ google: { ...APP, ...here() } }).client("google");
  const body = { device_code: "d", user_code: "U", expires_in: 1800, interval: 7 };
  const authorization = { deviceCode: "d", userCode: "U", verificationUri: "https://g.test/d", ttlMs: 1_800_000 };
  answer = { status: 200, body: { ...body, verification_url: "https://g.test/d" } };
  const begun = await beginDevice(client, ["openid", "email"]);
  expect(begun).toEqual({ kind: "begun", authorization: { ...authorization, intervalMs: 7_000 } });
  expect(asked).toMatchObject({ client_id: "an-app", scope: "openid email" });
  answer = { status: 200, body: { ...body, interval: null, verification_uri: "https://g.test/d" } };
  const silent = await beginDevice(client, []);
  expect(silent).toEqual({ kind: "begun", authorization: { ...authorization, intervalMs: undefined } });
  answer = { status: 401, body: { error: "invalid_client", error_description: "canary" } };
  expect(await beginDevice(client, [])).toEqual({ kind: "refused", error: "invalid_client" });
  answer = { status: 200, body: { user_code: "canary" } };
  const damaged = await beginDevice(client, []);
  expect(damaged.kind).toBe("unreachable");
  expect(JSON.stringify(damaged)).not.toContain("canary");
});

test("of a provider whose issuer nobody has named, `iss` is not compared", async () => {
  const ours = { ...APP, authorize_url: `${url}/authorize`, token_url: `${url}/token`, scopes: ["a", "b"] };
  const client = await directory({ ours }).client("ours");
  const flow = { redirectUri: "https://engine.test/cb", state: "s", verifier: undefined };
  expect(new URL(await authorizationUrl(client, { ...flow, scopes: ["a", "b"] })).searchParams.get("scope")).toBe(
    "a b",
  );
  answer = { status: 200, body: { access_token: "a" } };
  const outcome = await exchangeCode(client, { code: "c", issuer: "https://whoever.test" }, flow);
  expect(outcome.kind).toBe("tokens");
});
