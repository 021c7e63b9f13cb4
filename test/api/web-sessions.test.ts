import { WebSocket } from "ws";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { ask, cookieOf, OWN_PAGE, setCookies, SignedIn, signInWith, type WebReply } from "./web.test-kit.ts";

const ROOT = { username: "root", password: "correct horse" };
const STATIC = "a-key-of-the-configuration";

let engine: Engine;
let removeHome: () => Promise<void>;

beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({
    home,
    env: {
      ENGINE_AUTH_BACKEND: "session",
      ENGINE_ADMIN_USER: ROOT.username,
      ENGINE_ADMIN_PASSWORD: ROOT.password,
      ENGINE_SECURITY_API_KEYS: `ci:write:${STATIC}`,
      ENGINE_INTERNAL_BEARER: "token-of-the-engine-itself",
    },
  });
});
afterAll(async () => {
  await engine.stop();
  await removeHome();
});

const root = () => signInWith(engine.url, "login", ROOT);
const me = (cookie: string, headers: Record<string, string>) =>
  ask(engine.url, "GET", "/v1/auth/me", { headers: { cookie, ...headers } });
const port = () => new URL(engine.url).port;

async function bearer(username: string, password: string): Promise<string> {
  const { json } = await ask(engine.url, "POST", "/v1/auth/login", { body: { username, password } });
  return String(json["access_token"]);
}

async function newUser(role = "read"): Promise<{ username: string; password: string }> {
  const user = { username: `u${Math.random().toString(36).slice(2)}`, password: "a password" };
  const made = await (await root()).ask("POST", "/v1/admin/users", { body: { ...user, role } });
  expect(made.status).toBe(200);
  return user;
}

async function audit(action: string): Promise<Record<string, unknown>[]> {
  const { json } = await (await root()).ask("GET", `/v1/admin/audit?action=${action}&limit=50`);
  return json["entries"] as Record<string, unknown>[];
}

describe("signing in with a password", () => {
  test("gives a cookie that no script reads and no other site sends, and no token", async () => {
    const reply = await ask(engine.url, "POST", "/v1/auth/web/login", { headers: OWN_PAGE, body: ROOT });
    expect(reply.json).toEqual({ subject: "root", kind: "session", role: "admin", databases: null });
    const [cookie = "", ...others] = setCookies(reply.headers);
    expect(others).toEqual([]);
    const name = `engine_session_${port()}`;
    expect(cookie).toMatch(
      new RegExp(`^${name}=engine_ws_[0-9A-Za-z]{49}; Path=/; HttpOnly; SameSite=Strict; Max-Age=34560000$`),
    );
    expect(reply.text).not.toContain("engine_ws_");
    expect(reply.headers["cache-control"]).toBe("no-store");
    expect(reply.headers["vary"]).toContain("Cookie");
  });

  test("says that it goes over TLS alone where it came by TLS", async () => {
    const headers = { ...OWN_PAGE, "x-forwarded-proto": "https" };
    const reply = await ask(engine.url, "POST", "/v1/auth/web/login", { headers, body: ROOT });
    expect(setCookies(reply.headers)[0]).toContain("; Secure; HttpOnly");
  });

  test("makes a cookie anew each time, and ends the session of the old one", async () => {
    const first = await root();
    const again = await first.ask("POST", "/v1/auth/web/login", { body: ROOT });
    const second = new SignedIn(engine.url, cookieOf(again));
    expect(second.cookie).not.toBe(first.cookie);
    expect((await first.ask("GET", "/v1/auth/me")).status).toBe(401);
    expect((await second.ask("GET", "/v1/auth/me")).status).toBe(200);
    // A cookie that somebody else has chosen is no session, before and after.
    const chosen = `engine_session_${port()}=engine_ws_chosen`;
    const reply = await ask(engine.url, "POST", "/v1/auth/web/login", {
      headers: { ...OWN_PAGE, cookie: chosen },
      body: ROOT,
    });
    expect(cookieOf(reply)).not.toBe(chosen);
    expect((await me(chosen, OWN_PAGE)).status).toBe(401);
  });

  test("refuses a wrong one, and too many of them", async () => {
    const { username, password } = await newUser();
    const statuses: number[] = [];
    const from = "127.0.8.1";
    for (let i = 0; i < 12; i++) {
      const body = { username, password: `wrong ${i}` };
      statuses.push((await ask(engine.url, "POST", "/v1/auth/web/login", { headers: OWN_PAGE, body, from })).status);
    }
    expect(statuses.slice(0, 9)).toEqual(Array.from({ length: 9 }, () => 401));
    expect(statuses.at(-1)).toBe(429);
    // It is the limit of the other ways to sign in, too, and of this network alone.
    const login = { body: { username, password } };
    expect((await ask(engine.url, "POST", "/v1/auth/login", { ...login, from })).status).toBe(429);
    const token = { headers: OWN_PAGE, body: { token: STATIC }, from };
    expect((await ask(engine.url, "POST", "/v1/auth/web/token", token)).status).toBe(429);
    expect((await ask(engine.url, "POST", "/v1/auth/login", login)).status).toBe(200);
  });
});

describe("signing in with a token", () => {
  test("of the configuration, with its rights", async () => {
    const browser = await signInWith(engine.url, "token", { token: STATIC });
    const { json } = await browser.ask("GET", "/v1/auth/me");
    expect(json).toEqual({ subject: "token:ci", kind: "static", role: "write", databases: null });
    expect((await browser.ask("GET", "/v1/admin/users")).status).toBe(403);
  });

  test("that a caller made, until it is revoked", async () => {
    const admin = await root();
    const made = await admin.ask("POST", "/v1/auth/tokens", {
      body: { name: "it", role: "read", databases: ["logs"] },
    });
    const browser = await signInWith(engine.url, "token", { token: made.json["token"] });
    const { json } = await browser.ask("GET", "/v1/auth/me");
    expect(json).toEqual({ subject: "root", kind: "api_token", role: "read", databases: ["logs"] });
    // What is limited to databases is limited in a browser.
    expect((await browser.ask("POST", "/v1/auth/tokens", { body: { name: "more" } })).status).toBe(403);
    expect((await admin.ask("DELETE", `/v1/auth/tokens/${String(made.json["id"])}`)).status).toBe(200);
    expect((await browser.ask("GET", "/v1/auth/me")).status).toBe(401);
  });

  test("refuses what is none, and tokens that are for something else", async () => {
    const wrong = ["", "x", "a b", "engine_pat_x", (await root()).cookie.split("=")[1] ?? ""];
    for (const token of wrong) {
      const reply = await ask(engine.url, "POST", "/v1/auth/web/token", {
        headers: OWN_PAGE,
        body: { token },
        from: "127.0.8.2",
      });
      expect([token, reply.status, setCookies(reply.headers)]).toEqual([token, 401, []]);
    }
    const others = [await bearer(ROOT.username, ROOT.password), "token-of-the-engine-itself"];
    for (const token of others) {
      const reply = await ask(engine.url, "POST", "/v1/auth/web/token", { headers: OWN_PAGE, body: { token } });
      expect([reply.status, setCookies(reply.headers)]).toEqual([403, []]);
    }
  });
});

/** Every way in which a browser says, or does not say, where a request comes from. */
const SITES = [undefined, "none", "cross-site", "same-site", "same-origin"] as const;
const ORIGINS = ["own", undefined, "http://evil.example", "null", "other port", "other scheme"] as const;
const PAGES = [undefined, "own", "http://evil.example/"] as const;
const WORDS = [undefined, "1", "0"] as const;

type Origin = (typeof ORIGINS)[number];

function originHeader(origin: Origin): string | undefined {
  if (origin === "own") return engine.url;
  if (origin === "other port") return `http://127.0.0.1:${Number(port()) + 1}`;
  return origin === "other scheme" ? engine.url.replace("http:", "https:") : origin;
}

const COMBINATIONS = SITES.flatMap((site) =>
  ORIGINS.flatMap((origin) => PAGES.flatMap((page) => WORDS.map((word) => ({ site, origin, page, word })))),
);
type Combination = (typeof COMBINATIONS)[number];

/** By the rules as they are written down, not as they are programmed. */
function isProof({ site, origin, word }: Combination): boolean {
  if (site !== undefined) return site === "same-origin";
  // Plain HTTP here: a proxy in front may have ended TLS, so an origin of that name over https is this one, too.
  if (origin !== undefined) return origin === "own" || origin === "other scheme";
  return word === "1";
}

function headersOf({ site, origin, page, word }: Combination): Record<string, string> {
  const entries: [string, string | undefined][] = [
    ["sec-fetch-site", site],
    ["origin", originHeader(origin)],
    ["referer", page === "own" ? `${engine.url}/ui/` : page],
    ["x-engine-web", word],
  ];
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

describe("the cookie", () => {
  test("counts with proof of the same origin, and not at all without", async () => {
    const { cookie } = await root();
    const found: string[] = [];
    const expected: string[] = [];
    for (const combination of COMBINATIONS) {
      const name = JSON.stringify(combination);
      const { status } = await me(cookie, headersOf(combination));
      found.push(`${name} ${status}`);
      expected.push(`${name} ${isProof(combination) ? 200 : 401}`);
    }
    expect(found).toEqual(expected);
    expect(expected.filter((line) => line.endsWith("200")).length).toBeGreaterThan(50);
  });

  test("changes nothing for a page of another origin", async () => {
    const { cookie } = await root();
    const refused: number[] = [];
    for (const combination of COMBINATIONS.filter((each) => !isProof(each))) {
      const headers = { cookie, "content-type": "text/plain", ...headersOf(combination) };
      const reply = await ask(engine.url, "POST", "/v1/admin/users", { headers });
      const gone = await ask(engine.url, "DELETE", "/v1/auth/sessions", { headers });
      refused.push(reply.status, gone.status);
    }
    expect(new Set(refused)).toEqual(new Set([401]));
    expect((await me(cookie, OWN_PAGE)).status).toBe(200);
  });

  test("signs nobody in or out without proof, whatever the page knows", async () => {
    const browser = await root();
    const statuses = new Set<string>();
    for (const combination of COMBINATIONS.filter((each) => !isProof(each))) {
      const headers = { cookie: browser.cookie, ...headersOf(combination) };
      for (const [path, body] of [
        ["login", ROOT],
        ["token", { token: STATIC }],
        ["logout", undefined],
      ] as const) {
        const reply = await ask(engine.url, "POST", `/v1/auth/web/${path}`, { headers, body });
        statuses.add(`${reply.status} ${setCookies(reply.headers).length}`);
      }
    }
    expect(statuses).toEqual(new Set(["403 0"]));
    expect((await browser.ask("GET", "/v1/auth/me")).status).toBe(200);
  });

  test("is none with Authorization, whatever that says", async () => {
    const { cookie } = await root();
    for (const authorization of ["Bearer x", "Basic x", "Bearer", `Bearer ${STATIC.slice(1)}`]) {
      expect([authorization, (await me(cookie, { ...OWN_PAGE, authorization })).status]).toEqual([authorization, 401]);
    }
    const both = await me(cookie, { ...OWN_PAGE, authorization: `Bearer ${STATIC}` });
    expect(both.json["subject"]).toBe("token:ci");
  });

  test("is no token, and no token is the cookie", async () => {
    const [name, value] = (await root()).cookie.split("=");
    expect((await me("", { authorization: `Bearer ${value}` })).status).toBe(401);
    const access = await bearer(ROOT.username, ROOT.password);
    for (const token of [access, STATIC, "token-of-the-engine-itself"]) {
      expect((await me(`${name}=${token}`, OWN_PAGE)).status).toBe(401);
    }
  });

  test("counts once, under the name of the port, and among others", async () => {
    const { cookie } = await root();
    const value = cookie.split("=")[1];
    const wrong = cookie.slice(0, -1) + (cookie.endsWith("x") ? "y" : "x");
    expect((await me(`a=b; ${cookie}; c=d`, OWN_PAGE)).status).toBe(200);
    const others = [
      `engine_session_1=${value}`,
      `engine_session_=${value}`,
      `x${cookie}`,
      `${cookie}; ${wrong}`,
      `engine_session_${port()}=x; ${cookie}`,
      wrong,
    ];
    for (const other of others) expect([other, (await me(other, OWN_PAGE)).status]).toEqual([other, 401]);
  });

  test("has its answers kept by nobody", async () => {
    const browser = await root();
    for (const path of ["/v1/auth/me", "/v1/auth/config", "/v1/saved-queries", "/v1/nowhere"]) {
      const { headers } = await browser.ask("GET", path);
      expect([path, headers["cache-control"], headers["vary"]]).toEqual([
        path,
        "no-store",
        expect.stringContaining("Cookie"),
      ]);
    }
    // One with an entity tag may be kept by its own browser, which asks each time whether it is still so.
    const { headers } = await browser.ask("GET", "/v1/catalog/schema");
    expect([headers["cache-control"], headers["vary"]]).toEqual([
      "private, no-cache",
      expect.stringContaining("Cookie"),
    ]);
    expect((await ask(engine.url, "GET", "/v1/auth/config")).headers["cache-control"]).toBeUndefined();
  });

  test("opens every route: rows, pages behind a token, metrics by name", async () => {
    const browser = await root();
    const ingested = await browser.ask("POST", "/v1/ingest?x=1", {
      headers: { "x-table": "events", "x-database": "private_name" },
      body: { at: "2026-01-01T00:00:00Z", body: "x" },
    });
    expect(ingested.status).toBe(200);
    const queried = await browser.ask("POST", "/v1/query", {
      headers: { "x-database": "private_name" },
      body: { query: "SELECT count(*) AS n FROM events" },
    });
    expect([queried.status, queried.text.trim()]).toEqual([200, '{"n":1}']);
    expect((await browser.ask("GET", "/v1/nowhere")).status).toBe(404);
    expect((await ask(engine.url, "GET", "/v1/nowhere", { headers: OWN_PAGE })).status).toBe(401);
    expect((await browser.ask("GET", "/metrics")).text).toContain("private_name");
    const foreign = { headers: { "sec-fetch-site": "cross-site" } };
    expect((await browser.ask("GET", "/metrics", foreign)).text).not.toContain("private_name");
  });

  test("is none of a worker's, and stays out of the log", async () => {
    const browser = await root();
    expect((await browser.ask("POST", "/v1/jobs/claim", { body: { kinds: ["x"] } })).status).toBe(401);
    expect(engine.log()).not.toContain(browser.cookie.split("=")[1]);
  });

  test("is judged by rights of this moment", async () => {
    const user = await newUser("write");
    const browser = await signInWith(engine.url, "login", user);
    const admin = await root();
    expect((await browser.ask("GET", "/v1/auth/me")).json["role"]).toBe("write");
    await admin.ask("PATCH", `/v1/admin/users/${user.username}`, { body: { role: "admin" } });
    expect((await browser.ask("GET", "/v1/admin/users")).status).toBe(200);
    await admin.ask("PATCH", `/v1/admin/users/${user.username}`, { body: { role: "read" } });
    expect((await browser.ask("GET", "/v1/admin/users")).status).toBe(403);
    await admin.ask("POST", `/v1/admin/users/${user.username}/password`, { body: { password: "another one" } });
    expect((await browser.ask("GET", "/v1/auth/me")).status).toBe(401);
    const again = await signInWith(engine.url, "login", { ...user, password: "another one" });
    await admin.ask("DELETE", `/v1/admin/users/${user.username}`);
    expect((await again.ask("GET", "/v1/auth/me")).status).toBe(401);
  });
});

describe("CORS", () => {
  test("never lets a page send X-Engine-Web, nor a browser its cookie", async () => {
    const { cookie } = await root();
    for (const path of [
      "/v1/query",
      "/v1/auth/web/login",
      "/v1/auth/web/logout",
      "/v1/auth/sessions",
      "/v1/auth/password",
    ]) {
      const reply = await ask(engine.url, "OPTIONS", path, {
        headers: {
          cookie,
          origin: "http://evil.example",
          "access-control-request-method": "POST",
          "access-control-request-headers": "x-engine-web,content-type",
        },
      });
      const granted = String(reply.headers["access-control-allow-headers"] ?? "").toLowerCase();
      expect(granted).not.toContain("x-engine-web");
      expect(granted).not.toContain("*");
      expect(reply.headers["access-control-allow-credentials"]).toBeUndefined();
    }
    const read = await me(cookie, { origin: "http://evil.example", "sec-fetch-site": "cross-site" });
    expect(read.headers["access-control-allow-origin"]).toBeUndefined();
    expect(read.headers["access-control-allow-credentials"]).toBeUndefined();
  });

  test("does not make an origin that is listed by name the server's own", async () => {
    const { home, remove } = await temporaryHome();
    const listed = "http://localhost:9999";
    const other = await startEngine({
      home,
      env: {
        ENGINE_AUTH_BACKEND: "session",
        ENGINE_ADMIN_USER: ROOT.username,
        ENGINE_ADMIN_PASSWORD: ROOT.password,
        ENGINE_CORS_ALLOWED_ORIGINS: listed,
        ENGINE_OAUTH_REDIRECT_BASE: "https://engine.example",
      },
    });
    const { cookie } = await signInWith(other.url, "login", ROOT);
    const from = (headers: Record<string, string>) =>
      ask(other.url, "GET", "/v1/auth/me", { headers: { cookie, ...headers } });
    expect((await from({ origin: listed })).status).toBe(401);
    expect((await from({ origin: listed, "sec-fetch-site": "same-site" })).status).toBe(401);
    // Behind a proxy that writes another `Host`.
    expect((await from({ origin: "https://engine.example" })).status).toBe(200);
    expect((await from({ origin: "https://engine.example.evil" })).status).toBe(401);
    const login = { origin: listed, "sec-fetch-site": "same-site" };
    expect((await ask(other.url, "POST", "/v1/auth/web/login", { headers: login, body: ROOT })).status).toBe(403);
    await other.stop();
    await remove();
  });
});

describe("a WebSocket", () => {
  /** The status of the refusal, or 101. */
  function opened(headers: Record<string, string>): Promise<number> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(`${engine.url.replace("http", "ws")}/api/v1/sandboxes/none/shell`, { headers });
      socket.on("error", reject);
      socket.on("open", () => {
        socket.close();
        resolve(101);
      });
      socket.on("unexpected-response", (_request, response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
    });
  }

  test("takes the cookie of the server's own page alone", async () => {
    const { cookie } = await root();
    const localhost = `http://localhost:${port()}`;
    // Past the sign-in there is no such sandbox.
    expect(await opened({ cookie, origin: engine.url })).toBe(404);
    expect(await opened({ cookie, origin: localhost, host: `localhost:${port()}` })).toBe(404);
    expect(await opened({ cookie, origin: engine.url, "sec-fetch-site": "same-origin" })).toBe(404);
    for (const origin of [
      "http://evil.example",
      "null",
      localhost,
      `http://127.0.0.1:${Number(port()) + 1}`,
      "http://127.0.0.1",
    ]) {
      expect([origin, await opened({ cookie, origin })]).toEqual([origin, 401]);
    }
    expect(await opened({ cookie })).toBe(401);
    expect(await opened({ cookie, origin: engine.url, "sec-fetch-site": "same-site" })).toBe(401);
    expect(await opened({ origin: engine.url })).toBe(401);
  });
});

describe("the sessions of a caller", () => {
  const agent = (name: string) => ({ "user-agent": name });
  type Listed = { id: string; current: boolean; user_agent: string; signed_in_with: string };
  const listed = ({ json }: WebReply) => json["sessions"] as Listed[];

  test("are listed to them, with what the browser calls itself, and end one by one", async () => {
    const user = await newUser();
    const first = await signInWith(engine.url, "login", user, agent("Phone"));
    const second = await signInWith(engine.url, "login", user, agent(`Desk ${"x".repeat(1_000)}`));
    const all = listed(await second.ask("GET", "/v1/auth/sessions"));
    expect(all.filter(({ current }) => current)).toHaveLength(1);
    expect(all.map(({ user_agent: name }) => name.length).toSorted((a, b) => a - b)).toEqual([5, 300]);
    expect(new Set(all.map((each) => each.signed_in_with))).toEqual(new Set(["password"]));
    expect(JSON.stringify(all)).not.toContain("engine_ws_");
    const other = all.find(({ current }) => !current);
    expect(other?.user_agent).toBe("Phone");
    expect((await second.ask("DELETE", `/v1/auth/sessions/${other?.id}`)).status).toBe(200);
    expect((await first.ask("GET", "/v1/auth/me")).status).toBe(401);
    expect((await second.ask("GET", "/v1/auth/me")).status).toBe(200);
    expect((await second.ask("DELETE", `/v1/auth/sessions/${other?.id}`)).status).toBe(404);
    const own = await second.ask("DELETE", `/v1/auth/sessions/${all.find(({ current }) => current)?.id}`);
    expect(setCookies(own.headers)[0]).toContain("Max-Age=0");
    expect((await second.ask("GET", "/v1/auth/me")).status).toBe(401);
  });

  test("are theirs alone: no admin, no other user and no token of theirs sees or ends them", async () => {
    const user = await newUser("admin");
    const browser = await signInWith(engine.url, "login", user);
    const [own] = listed(await browser.ask("GET", "/v1/auth/sessions"));
    const made = await browser.ask("POST", "/v1/auth/tokens", { body: { name: "leaked", role: "admin" } });
    const leaked = { headers: { authorization: `Bearer ${String(made.json["token"])}` } };
    const strangers = [(method: string, path: string) => ask(engine.url, method, path, leaked)];
    const admin = await root();
    strangers.push((method, path) => admin.ask(method, path));
    for (const stranger of strangers) {
      expect(listed(await stranger("GET", "/v1/auth/sessions")).map(({ id }) => id)).not.toContain(own?.id);
      expect((await stranger("DELETE", `/v1/auth/sessions/${own?.id}`)).status).toBe(404);
      expect((await stranger("DELETE", "/v1/auth/sessions")).status).toBe(200);
    }
    expect((await browser.ask("GET", "/v1/auth/me")).status).toBe(200);
    for (const id of ["%00", "x".repeat(1_000), "%2e%2e"]) {
      expect((await browser.ask("DELETE", `/v1/auth/sessions/${id}`)).status).toBe(404);
    }
  });

  test("end all but the one that asks", async () => {
    const user = await newUser();
    const browsers = await Promise.all(Array.from({ length: 3 }, () => signInWith(engine.url, "login", user)));
    const [last, ...others] = browsers.toReversed();
    const { json } = (await last?.ask("DELETE", "/v1/auth/sessions")) ?? { json: {} };
    expect(json).toEqual({ ended: 2 });
    const statuses = await Promise.all(others.map(async (browser) => (await browser.ask("GET", "/v1/auth/me")).status));
    expect(statuses).toEqual([401, 401]);
    expect((await last?.ask("GET", "/v1/auth/me"))?.status).toBe(200);
    // One who shows a token has no browser that could stay.
    const token = await bearer(user.username, user.password);
    const gone = await ask(engine.url, "DELETE", "/v1/auth/sessions", {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(gone.json).toEqual({ ended: 1 });
  });

  test("end with signing out, which takes the cookie away and may come twice", async () => {
    const browser = await root();
    const out = await browser.ask("POST", "/v1/auth/web/logout");
    expect(out.json).toEqual({ signed_out: true });
    expect(setCookies(out.headers)).toEqual([
      `engine_session_${port()}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0`,
    ]);
    expect((await browser.ask("GET", "/v1/auth/me")).status).toBe(401);
    expect((await browser.ask("POST", "/v1/auth/web/logout")).status).toBe(200);
    expect((await ask(engine.url, "POST", "/v1/auth/web/logout", { headers: OWN_PAGE })).status).toBe(200);
  });

  test("are in the audit log: how they began, were refused, and ended", async () => {
    const user = await newUser();
    const wrong = { ...user, password: "wrong one" };
    await ask(engine.url, "POST", "/v1/auth/web/login", { headers: OWN_PAGE, body: wrong, from: "127.0.8.3" });
    const browser = await signInWith(engine.url, "login", user);
    const other = await signInWith(engine.url, "login", user);
    await browser.ask("DELETE", "/v1/auth/sessions");
    await browser.ask("POST", "/v1/auth/web/logout");
    expect((await other.ask("GET", "/v1/auth/me")).status).toBe(401);
    const of = (entries: Record<string, unknown>[]) =>
      entries.filter(({ target }) => target === user.username).map(({ outcome, details }) => [outcome, details]);
    const began = { browser: "web session", voucher: "password" };
    expect(of(await audit("auth.login"))).toEqual([
      ["ok", began],
      ["ok", began],
      ["refused", {}],
    ]);
    expect(of(await audit("auth.logout"))).toEqual([["ok", {}]]);
    expect(of(await audit("auth.session_end"))).toEqual([["ok", { sessions: "all others" }]]);
  });
});

describe("a user's own password", () => {
  const change = (current: string, next: string) => ({ current_password: current, new_password: next });

  test("is changed with the current one, and ends what was begun with it elsewhere", async () => {
    const user = await newUser();
    const browser = await signInWith(engine.url, "login", user);
    const other = await signInWith(engine.url, "login", user);
    const signedIn = await ask(engine.url, "POST", "/v1/auth/login", { body: user });
    const body = change(user.password, "the next password");
    expect((await browser.ask("PUT", "/v1/auth/password", { body })).json).toEqual({ changed: true });
    expect((await browser.ask("GET", "/v1/auth/me")).status).toBe(200);
    expect((await other.ask("GET", "/v1/auth/me")).status).toBe(401);
    const refresh = { body: { refresh_token: signedIn.json["refresh_token"] } };
    expect((await ask(engine.url, "POST", "/v1/auth/refresh", refresh)).status).toBe(401);
    expect((await ask(engine.url, "POST", "/v1/auth/login", { body: user })).status).toBe(401);
    await signInWith(engine.url, "login", { ...user, password: "the next password" });
  });

  test("goes on for the session of a token that asks", async () => {
    const user = await newUser();
    const browser = await signInWith(engine.url, "login", user);
    const signedIn = await ask(engine.url, "POST", "/v1/auth/login", { body: user });
    const headers = { authorization: `Bearer ${String(signedIn.json["access_token"])}` };
    const body = change(user.password, "the next password");
    expect((await ask(engine.url, "PUT", "/v1/auth/password", { headers, body })).status).toBe(200);
    expect((await ask(engine.url, "GET", "/v1/auth/me", { headers })).status).toBe(200);
    const refresh = { body: { refresh_token: signedIn.json["refresh_token"] } };
    expect((await ask(engine.url, "POST", "/v1/auth/refresh", refresh)).status).toBe(200);
    expect((await browser.ask("GET", "/v1/auth/me")).status).toBe(401);
  });

  test("stays with a wrong one, a short one, and for those who have none", async () => {
    const user = await newUser();
    const browser = await signInWith(engine.url, "login", user);
    const put = (by: SignedIn, body: unknown) => by.ask("PUT", "/v1/auth/password", { body });
    expect(await put(browser, change("wrong", "the next password"))).toMatchObject({ status: 403, code: "forbidden" });
    expect((await put(browser, change(user.password, "short"))).code).toBe("invalid_parameter");
    const made = await browser.ask("POST", "/v1/auth/tokens", { body: { name: "it" } });
    const token = await signInWith(engine.url, "token", { token: made.json["token"] });
    expect((await put(token, change(user.password, "the next password"))).status).toBe(403);
    const ci = await signInWith(engine.url, "token", { token: STATIC });
    expect((await put(ci, change("x", "the next password"))).status).toBe(409);
    expect((await browser.ask("GET", "/v1/auth/me")).status).toBe(200);
    await signInWith(engine.url, "login", user);
    const entries = (await audit("user.password")).filter(({ target }) => target === user.username);
    expect(entries.map(({ outcome }) => outcome)).toEqual(["refused"]);
  });
});

describe("a server that asks for no token", () => {
  test("signs in all the same, and says who it is; whoever has not may do everything", async () => {
    const { home, remove } = await temporaryHome();
    const open = await startEngine({ home });
    const browser = await signInWith(open.url, "login", { username: "admin", password: "admin" });
    expect((await browser.ask("GET", "/v1/auth/me")).json).toMatchObject({ subject: "admin", kind: "session" });
    expect((await ask(open.url, "GET", "/v1/auth/me")).json).toMatchObject({ subject: "anonymous" });
    await browser.ask("POST", "/v1/auth/web/logout");
    expect((await browser.ask("GET", "/v1/auth/me")).json).toMatchObject({ subject: "anonymous" });
    const unknown = { headers: OWN_PAGE, body: { token: "no-token-at-all" } };
    expect((await ask(open.url, "POST", "/v1/auth/web/token", unknown)).status).toBe(401);
    await open.stop();
    await remove();
  });
});
