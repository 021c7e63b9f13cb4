import { afterEach, expect, test } from "vitest";
import { ADMIN } from "../auth/access.test-kit.ts";
import { createAuthenticator } from "../auth/authenticator.ts";
import { FailureLimit } from "../auth/failure-limit.ts";
import { newToken } from "../auth/tokens.ts";
import { systemClock } from "../core/clock.ts";
import { uuidV7Source } from "../core/ids.ts";
import { silentLog } from "../core/log.ts";
import { createMetrics } from "../core/metrics.ts";
import { systemRandom } from "../core/random.ts";
import { serveApp } from "./app.test-kit.ts";
import { plainRoute, type Route } from "./route.ts";

const WORKER_TOKEN = newToken("worker", systemRandom);
const row = { tag: "t", summary: "s", responses: [], errors: [], handle: async () => ({ status: 204, headers: {} }) };
const routes: Route[] = [
  plainRoute({ ...row, method: "GET", path: "/open", role: "none" }),
  plainRoute({ ...row, method: "GET", path: "/v1/closed", role: "read" }),
];

let close = async () => undefined as void;
afterEach(() => close());

async function serve(options: { isOn?: boolean; routes?: Route[] } = {}) {
  const common = { clock: systemClock, newId: uuidV7Source(systemClock, systemRandom), log: silentLog };
  const backends = [{ recognizes: () => true, authenticate: async (t: string) => (t === "good" ? ADMIN : undefined) }];
  const identity = { id: "w", name: "w", owner: "o", kinds: [], labels: {} };
  const workers = { authenticate: async (t: string) => (t === WORKER_TOKEN ? (identity as never) : undefined) };
  const failures = new FailureLimit(common);
  const authenticator = createAuthenticator({ isOn: options.isOn ?? true, backends, workers, failures });
  const server = await serveApp({
    ...common,
    metrics: createMetrics(),
    authenticator,
    routes: options.routes ?? routes,
  });
  close = server.close;
  return async (method: string, path: string, token?: string) => {
    const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    const response = await fetch(server.url + path, { method, headers });
    return [response.status, response.headers.get("www-authenticate") !== null, response.headers.get("allow")];
  };
}

const REFUSED = [401, true, null];
const MISSING = [404, false, null];

test("a path that nothing has is 401 without a good token, and 404 with one", async () => {
  const ask = await serve();
  for (const path of ["/nope", "/v1/nope", "/v1/closed/more", "/"]) {
    expect([await ask("GET", path), await ask("POST", path, "bad"), await ask("GET", path, "good")]).toEqual([
      REFUSED,
      REFUSED,
      MISSING,
    ]);
  }
  // A worker of another version may ask for a route that is not here.
  expect(await ask("GET", "/v1/nope", WORKER_TOKEN)).toEqual(MISSING);
  expect(await ask("GET", "/v1/nope", newToken("worker", systemRandom))).toEqual(REFUSED);
});

test("a method that a path has not is 401 without a good token, unless the path is open", async () => {
  const ask = await serve();
  expect(await ask("PUT", "/v1/closed")).toEqual(REFUSED);
  expect(await ask("PUT", "/v1/closed", "good")).toEqual([405, false, "GET, HEAD, OPTIONS"]);
  expect(await ask("PUT", "/open")).toEqual([405, false, "GET, HEAD, OPTIONS"]);
});

test("an edge, which cannot judge all tokens, asks for one and leaves it at that", async () => {
  const ask = await serve({ routes: [...routes, { ...routes[1], path: "/v1/passed", passThrough: true } as Route] });
  expect(await ask("GET", "/nope")).toEqual(REFUSED);
  expect(await ask("GET", "/nope", "of-a-peer")).toEqual(MISSING);
});

test("everybody is told while no token is asked for", async () => {
  const ask = await serve({ isOn: false });
  expect([await ask("GET", "/nope"), await ask("PUT", "/v1/closed")]).toEqual([
    MISSING,
    [405, false, "GET, HEAD, OPTIONS"],
  ]);
});
