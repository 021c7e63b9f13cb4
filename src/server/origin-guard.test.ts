import { describe, expect, test } from "vitest";
import { EngineError } from "../core/errors.ts";
import { requestWith } from "../io/http/request.test-kit.ts";
import { allowedOrigins, namedOrigins } from "./cors.ts";
import { createOriginGuard } from "./origin-guard.ts";
import { plainRoute, type Route } from "./route.ts";

function route(row: Partial<Route> = {}): Route {
  const base = { method: "GET", path: "/x", tag: "", summary: "", responses: [], errors: [] } as const;
  return plainRoute({ ...base, role: "read", ...row, handle: async () => ({ status: 200, headers: {} }) });
}

const READ = route();
const OPEN = route({ role: "none" });
const SIGN_IN = route({ role: "none", ownPages: true });
const PROBE = route({ role: "none", anyOrigin: true });

type Headers = Record<string, string>;

type Setting = { origins?: string[]; ownOrigins?: string[]; hosts?: string[]; tokensAreAsked?: boolean };

/** What the guard says to a request: undefined lets it pass. */
function verdict(
  headers: Headers,
  { origins, ownOrigins = [], hosts = [], tokensAreAsked = false }: Setting = {},
  row: Route | "preflight" = READ,
) {
  const allowed = allowedOrigins(origins, tokensAreAsked);
  const guard = createOriginGuard({ allowed, named: namedOrigins(origins), ownOrigins, hosts, tokensAreAsked });
  try {
    guard(requestWith(headers), row === "preflight" ? undefined : row);
    return undefined;
  } catch (error) {
    if (error instanceof EngineError && error.code === "forbidden") return error.message;
    throw error;
  }
}

const HOST = { host: "127.0.0.1:7777" };

describe("hosts", () => {
  test.each(["127.0.0.1", "10.1.2.3:80", "[::1]:7777", "[2001:db8::1]", "0.0.0.0:1", "localhost", "LOCALHOST:7777"])(
    "%s is this server",
    (host) => expect(verdict({ host })).toBeUndefined(),
  );

  test.each(["localhost.:7777", "app.localhost", "a.b.localhost:1"])("%s never leaves the machine", (host) => {
    expect(verdict({ host })).toBeUndefined();
  });

  test.each([
    "evil.example",
    "evil.example:7777",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "notlocalhost",
    "",
    ":7777",
    "127.1",
    "2130706433",
    "0x7f000001",
    "[evil.example]",
    "[127.0.0.1]",
    "::1",
    "localhost:80:80",
    "localhost@evil.example",
    "evil.example, localhost",
    "localhost/",
    "local host",
    "127.0.0.1:port",
  ])("%s is none of its names", (host) => {
    expect(verdict({ host })).toContain("ENGINE_HTTP_ALLOWED_HOSTS");
    expect(verdict({ host, origin: `http://${host}` })).toContain("ENGINE_HTTP_ALLOWED_HOSTS");
    expect(verdict({ host }, {}, OPEN)).toContain("ENGINE_HTTP_ALLOWED_HOSTS");
    expect(verdict({ host }, {}, "preflight")).toContain("ENGINE_HTTP_ALLOWED_HOSTS");
  });

  test("names of the configuration are this server, without regard to case and port", () => {
    const setting = {
      hosts: ["Engine.Internal"],
      origins: ["https://app.example:8443"],
      ownOrigins: ["https://own.example"],
    };
    for (const host of ["engine.internal:8080", "ENGINE.internal.", "app.example", "own.example:1"]) {
      expect(verdict({ host }, setting)).toBeUndefined();
    }
    expect(verdict({ host: "other.internal" }, setting)).toContain('"other.internal"');
  });

  test("a request without one is not of a browser", () => expect(verdict({})).toBeUndefined());

  test("a message shows no more of one than is useful", () => {
    expect(verdict({ host: "a".repeat(5_000) })?.length).toBeLessThan(500);
    expect(verdict({ ...HOST, origin: `http://${"a".repeat(5_000)}` })?.length).toBeLessThan(500);
  });
});

describe("origins", () => {
  test("pages that this server gave may call it", () => {
    for (const host of ["127.0.0.1:7777", "localhost:7777", "[::1]:7777", "LocalHost:7777"]) {
      expect(verdict({ host, origin: `http://${host.toLowerCase()}` })).toBeUndefined();
    }
  });

  test.each([
    "http://evil.example",
    "null",
    "",
    "http://localhost:7777",
    "http://127.0.0.1",
    "http://127.0.0.1:77777",
    "https://127.0.0.1:7777",
    "chrome-extension://abc",
    "http://127.0.0.1:7777.evil.example",
    "file://",
  ])("those of %s may not", (origin) => {
    for (const row of [READ, OPEN, "preflight"] as const) {
      expect(verdict({ ...HOST, origin }, {}, row)).toContain("ENGINE_CORS_ALLOWED_ORIGINS");
    }
    // Whatever else it claims.
    expect(verdict({ ...HOST, origin, "sec-fetch-site": "same-origin" })).toContain("ENGINE_CORS_ALLOWED_ORIGINS");
  });

  test("those that are named may, and nobody else", () => {
    const setting = { origins: ["https://app.example"], ownOrigins: ["https://engine.example"] };
    for (const origin of ["https://app.example", "https://engine.example"]) {
      expect(verdict({ ...HOST, origin, "sec-fetch-site": "cross-site" }, setting)).toBeUndefined();
    }
    for (const origin of ["http://app.example", "https://app.example:444", "https://app.example.evil", "null"]) {
      expect(verdict({ ...HOST, origin }, setting)).toContain("ENGINE_CORS_ALLOWED_ORIGINS");
    }
  });

  test("with * there is nothing to keep from anybody", () => {
    const headers = { host: "rebound.example", origin: "null", "sec-fetch-site": "cross-site" };
    expect(verdict(headers, { origins: ["*"] })).toBeUndefined();
  });
});

describe("requests without an origin", () => {
  test.each(["cross-site", "same-site"])("a browser that follows a %s link gets pages, and no data", (site) => {
    const headers = { ...HOST, "sec-fetch-site": site };
    expect(verdict(headers)).toContain("another site");
    expect(verdict(headers, { origins: ["https://app.example"] })).toContain("another site");
    expect(verdict(headers, {}, OPEN)).toBeUndefined();
  });

  test.each(["same-origin", "none"])("its user's own (%s) are answered", (site) => {
    expect(verdict({ ...HOST, "sec-fetch-site": site })).toBeUndefined();
  });
});

describe("requests that show a password", () => {
  const SETTINGS: Setting[] = [
    {},
    { tokensAreAsked: true },
    { origins: ["*"] },
    { origins: ["*"], tokensAreAsked: true },
    { origins: ["https://app.example", "*"], tokensAreAsked: true },
  ];

  test.each(SETTINGS)("of pages of others are refused with %j", (setting) => {
    for (const origin of ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:7777"]) {
      expect(verdict({ ...HOST, origin }, setting, SIGN_IN)).toContain("ENGINE_CORS_ALLOWED_ORIGINS");
    }
    for (const site of ["cross-site", "same-site"]) {
      expect(verdict({ ...HOST, "sec-fetch-site": site }, setting, SIGN_IN)).toContain("another site");
    }
    // A page whose name was made to point here is of this origin, as the browser sees it.
    const rebound = { host: "evil.example:7777", origin: "http://evil.example:7777", "sec-fetch-site": "same-origin" };
    expect(verdict(rebound, setting, SIGN_IN)).toContain("ENGINE_HTTP_ALLOWED_HOSTS");
  });

  test.each(SETTINGS)("of own pages and of programs pass with %j", (setting) => {
    const own = { ...HOST, origin: "http://127.0.0.1:7777", "sec-fetch-site": "same-origin" };
    expect(verdict(own, setting, SIGN_IN)).toBeUndefined();
    expect(verdict(HOST, setting, SIGN_IN)).toBeUndefined();
    const host = "engine.example";
    const behind = { ...setting, ownOrigins: ["https://engine.example"] };
    expect(verdict({ host, origin: "https://engine.example" }, behind, SIGN_IN)).toBeUndefined();
    expect(verdict({ host, origin: `http://${host}` }, { ...setting, hosts: [host] }, SIGN_IN)).toBeUndefined();
  });

  test("of programs pass by any name where tokens are asked for, and of origins that are listed", () => {
    expect(verdict({ host: "any.example" }, { tokensAreAsked: true }, SIGN_IN)).toBeUndefined();
    const listed: Setting = { origins: ["https://app.example", "*"], tokensAreAsked: true };
    const page = { ...HOST, origin: "https://app.example", "sec-fetch-site": "cross-site" };
    expect(verdict(page, listed, SIGN_IN)).toBeUndefined();
    expect(verdict(page, { origins: ["*"] }, SIGN_IN)).toContain("ENGINE_CORS_ALLOWED_ORIGINS");
    expect(verdict({ host: "rebound.example", origin: "http://evil.example" }, listed, READ)).toBeUndefined();
  });
});

test("probes are answered whatever they say", () => {
  const headers = { host: "pod-7", origin: "null", "sec-fetch-site": "cross-site" };
  expect(verdict(headers, {}, PROBE)).toBeUndefined();
});

describe("requests that an edge passed on", () => {
  const foreign = { host: "query:8080", origin: "https://app.example" };
  const edge = "1.1 engine-0192d1f0-5b6c-7000-8000-000000000000";

  test("were judged there", () => {
    expect(verdict({ ...foreign, via: edge })).toBeUndefined();
    expect(verdict({ ...foreign, via: `1.1 proxy, ${edge}` })).toBeUndefined();
  });

  test.each([`${edge}, 1.1 squid`, "1.1 squid", "1.1 engine-room", `1.1 x${edge}`, `${edge}-`, ""])(
    "by %s were not",
    (via) => expect(verdict({ ...foreign, via })).toContain("ENGINE_HTTP_ALLOWED_HOSTS"),
  );
});
