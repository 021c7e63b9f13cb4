import { describe, expect, test } from "vitest";
import { openToAll } from "../auth/access.test-kit.ts";
import { systemClock } from "../core/clock.ts";
import { uuidV7Source } from "../core/ids.ts";
import { silentLog } from "../core/log.ts";
import { createMetrics } from "../core/metrics.ts";
import { systemRandom } from "../core/random.ts";
import { requestWith } from "../io/http/request.test-kit.ts";
import { serveApp } from "./app.test-kit.ts";
import { preflightHeaders } from "./cors.ts";
import { plainRoute } from "./route.ts";
import { isOfOwnPage, sessionCookieOf, setSessionCookie } from "./web-session.ts";

type Headers = Record<string, string>;

const isOwn = (headers: Headers, scheme?: "http" | "https") =>
  isOfOwnPage(requestWith(headers, scheme), new Set(["https://named.example"]));
const EDGE = "1.1 engine-01a227b9-4b42-7201-87f2-dfc4efb57cb8";

describe("a page of this server", () => {
  test.each<[Headers, ("http" | "https")?]>([
    [{ host: "a:1", origin: "http://a:1" }],
    [{ host: "A:1", origin: "http://a:1" }],
    [{ host: "a", origin: "https://a" }],
    [{ host: "a:443", origin: "https://a" }, "https"],
    [{ host: "a:80", origin: "http://a" }],
    [{ host: "[::1]:1", origin: "http://[::1]:1" }],
    [{ host: "rewritten:1", origin: "https://named.example" }],
    [{ host: "peer:1", "x-forwarded-host": "edge:2", via: EDGE, origin: "http://edge:2" }],
    [{ host: "a", "sec-fetch-site": "same-origin" }],
    [{ host: "a", "x-engine-web": "1" }],
    [{ "sec-fetch-site": "same-origin", origin: "http://rewritten.by.a.proxy" }],
  ])("is known by %j %s", (headers, scheme) => {
    expect(isOwn(headers, scheme)).toBe(true);
  });

  test.each<[Headers, ("http" | "https")?]>([
    [{ host: "a" }],
    [{ host: "a:1", origin: "http://a:2" }],
    [{ host: "a:1", origin: "http://a" }],
    [{ host: "a", origin: "http://a.b" }],
    [{ host: "a", origin: "http://a/" }],
    [{ host: "a", origin: "null", "x-engine-web": "1" }],
    [{ host: "null", origin: "null" }],
    [{ host: "a", origin: "" }],
    [{ host: "", origin: "http://" }],
    [{ host: "a@b", origin: "http://b" }],
    [{ host: "a, b", origin: "http://a" }],
    [{ origin: "http://a" }],
    [{ host: "a", origin: "http://a" }, "https"],
    [{ host: "a", origin: "http://a", "x-forwarded-proto": "https" }],
    [{ host: "a", origin: "http://b", "x-engine-web": "1" }],
    [{ host: "a", origin: "http://b", "x-forwarded-host": "b" }],
    [{ host: "peer:1", "x-forwarded-host": "edge:2", via: EDGE, origin: "http://peer:1" }],
    [{ host: "a", "x-engine-web": "true" }],
    [{ host: "a", "sec-fetch-site": "none", "x-engine-web": "1" }],
    [{ host: "a", "sec-fetch-site": "same-site", origin: "http://a" }],
    [{ host: "a", "sec-fetch-site": "same-origin, cross-site" }],
    [{ host: "a", "sec-fetch-site": "", origin: "http://a" }],
  ])("is not what sends %j %s", (headers, scheme) => {
    expect(isOwn(headers, scheme)).toBe(false);
  });

  test("alone may say so by a header", () => {
    const grants = preflightHeaders(
      "all",
      "http://evil.example",
      ["POST"],
      "x-engine-web, X-Engine-Web,x-engine-param-a",
    );
    expect(grants["Access-Control-Allow-Headers"]?.toLowerCase()).not.toContain("x-engine-web");
    expect(grants["Access-Control-Allow-Headers"]).toContain("x-engine-param-a");
  });
});

describe("the cookie", () => {
  test.each<[Headers, "http" | "https", string, boolean]>([
    [{ host: "localhost:8080" }, "http", "8080", false],
    [{ host: "localhost:8080" }, "https", "8080", true],
    [{ host: "a" }, "http", "80", false],
    [{ host: "a" }, "https", "443", true],
    [{ host: "a", "x-forwarded-proto": "https" }, "http", "443", true],
    [{ host: "a", "x-forwarded-proto": "HTTPS, http" }, "http", "443", true],
    [{ host: "[::1]:9" }, "http", "9", false],
    [{ host: "a:1; Domain=b" }, "http", "80", false],
    [{ host: "peer:1", "x-forwarded-host": "edge:2", via: EDGE }, "http", "2", false],
    [{}, "http", "80", false],
  ])("of %j over %s is named by the port %s", (headers, scheme, port, isSecure) => {
    const set = setSessionCookie(requestWith(headers, scheme), "v");
    const attributes = `Path=/; ${isSecure ? "Secure; " : ""}HttpOnly; SameSite=Strict; Max-Age=34560000`;
    expect(set).toBe(`engine_session_${port}=v; ${attributes}`);
    const back = requestWith({ ...headers, cookie: `a=b; engine_session_${port}=v` }, scheme);
    expect(sessionCookieOf(back)).toBe("v");
  });
});

test.each([
  [
    "public, max-age=31536000, immutable",
    "Accept-Encoding",
    ["public, max-age=31536000, immutable", "Accept-Encoding"],
  ],
  ["private, no-cache", "Accept", ["private, no-cache", "Accept, Cookie"]],
  [undefined, "Cookie", ["no-store", "Cookie"]],
  [undefined, "Accept, Cookie", ["no-store", "Accept, Cookie"]],
  [undefined, undefined, ["no-store", "Cookie"]],
])(
  "what a cookie brings, with Cache-Control %s and Vary %s of its route, is kept as %j",
  async (kept, vary, expected) => {
    const headers = { ...(kept !== undefined && { "Cache-Control": kept }), ...(vary !== undefined && { Vary: vary }) };
    const handle = () => Promise.resolve({ status: 200, headers: { ...headers } });
    const server = await serveApp({
      clock: systemClock,
      newId: uuidV7Source(systemClock, systemRandom),
      log: silentLog,
      metrics: createMetrics(),
      authenticator: openToAll(),
      routes: [
        plainRoute({
          tag: "t",
          summary: "s",
          responses: [],
          errors: [],
          method: "GET",
          path: "/a",
          role: "none",
          handle,
        }),
      ],
    });
    try {
      const cookie = `engine_session_${new URL(server.url).port}=v`;
      const answer = await fetch(`${server.url}/a`, { headers: { cookie, "sec-fetch-site": "same-origin" } });
      expect([answer.headers.get("cache-control"), answer.headers.get("vary")]).toEqual(expected);
    } finally {
      await server.close();
    }
  },
);
