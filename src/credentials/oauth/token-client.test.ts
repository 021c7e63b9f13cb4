import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ManualClock } from "../../core/clock.ts";
import { PROVIDER_NAMES, PROVIDERS, type ProviderName } from "./providers.ts";
import { authorizationUrl, exchangeCode, refreshTokens, type TokenClientOptions } from "./token-client.ts";

/** What each provider is sent and answers, by its documentation, from a server that says what it is told to. */
let server: Server;
let url: string;
let answer: { status: number; body: unknown } = { status: 200, body: {} };
let asked: { authorization: string | undefined; type: string | undefined; body: string };

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      const { authorization, "content-type": type } = request.headers;
      asked = { authorization, type, body };
      const text = typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body);
      response.writeHead(answer.status, { "Content-Type": "application/json", "WWW-Authenticate": "Basic" }).end(text);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
});

afterAll(() => server.close());

const clock = new ManualClock();
const APP = { clientId: "an-app.id", clientSecret: "s-e_c.r~t" };

function client(name: ProviderName): TokenClientOptions {
  return { provider: { ...PROVIDERS[name], tokenEndpoint: url }, app: APP, clock };
}

const FLOW = { redirectUri: "https://engine.test/v1/oauth/x/callback", state: "a-state", verifier: "v".repeat(43) };
const RAW_BASIC = `Basic ${Buffer.from("an-app.id:s-e_c.r~t").toString("base64")}`;

describe("a code is exchanged", () => {
  const exchange = (name: ProviderName) =>
    exchangeCode(
      client(name),
      { code: "the-code", issuer: undefined },
      { ...FLOW, verifier: PROVIDERS[name].pkce ? FLOW.verifier : undefined },
    );

  test.each(["google", "atlassian"] as const)(
    "with %s by a form that holds the secret and the verifier",
    async (name) => {
      answer = {
        status: 200,
        body: { access_token: "a", refresh_token: "r", expires_in: 3600, scope: "x y", id_token: "no" },
      };
      expect(await exchange(name)).toEqual({
        kind: "tokens",
        tokens: { accessToken: "a", refreshToken: "r", scope: "x y", expiresAtMs: clock.nowMs() + 3_600_000 },
      });
      expect(Object.fromEntries(new URLSearchParams(asked.body))).toEqual({
        grant_type: "authorization_code",
        code: "the-code",
        redirect_uri: FLOW.redirectUri,
        code_verifier: FLOW.verifier,
        client_id: APP.clientId,
        client_secret: APP.clientSecret,
      });
      expect(asked.authorization).toBeUndefined();
    },
  );

  test("with Notion by JSON, the secret in a header as it is, and nothing that it does not know", async () => {
    answer = { status: 200, body: { access_token: "a", token_type: "bearer", bot_id: "b", refresh_token: null } };
    const tokens = { accessToken: "a", refreshToken: undefined, scope: undefined, expiresAtMs: undefined };
    expect(await exchange("notion")).toEqual({ kind: "tokens", tokens });
    expect(JSON.parse(asked.body)).toEqual({
      grant_type: "authorization_code",
      code: "the-code",
      redirect_uri: FLOW.redirectUri,
    });
    expect(asked).toMatchObject({ type: "application/json", authorization: RAW_BASIC });
  });

  test("with Slack for the grant of the user, not of the bot", async () => {
    const user = {
      access_token: "xoxp",
      token_type: "user",
      scope: "a:b,c:d",
      refresh_token: "xoxe",
      expires_in: 43_200,
    };
    answer = {
      status: 200,
      body: { ok: true, access_token: "bot", token_type: "bot", authed_user: { id: "U", ...user } },
    };
    expect(await exchange("slack")).toMatchObject({
      kind: "tokens",
      tokens: { accessToken: "xoxp", refreshToken: "xoxe", scope: "a:b c:d", expiresAtMs: clock.nowMs() + 43_200_000 },
    });
    answer = { status: 200, body: { ok: false, error: "invalid_code" } };
    expect(await exchange("slack")).toEqual({ kind: "refused", error: "invalid_grant" });
    answer = { status: 200, body: { ok: false, error: "bad_client_secret" } };
    expect(await exchange("slack")).toEqual({ kind: "refused", error: "invalid_client" });
    answer = { status: 200, body: { ok: false, error: "ratelimited" } };
    expect(await exchange("slack")).toEqual({ kind: "refused", error: "ratelimited" });
  });
});

describe("a token is renewed", () => {
  test("with Slack, whose answer is then not nested", async () => {
    answer = {
      status: 200,
      body: { ok: true, access_token: "new", token_type: "user", refresh_token: "next", expires_in: 9 },
    };
    expect(await refreshTokens(client("slack"), "former")).toMatchObject({
      kind: "tokens",
      tokens: { accessToken: "new", refreshToken: "next" },
    });
    expect(new URLSearchParams(asked.body).get("refresh_token")).toBe("former");
  });

  test.each([
    ["google", 400, { error: "invalid_grant", error_description: "Token has been expired or revoked." }],
    ["notion", 400, { error: "invalid_grant" }],
    ["atlassian", 403, { error: "invalid_grant", error_description: "Unknown or invalid refresh token." }],
    ["atlassian", 403, { error: "unauthorized_client", error_description: "refresh_token is invalid" }],
    ["slack", 200, { ok: false, error: "invalid_refresh_token" }],
  ] as const)("and %s says with %i that the grant has ended", async (name, status, body) => {
    answer = { status, body };
    expect(await refreshTokens(client(name), "former")).toEqual({ kind: "refused", error: "invalid_grant" });
  });

  test.each([
    [503, { error: "invalid_grant" }],
    [200, { refresh_token: "r" }],
    [200, { access_token: "" }],
    [200, { access_token: 1 }],
    [200, { access_token: "a", expires_in: "soon" }],
    [200, { access_token: "a", token_type: "mac" }],
    [200, ["canary"]],
    [200, "canary {"],
    [429, { message: "canary" }],
  ])("but an answer of %i %j says nothing about the grant", async (status, body) => {
    answer = { status, body };
    const outcome = await refreshTokens(client("google"), "former");
    expect(outcome).toMatchObject({ kind: "unreachable", reason: expect.any(String) as string });
    expect(JSON.stringify(outcome)).not.toContain("canary");
  });

  test("for ten years at most, whatever the provider says", async () => {
    answer = { status: 200, body: { access_token: "a", expires_in: 1e300 } };
    const outcome = await refreshTokens(client("google"), "former");
    expect(outcome).toMatchObject({ tokens: { expiresAtMs: clock.nowMs() + 10 * 365 * 86_400_000 } });
  });

  test("or not, when nobody answers in time", async () => {
    const silent = createServer(() => undefined).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const address = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/token`;
    const slow = { ...client("google"), provider: { ...PROVIDERS.google, tokenEndpoint: address } };
    const outcome = refreshTokens(slow, "former");
    await once(silent, "request");
    clock.advance(10_000);
    expect(await outcome).toMatchObject({ kind: "unreachable", reason: expect.stringContaining("10000 ms") as string });
    silent.closeAllConnections();
    silent.close();
  });
});

test.each(PROVIDER_NAMES)("%s is asked over https for what its kinds of data sources read", async (name) => {
  const provider = PROVIDERS[name];
  for (const address of [provider.issuer ?? "", provider.authorizationEndpoint, provider.tokenEndpoint]) {
    expect(new URL(address).protocol).toBe("https:");
  }
  for (const scopes of Object.values(provider.scopes)) {
    const address = new URL(
      await authorizationUrl({ provider, app: APP, clock }, { ...FLOW, verifier: undefined, scopes }),
    );
    const { scopeStyle } = provider;
    const sent =
      scopeStyle === undefined ? [] : address.searchParams.get(scopeStyle.parameter)?.split(scopeStyle.separator);
    expect(sent).toEqual(scopes);
    expect(address.href).not.toContain(APP.clientSecret);
  }
});
