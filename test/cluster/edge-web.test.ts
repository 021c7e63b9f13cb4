import { afterEach, expect, test } from "vitest";
import { WebSocket } from "ws";
import { ask, OWN_PAGE, setCookies, signInWith } from "../api/web.test-kit.ts";
import { portOf, start, startEdge, stopAll } from "./edge.test-kit.ts";

/** Browsers that sign in at an edge: its peers judge whose page asks, by what the browser asked the edge for. */
afterEach(stopAll);

const ROOT = { username: "root", password: "correct horse" };
const AUTH = {
  ENGINE_AUTH_BACKEND: "session",
  ENGINE_ADMIN_USER: ROOT.username,
  ENGINE_ADMIN_PASSWORD: ROOT.password,
};

function upgraded(url: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${url.replace("http", "ws")}/api/v1/sandboxes/none/shell`, { headers });
    socket.on("error", reject);
    socket.on("unexpected-response", (_request, response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
  });
}

test("are signed in for the edge's pages, whichever peer answers, and for nobody else's", async () => {
  const peer = await start(AUTH);
  const edge = await startEdge([peer.url], AUTH);
  const browser = await signInWith(edge.url, "login", ROOT);
  // The port of the edge: peers of one edge have others.
  expect(browser.cookie).toMatch(new RegExp(`^engine_session_${portOf(edge)}=engine_ws_`));
  const { cookie } = browser;
  const me = (headers: Record<string, string>) =>
    ask(edge.url, "GET", "/v1/auth/me", { headers: { cookie, ...headers } });
  const own = await me(OWN_PAGE);
  expect([own.json["subject"], own.headers["cache-control"], own.headers["vary"]]).toEqual([
    "root",
    "no-store",
    expect.stringContaining("Cookie"),
  ]);
  expect((await me({ origin: edge.url })).status).toBe(200);
  expect((await me({ "x-engine-web": "1" })).status).toBe(200);
  const foreign: Record<string, string>[] = [
    {},
    { origin: peer.url },
    { origin: "http://evil.example" },
    { origin: "http://evil.example", "x-engine-web": "1" },
    { origin: edge.url, "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "none", "x-engine-web": "1" },
  ];
  for (const headers of foreign) expect([headers, (await me(headers)).status]).toEqual([headers, 401]);

  // The edge does not know the session, and leaves it to its peers to say whether there is such a route.
  expect((await browser.ask("GET", "/v1/nowhere")).status).toBe(404);
  expect((await ask(edge.url, "GET", "/v1/nowhere", { headers: OWN_PAGE })).status).toBe(401);

  expect(await upgraded(edge.url, { cookie, origin: edge.url })).toBe(404);
  for (const origin of ["http://evil.example", peer.url])
    expect(await upgraded(edge.url, { cookie, origin })).toBe(401);

  const out = await browser.ask("POST", "/v1/auth/web/logout");
  expect(setCookies(out.headers)).toEqual([expect.stringMatching(/^engine_session_\d+=; .*Max-Age=0$/)]);
  expect((await browser.ask("GET", "/v1/auth/me")).status).toBe(401);
});

test("cannot be had from a peer by a page that poses as an edge", async () => {
  const peer = await start(AUTH);
  const { cookie } = await signInWith(peer.url, "login", ROOT);
  const name = cookie.split("=")[0];
  const posing: Record<string, string>[] = [
    { origin: "http://evil.example", "x-forwarded-host": "evil.example" },
    { origin: "http://evil.example", "x-forwarded-host": "evil.example", via: "1.1 squid" },
    { origin: "http://evil.example", "x-forwarded-host": "evil.example", via: "1.1 engine-proxy" },
  ];
  for (const headers of posing) {
    expect((await ask(peer.url, "GET", "/v1/auth/me", { headers: { cookie, ...headers } })).status).toBe(401);
    const login = await ask(peer.url, "POST", "/v1/auth/web/login", { headers, body: ROOT });
    expect([login.status, setCookies(login.headers)]).toEqual([403, []]);
  }
  expect(name).toBe(`engine_session_${portOf(peer)}`);
});

test("sign in behind a proxy that ends TLS by the origin that the operator has named", async () => {
  const engine = await start({ ...AUTH, ENGINE_OAUTH_REDIRECT_BASE: "https://engine.example" });
  const proxied = { host: "engine.example", "x-forwarded-proto": "https", origin: "https://engine.example" };
  for (const headers of [{ ...proxied, ...OWN_PAGE }, proxied]) {
    const login = await ask(engine.url, "POST", "/v1/auth/web/login", { headers, body: ROOT });
    expect([login.status, setCookies(login.headers)[0]]).toEqual([
      200,
      expect.stringMatching(/^engine_session_443=engine_ws_\w+; Path=\/; Secure; HttpOnly; SameSite=Strict; /),
    ]);
  }
  const plain = { ...proxied, origin: "http://engine.example" };
  expect((await ask(engine.url, "POST", "/v1/auth/web/login", { headers: plain, body: ROOT })).status).toBe(403);
});
