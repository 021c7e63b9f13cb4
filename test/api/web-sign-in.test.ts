import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startIssuer } from "../../src/auth/jwt/issuer.test-kit.ts";
import { PUBLIC_KEY, startHostedIdp, type HostedIdp } from "../../src/auth/web/hosted-idp.test-kit.ts";
import { startWebIssuer, WEB_CLIENT, type WebIssuer } from "../../src/auth/web/web-issuer.test-kit.ts";
import { TestBrowser } from "../../src/credentials/oauth/provider.test-kit.ts";
import { freePort } from "../../src/core/waiting.test-kit.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { ask, OWN_PAGE, setCookies, SignedIn, signInWith, type WebReply } from "./web.test-kit.ts";

const CALLBACK = "/v1/auth/web/callback";
const KEY = Buffer.alloc(32, 7).toString("base64");

type Running = { engine: Engine; home: string; stop: () => Promise<void> };

async function start(port: number, env: Record<string, string>): Promise<Running> {
  const { home, remove } = await temporaryHome();
  const engine = await startEngine({ home, port, env });
  const stop = async () => {
    await engine.stop();
    await remove();
  };
  return { engine, home, stop };
}

/** What a server tells a browser that comes back: where to go next, and its cookies. */
type Landing = { place: string; cookies: string[]; reply: WebReply };

/** A browser at a server: it goes to an issuer, and comes back with what the issuer says. */
class Visit {
  readonly browser = new TestBrowser();
  readonly #engine: Engine;
  readonly #from: string;

  constructor(engine: Engine, from = "127.0.0.1") {
    this.#engine = engine;
    this.#from = from;
  }

  /** Begins; resolves to where the server sends the browser. */
  async begin(provider: string, more = ""): Promise<string> {
    const query = `provider=${encodeURIComponent(provider)}${more}`;
    const response = await this.browser.open(`${this.#engine.url}/v1/auth/web/start?${query}`);
    const location = response.headers.get("location");
    const isRedirect = response.status === 302 && response.headers.get("cache-control") === "no-store";
    if (!isRedirect || location === null) throw new Error(`no redirect: ${response.status} ${await response.text()}`);
    return location;
  }

  /** Signs in at the issuer; resolves to the address that it sends the browser back to. */
  atIssuer(location: string): Promise<string> {
    return this.browser.walk(location, `${this.#engine.url}${CALLBACK}`);
  }

  /** Opens that address, as after a redirect from another site. */
  async land(address: string, cookie = this.browser.cookies(this.#engine.url)): Promise<Landing> {
    const { pathname, search } = new URL(address);
    const headers = { "sec-fetch-site": "cross-site", cookie };
    const reply = await ask(this.#engine.url, "GET", pathname + search, { headers, from: this.#from });
    return { place: String(reply.headers["location"]), cookies: setCookies(reply.headers), reply };
  }

  async signIn(provider: string, more = ""): Promise<Landing> {
    return await this.land(await this.atIssuer(await this.begin(provider, more)));
  }
}

function signedIn(engine: Engine, { cookies }: Landing): SignedIn {
  const cookie = cookies.find((text) => text.startsWith("engine_session_"))?.split(";")[0];
  if (cookie === undefined) throw new Error(`no session among ${JSON.stringify(cookies)}`);
  return new SignedIn(engine.url, cookie);
}

const statusOf = async (browser: SignedIn) => (await browser.ask("GET", "/v1/auth/me")).status;

/** Lets the issuer's last word be so many hours old: as if nobody had asked since. */
function age(home: string, hours: number): void {
  const db = new DatabaseSync(join(home, "catalog.db"));
  db.exec("PRAGMA busy_timeout = 5000");
  db.prepare("UPDATE web_sessions SET asked_at_ms = asked_at_ms - ?, asking_until_ms = NULL").run(hours * 3_600_000);
  db.close();
}

describe("a server whose browsers sign in with an OIDC issuer", () => {
  let issuer: WebIssuer;
  let running: Running;
  let engine: Engine;

  beforeAll(async () => {
    const port = await freePort();
    issuer = await startWebIssuer([`http://127.0.0.1:${port}${CALLBACK}`, `https://engine.example${CALLBACK}`]);
    running = await start(port, {
      ENGINE_AUTH_BACKEND: "oidc",
      ENGINE_OIDC_ISSUERS: `${issuer.issuer},https://unreachable.invalid/realms/b`,
      ENGINE_OIDC_WEB_CLIENT_ID: WEB_CLIENT.id,
      ENGINE_OIDC_WEB_CLIENT_SECRET: WEB_CLIENT.secret,
      ENGINE_SECRET_KEY: KEY,
    });
    engine = running.engine;
  });
  afterAll(async () => {
    await running.stop();
    await issuer.stop();
  });
  beforeEach(() => {
    issuer.account = "ann";
    issuer.claims = { engine_role: "write" };
    issuer.givesRefreshTokens = true;
    issuer.closed.clear();
    issuer.tokenRequests.length = 0;
  });
  afterEach(() => {
    issuer.answerTokensWith = undefined;
  });

  test("has a button for each issuer", async () => {
    const { json } = await ask(engine.url, "GET", "/v1/auth/config");
    expect(json["ways"]).toEqual([
      { provider: issuer.issuer, title: issuer.issuer.replace("http://", "") },
      { provider: "https://unreachable.invalid/realms/b", title: "unreachable.invalid/realms/b" },
    ]);
  });

  test("sends the browser there with PKCE, state and nonce, and nothing that a page could use", async () => {
    const visit = new Visit(engine);
    const location = new URL(await visit.begin(issuer.issuer, "&return_to=/ui/tables?x=1"));
    const asked = Object.fromEntries(location.searchParams);
    expect(asked).toMatchObject({
      client_id: WEB_CLIENT.id,
      response_type: "code",
      redirect_uri: `${engine.url}${CALLBACK}`,
      scope: "openid profile email offline_access",
      code_challenge_method: "S256",
    });
    const secrets = [asked["state"], asked["nonce"], asked["code_challenge"]];
    expect(secrets.every((secret) => /^[\w-]{43}$/.test(secret ?? ""))).toBe(true);
    expect(new Set(secrets).size).toBe(3);
    const response = await fetch(`${engine.url}/v1/auth/web/start?provider=${encodeURIComponent(issuer.issuer)}`, {
      redirect: "manual",
    });
    expect(response.headers.getSetCookie()).toEqual([
      expect.stringMatching(
        /^engine_sign_in_[0-9a-f]{16}=[\w-]+; Path=\/v1\/auth\/web\/callback; HttpOnly; SameSite=Lax; Max-Age=600$/,
      ),
    ]);
  });

  test("signs in who comes back, as the issuer says, and shows no token to anybody", async () => {
    const landing = await new Visit(engine).signIn(issuer.issuer, "&return_to=%2Fui%2Ftables%3Fx%3D1%23y");
    expect(landing.place).toBe("/ui/tables?x=1#y");
    expect(landing.reply.status).toBe(302);
    expect(landing.reply.headers["cache-control"]).toBe("no-store");
    expect(landing.cookies).toHaveLength(2);
    expect(landing.cookies[0]).toMatch(/^engine_session_\d+=engine_ws_\w+; Path=\/; HttpOnly; SameSite=Strict; /);
    expect(landing.cookies[1]).toMatch(/^engine_sign_in_[0-9a-f]{16}=; .*Max-Age=0$/);
    const browser = signedIn(engine, landing);
    const { json } = await browser.ask("GET", "/v1/auth/me");
    expect(json).toEqual({ subject: `${issuer.issuer}#ann`, kind: "oidc", role: "write", databases: null });
    const { json: listed } = await browser.ask("GET", "/v1/auth/sessions");
    expect(listed["sessions"]).toEqual([
      expect.objectContaining({ signed_in_with: "issuer", ends_at: null, current: true }),
    ]);
    // The session's own secret is random, and may have any letters.
    const said = JSON.stringify(landing).replaceAll(/engine_ws_\w+/g, "") + engine.log();
    expect(said).not.toMatch(/eyJ|canary/);
    expect(issuer.tokenRequests.map((body) => body.get("grant_type"))).toEqual(["authorization_code"]);
    expect(issuer.tokenRequests[0]?.get("code_verifier")).toMatch(/^[\w-]{43}$/);
  });

  test("keeps refresh tokens sealed, and of the cookie a hash", async () => {
    const landing = await new Visit(engine).signIn(issuer.issuer);
    const db = new DatabaseSync(join(running.home, "catalog.db"), { readOnly: true });
    const rows = JSON.stringify(db.prepare("SELECT * FROM web_sessions").all());
    db.close();
    expect(rows).toContain("sealed_value");
    expect(rows).not.toContain(signedIn(engine, landing).cookie.split("=")[1]);
    // Those of oidc-provider are 43 characters, and the row has none of that length but base64 of what is sealed.
    age(running.home, 2);
    const before = issuer.tokenRequests.length;
    await signedIn(engine, landing).ask("GET", "/v1/auth/me");
    const refreshToken = issuer.tokenRequests.slice(before).at(-1)?.get("refresh_token");
    expect(refreshToken).toMatch(/^[\w-]{20,}$/);
    expect(rows).not.toContain(refreshToken);
  });

  test("asks hourly, once for all requests: rights that changed change, and an account that was closed ends", async () => {
    const browser = signedIn(engine, await new Visit(engine).signIn(issuer.issuer));
    issuer.claims = { engine_role: "read", engine_databases: ["logs"] };
    expect((await browser.ask("GET", "/v1/auth/me")).json["role"]).toBe("write");
    age(running.home, 1.1);
    issuer.tokenRequests.length = 0;
    const replies = await Promise.all(Array.from({ length: 8 }, () => browser.ask("GET", "/v1/auth/me")));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    expect(issuer.tokenRequests.map((body) => body.get("grant_type"))).toEqual(["refresh_token"]);
    expect((await browser.ask("GET", "/v1/auth/me")).json).toMatchObject({ role: "read", databases: ["logs"] });
    // With the refresh token that came with the last one.
    age(running.home, 1.1);
    expect(await statusOf(browser)).toBe(200);
    issuer.claims = { engine_role: "guest" };
    age(running.home, 1.1);
    expect(await statusOf(browser)).toBe(403);
    issuer.claims = { engine_role: "read" };
    age(running.home, 1.1);
    expect(await statusOf(browser)).toBe(200);
    issuer.closed.add("ann");
    age(running.home, 1.1);
    expect(await statusOf(browser)).toBe(401);
    issuer.closed.clear();
    expect(await statusOf(browser)).toBe(401);
  });

  test("goes by the issuer's last word while it does not answer, for a day", async () => {
    const browser = signedIn(engine, await new Visit(engine).signIn(issuer.issuer));
    const broken = [
      (status: number, body: string) =>
        (issuer.answerTokensWith = (response) => void response.writeHead(status).end(body)),
    ];
    const [answer] = broken;
    for (const [status, body] of [
      [503, "busy"],
      [200, "<html>"],
      [400, '{"error":"temporarily_unavailable"}'],
      [401, '{"error":"invalid_client"}'],
    ] as const) {
      answer?.(status, body);
      age(running.home, 1.1);
      expect([body, await statusOf(browser)]).toEqual([body, 200]);
    }
    age(running.home, 24);
    const late = await browser.ask("GET", "/v1/auth/me");
    expect([late.status, late.code, late.headers["retry-after"]]).toEqual([503, "unavailable", "60"]);
    issuer.answerTokensWith = undefined;
    age(running.home, 0);
    expect(await statusOf(browser)).toBe(200);
  });

  test("ends after eight hours where the issuer gives no refresh token", async () => {
    issuer.givesRefreshTokens = false;
    const browser = signedIn(engine, await new Visit(engine).signIn(issuer.issuer));
    const { json } = await browser.ask("GET", "/v1/auth/sessions");
    const sessions = json["sessions"] as { current: boolean; ends_at: string | null }[];
    const session = sessions.find(({ current }) => current);
    const lastsMs = Date.parse(session?.ends_at ?? "") - Date.now();
    expect(lastsMs).toBeGreaterThan(7.9 * 3_600_000);
    expect(lastsMs).toBeLessThanOrEqual(8 * 3_600_000);
  });

  test("ends the session that the browser had, though its cookie does not come back from the issuer", async () => {
    const first = signedIn(engine, await new Visit(engine).signIn(issuer.issuer));
    const visit = new Visit(engine);
    const query = `provider=${encodeURIComponent(issuer.issuer)}`;
    const response = await visit.browser.open(`${engine.url}/v1/auth/web/start?${query}`, {
      headers: { Cookie: first.cookie },
    });
    const address = await visit.atIssuer(response.headers.get("location") ?? "");
    const second = signedIn(engine, await visit.land(address));
    expect([await statusOf(first), await statusOf(second)]).toEqual([401, 200]);
  });

  test("refuses an answer in another browser, one that comes twice, and one for another sign-in", async () => {
    const visit = new Visit(engine, "127.0.9.1");
    const address = await visit.atIssuer(await visit.begin(issuer.issuer));
    const nobody = await visit.land(address, "");
    expect([nobody.place, nobody.cookies]).toEqual(["/ui/sign-in?error=state_mismatch", []]);
    // Somebody who began as well, and is brought to open the answer of another one.
    const other = new Visit(engine, "127.0.9.1");
    const othersAddress = await other.atIssuer(await other.begin(issuer.issuer));
    expect((await other.land(address)).place).toBe("/ui/sign-in?error=state_mismatch");
    const mixed = new URL(address);
    mixed.searchParams.set("code", new URL(othersAddress).searchParams.get("code") ?? "");
    const injected = await visit.land(mixed.href);
    // The code is of another verifier.
    expect(injected.place).toBe("/ui/sign-in?error=provider_refused");
    expect(injected.cookies).toEqual([expect.stringContaining("Max-Age=0")]);
    expect((await visit.land(address)).place).toBe("/ui/");
    expect((await visit.land(address)).place).toBe("/ui/sign-in?error=provider_refused");
    expect((await visit.land(`${engine.url}${CALLBACK}`)).place).toBe("/ui/sign-in?error=state_mismatch");
  });

  test("refuses an answer that another issuer gives, and a no of this one", async () => {
    const visit = new Visit(engine, "127.0.9.2");
    const address = new URL(await visit.atIssuer(await visit.begin(issuer.issuer)));
    expect(address.searchParams.get("iss")).toBe(issuer.issuer);
    address.searchParams.set("iss", "https://evil.example");
    expect((await visit.land(address.href)).place).toBe("/ui/sign-in?error=invalid_token");
    const denied = new Visit(engine, "127.0.9.2");
    const { searchParams } = new URL(await denied.begin(issuer.issuer));
    const no = `${engine.url}${CALLBACK}?error=access_denied&error_description=%3Cb%3E&state=${searchParams.get("state")}`;
    expect((await denied.land(no)).place).toBe("/ui/sign-in?error=access_denied");
  });

  test("refuses who has no role here, and says it to nobody but the page", async () => {
    issuer.claims = { engine_role: "guest" };
    const visit = new Visit(engine, "127.0.9.3");
    const landing = await visit.signIn(issuer.issuer);
    expect([landing.place, landing.cookies.length]).toEqual(["/ui/sign-in?error=forbidden", 1]);
  });

  test("refuses an ID token that is for another sign-in, or of another key", async () => {
    const [header, signature] = ["e30", "AAAA"];
    const payload = Buffer.from(
      JSON.stringify({
        iss: issuer.issuer,
        aud: WEB_CLIENT.id,
        sub: "mallory",
        engine_role: "admin",
        iat: Math.floor(Date.now() / 1_000),
        exp: Math.floor(Date.now() / 1_000) + 600,
      }),
    ).toString("base64url");
    for (const head of [
      header,
      Buffer.from('{"alg":"none"}').toString("base64url"),
      Buffer.from('{"alg":"RS256"}').toString("base64url"),
    ]) {
      issuer.answerTokensWith = (response) => {
        const token = `${head}.${payload}.${signature}`;
        const body = { access_token: "x", token_type: "bearer", id_token: token };
        response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(body));
      };
      const landing = await new Visit(engine, "127.0.9.4").signIn(issuer.issuer);
      expect(landing.place).toBe("/ui/sign-in?error=invalid_token");
      expect(landing.cookies).toEqual([expect.stringContaining("Max-Age=0")]);
    }
  });

  test("makes those wait who fail too often", async () => {
    const places: string[] = [];
    for (let i = 0; i < 12; i++) {
      const visit = new Visit(engine, "127.0.9.5");
      const { searchParams } = new URL(await visit.begin(issuer.issuer));
      const made = `${engine.url}${CALLBACK}?code=made-up-${i}&iss=${encodeURIComponent(issuer.issuer)}&state=${searchParams.get("state")}`;
      places.push((await visit.land(made)).place);
    }
    expect(places.slice(0, 9)).toEqual(Array.from({ length: 9 }, () => "/ui/sign-in?error=provider_refused"));
    expect(places.at(-1)).toBe("/ui/sign-in?error=too_many_requests");
  });

  test("leads to places of its own alone", async () => {
    const elsewhere = [
      "//evil.example",
      "/\\evil.example",
      "https://evil.example",
      "/ui/../..//evil.example",
      "/ui/../v1/auth/me",
      "/ui/%2e%2e/%2e%2e/x",
      "/ui/..%2f..%2fx",
      "/ui/%5c%5cevil.example",
      "/ui//evil.example",
      "/ui",
      "/uix/",
      "ui/x",
      "javascript:alert(1)",
      "/ui/\r\nSet-Cookie: a=b",
      "/ui/%0d%0aSet-Cookie:a=b",
      "/ui/\u0000",
      "/ui/\u00e9",
      "",
      " /ui/",
      `/ui/${"x".repeat(1_000)}`,
      "\\/ui/",
      "/ui\\..\\..\\evil",
      "/ui/\t/evil.example",
      "/v1/auth/web/start",
    ];
    for (const place of elsewhere) {
      const location = await new Visit(engine).begin(issuer.issuer, `&return_to=${encodeURIComponent(place)}`);
      expect([place, location]).toEqual([place, "/ui/sign-in?error=invalid_return_to"]);
    }
    // One that somebody has put into the browser's own cookie.
    const visit = new Visit(engine);
    const address = await visit.atIssuer(await visit.begin(issuer.issuer));
    const [name = "", value = ""] = visit.browser.cookies(engine.url).split("=");
    const flow = JSON.parse(Buffer.from(value, "base64url").toString()) as Record<string, string>;
    const forged = Buffer.from(JSON.stringify({ ...flow, returnTo: "//evil.example" })).toString("base64url");
    expect((await visit.land(address, `${name}=${forged}`)).place).toBe("/ui/");
  });

  test("says so where it does not know the way, and where the issuer does not say", async () => {
    expect(await new Visit(engine).begin("nobody")).toBe("/ui/sign-in?error=unknown_provider");
    expect(await new Visit(engine).begin("https://unreachable.invalid/realms/b")).toBe(
      "/ui/sign-in?error=provider_unreachable",
    );
    const query = `provider=${encodeURIComponent(issuer.issuer)}`;
    for (const path of [`/v1/auth/web/start?${query}`, `${CALLBACK}?code=a&state=b`]) {
      const head = await ask(engine.url, "HEAD", path);
      expect([path, head.status, setCookies(head.headers)]).toEqual([path, 405, []]);
    }
  });

  test("refuses an ID token of the right key that is for another sign-in", async () => {
    for (const name of ["nonce", "verifier"]) {
      const visit = new Visit(engine, "127.0.9.6");
      const address = await visit.atIssuer(await visit.begin(issuer.issuer));
      const [cookie = "", value = ""] = visit.browser.cookies(engine.url).split("=");
      const flow = JSON.parse(Buffer.from(value, "base64url").toString()) as Record<string, string>;
      const forged = Buffer.from(JSON.stringify({ ...flow, [name]: "x".repeat(43) })).toString("base64url");
      const landing = await visit.land(address, `${cookie}=${forged}`);
      expect([name, landing.place]).toEqual([
        name,
        `/ui/sign-in?error=${name === "nonce" ? "invalid_token" : "provider_refused"}`,
      ]);
      expect(landing.cookies).toEqual([expect.stringContaining("Max-Age=0")]);
    }
  });
});

describe("a token of an issuer that somebody brings along", () => {
  test("signs a browser in for as long as it lasts", async () => {
    const issuer = await startIssuer();
    const { engine, stop } = await start(await freePort(), {
      ENGINE_AUTH_BACKEND: "oidc",
      ENGINE_OIDC_ISSUERS: issuer.issuer,
    });
    const exp = Math.floor(Date.now() / 1_000) + 4;
    const claims = { iss: issuer.issuer, aud: "engine", sub: "ann", engine_role: "write", engine_databases: ["logs"] };
    const browser = await signInWith(engine.url, "token", { token: await issuer.sign({ ...claims, exp }) });
    expect((await browser.ask("GET", "/v1/auth/me")).json).toEqual({
      subject: `${issuer.issuer}#ann`,
      kind: "oidc",
      role: "write",
      databases: ["logs"],
    });
    const { json } = await browser.ask("GET", "/v1/auth/sessions");
    expect(json["sessions"]).toEqual([expect.objectContaining({ ends_at: new Date(exp * 1_000).toISOString() })]);
    await expect.poll(() => statusOf(browser), { timeout: 15_000, interval: 300 }).toBe(401);
    for (const token of ["a.b.c", await issuer.sign({ ...claims, exp: exp - 100 })]) {
      const sent = { headers: OWN_PAGE, body: { token } };
      expect((await ask(engine.url, "POST", "/v1/auth/web/token", sent)).status).toBe(401);
    }
    const nobody = {
      headers: OWN_PAGE,
      body: { token: await issuer.sign({ ...claims, exp: exp + 600, engine_role: "guest" }) },
    };
    expect((await ask(engine.url, "POST", "/v1/auth/web/token", nobody)).status).toBe(403);
    await stop();
    await issuer.stop();
  });
});

describe("a server behind a proxy that ends TLS, without a secret key", () => {
  test("goes by the address that the operator has named", async () => {
    const port = await freePort();
    const issuer = await startWebIssuer([`https://engine.example${CALLBACK}`]);
    const { engine, stop } = await start(port, {
      ENGINE_AUTH_BACKEND: "oidc",
      ENGINE_OIDC_ISSUERS: issuer.issuer,
      ENGINE_OIDC_AUDIENCE: WEB_CLIENT.id,
      ENGINE_OIDC_WEB_CLIENT_SECRET: WEB_CLIENT.secret,
      ENGINE_OIDC_WEB_SCOPES: "offline_access",
      ENGINE_OAUTH_REDIRECT_BASE: "https://engine.example",
    });
    const proxied = { "x-forwarded-proto": "https", host: "engine.example" };
    const path = `/v1/auth/web/start?provider=${encodeURIComponent(issuer.issuer)}`;
    const begun = await ask(engine.url, "GET", path, { headers: proxied });
    const location = new URL(String(begun.headers["location"]));
    expect(location.searchParams.get("redirect_uri")).toBe(`https://engine.example${CALLBACK}`);
    expect(location.searchParams.get("scope")).toBe("openid offline_access");
    const [flow = ""] = setCookies(begun.headers);
    expect(flow).toMatch(/^__Host-engine_sign_in_\w+=[\w-]+; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=600$/);
    const back = new URL(await new TestBrowser().walk(location.href, "https://engine.example"));
    const headers = { ...proxied, cookie: flow.split(";")[0] ?? "" };
    const landed = await ask(engine.url, "GET", back.pathname + back.search, { headers });
    const [cookie = ""] = setCookies(landed.headers);
    expect(cookie).toMatch(/^engine_session_443=engine_ws_\w+; Path=\/; Secure; HttpOnly; SameSite=Strict; /);
    const browser = new SignedIn(engine.url, cookie.split(";")[0] ?? "", proxied);
    const { json } = await browser.ask("GET", "/v1/auth/sessions");
    const [session] = json["sessions"] as { ends_at: string | null }[];
    expect(Date.parse(session?.ends_at ?? "")).toBeLessThanOrEqual(Date.now() + 8 * 3_600_000);
    // Over TLS a page without it is nobody's.
    const plain = { headers: { ...proxied, cookie: browser.cookie, origin: "http://engine.example" } };
    expect((await ask(engine.url, "GET", "/v1/auth/me", plain)).status).toBe(401);
    await stop();
    await issuer.stop();
  });
});

describe("a server whose browsers sign in with a hosted identity provider", () => {
  let idp: HostedIdp;
  let running: Running;
  let engine: Engine;

  beforeAll(async () => {
    idp = await startHostedIdp();
    running = await start(await freePort(), {
      ENGINE_AUTH_BACKEND: "idp",
      ENGINE_IDP_URL: idp.url,
      ENGINE_IDP_ANON_KEY: PUBLIC_KEY,
      ENGINE_IDP_PROVIDERS: "google,github",
      ENGINE_SECRET_KEY: KEY,
    });
    engine = running.engine;
  });
  afterAll(async () => {
    await running.stop();
    await idp.stop();
  });

  test("has a button for each of its providers", async () => {
    const { json } = await ask(engine.url, "GET", "/v1/auth/config");
    expect(json["ways"]).toEqual(["google", "github"].map((provider) => ({ provider, title: provider })));
  });

  test("signs in who comes back, as a user of the catalog", async () => {
    const landing = await new Visit(engine).signIn("github", "&return_to=/ui/sql");
    expect(landing.place).toBe("/ui/sql");
    expect(idp.chosen).toEqual(["github"]);
    expect(idp.keys).toEqual([PUBLIC_KEY]);
    const browser = signedIn(engine, landing);
    expect((await browser.ask("GET", "/v1/auth/me")).json).toMatchObject({
      subject: "ann@x.example",
      kind: "idp",
      role: "read",
    });
    expect(
      (await browser.ask("PUT", "/v1/auth/password", { body: { current_password: "a", new_password: "a password" } }))
        .status,
    ).toBe(409);
    const db = new DatabaseSync(join(running.home, "catalog.db"), { readOnly: true });
    expect(JSON.stringify(db.prepare("SELECT * FROM web_sessions").all())).not.toMatch(/eyJ|favourite|provider_token/);
    db.close();
    expect(engine.log()).not.toMatch(/eyJ/);
  });

  test("refuses a code of somebody else's sign-in", async () => {
    const [one, other] = [new Visit(engine, "127.0.9.7"), new Visit(engine, "127.0.9.7")];
    const address = new URL(await one.atIssuer(await one.begin("google")));
    const others = new URL(await other.atIssuer(await other.begin("google")));
    address.searchParams.set("code", others.searchParams.get("code") ?? "");
    expect((await one.land(address.href)).place).toBe("/ui/sign-in?error=provider_refused");
    expect((await other.land(others.href, "")).place).toBe("/ui/sign-in?error=state_mismatch");
  });

  test("asks hourly, and ends with the account", async () => {
    const browser = signedIn(engine, await new Visit(engine).signIn("google"));
    idp.account = { ...idp.account, role: "admin" };
    expect((await browser.ask("GET", "/v1/admin/users")).status).toBe(403);
    age(running.home, 1.1);
    expect((await browser.ask("GET", "/v1/admin/users")).status).toBe(200);
    idp.closed.add(idp.account.id);
    age(running.home, 1.1);
    expect(await statusOf(browser)).toBe(401);
    const db = new DatabaseSync(join(running.home, "catalog.db"), { readOnly: true });
    const entries = db
      .prepare("SELECT action, target, outcome, details FROM audit_log WHERE action = 'auth.session_end'")
      .all();
    db.close();
    expect(entries).toEqual([
      expect.objectContaining({
        target: "ann@x.example",
        outcome: "refused",
        details: expect.stringContaining("refresh_token_not_found"),
      }),
    ]);
  });
});
