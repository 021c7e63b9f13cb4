import { request as httpRequest } from "node:http";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startServices, type RunningServices } from "../edge/run.test-kit.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** How the built pages are handed out. They were built before the first test (`test/support/global-setup.ts`). */
const ASSETS = fileURLToPath(new URL("../../dist/web/assets/", import.meta.url));

let engine: Engine;
let remove: () => Promise<void>;

beforeAll(async () => {
  const place = await temporaryHome();
  remove = place.remove;
  engine = await startEngine({ home: place.home });
});
afterAll(async () => {
  await engine?.stop();
  await remove?.();
});

type Answer = { status: number; headers: Record<string, string | string[] | undefined>; body: Buffer };

/** As `fetch`, which would decode bodies, fold paths and follow redirects. */
function ask(path: string, headers: Record<string, string> = {}, method = "GET", url = engine.url): Promise<Answer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ hostname, port, path, method, headers }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("error", reject);
      response.on("end", () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(pieces) });
      });
    });
    sent.on("error", reject);
    sent.end();
  });
}

async function entry(kind: "js" | "css"): Promise<string> {
  const page = (await ask("/ui/")).body.toString();
  const found = new RegExp(`"(/ui/assets/index-[\\w-]+\\.${kind})"`).exec(page)?.[1];
  if (found === undefined) throw new Error(`the page names no ${kind}: ${page}`);
  return found;
}

const isPage = ({ status, headers, body }: Answer) =>
  status === 200 && headers["content-type"] === "text/html; charset=utf-8" && body.includes('id="app"');

describe("the page", () => {
  test("/ and /ui lead to it", async () => {
    for (const path of ["/", "/ui", "/?a=b"]) {
      const { status, headers } = await ask(path);
      expect([status, headers["location"]]).toEqual([302, "/ui/"]);
      expect(headers["cache-control"]).toBe("no-store");
    }
  });

  test("is kept by nobody, and may load nothing of others", async () => {
    const { headers, body } = await ask("/ui/");
    expect(headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "cross-origin-opener-policy": "same-origin-allow-popups",
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      "referrer-policy": "no-referrer",
    });
    const policy = String(headers["content-security-policy"]);
    const nonce = /style-src 'self' 'nonce-([\w+/=]{24})'/.exec(policy)?.[1] ?? "";
    expect(policy.replace(nonce, "N").split("; ")).toEqual([
      "default-src 'none'",
      "script-src 'self'",
      "connect-src 'self'",
      "worker-src 'self'",
      "font-src 'self'",
      "style-src 'self' 'nonce-N'",
      "img-src 'self' data: blob:",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
      "trusted-types engine",
    ]);
    const page = body.toString();
    expect(page).toContain(`<meta property="csp-nonce" nonce="${nonce}">`);
    expect(page).not.toContain("__NONCE__");
    // No inline script, nothing of another host.
    expect(page).not.toMatch(/<script(?![^>]*\bsrc="\/ui\/assets\/)|<style|\son\w+=|(src|href)="(https?:)?\/\//i);
  });

  test("has another nonce each time", async () => {
    const nonces = await Promise.all(
      Array.from({ length: 20 }, async () => /nonce="([^"]+)"/.exec((await ask("/ui/")).body.toString())?.[1]),
    );
    expect(new Set(nonces).size).toBe(20);
  });

  test.each(["/ui/sign-in", "/ui/query?db=a", "/ui/a/b/c", "/ui/%00", "/ui/..%2f..%2fpackage.json", "/ui/index.html"])(
    "%s gives it, as the page knows what paths mean",
    async (path) => {
      expect(isPage(await ask(path))).toBe(true);
    },
  );

  test("HEAD has its headers and no body", async () => {
    const { status, headers, body } = await ask("/ui/", {}, "HEAD");
    expect([status, body.length]).toEqual([200, 0]);
    expect(headers["content-security-policy"]).toContain("default-src 'none'");
    expect(Number(headers["content-length"])).toBeGreaterThan(300);
  });

  test("other methods are refused, and unknown paths of the API stay JSON", async () => {
    expect((await ask("/ui/", {}, "POST")).status).toBe(405);
    for (const path of ["/v1/nothing", "/nothing", "/uix", "/assets/index.js"]) {
      const { status, headers } = await ask(path, { Accept: "text/html" });
      expect([status, headers["content-type"]]).toEqual([404, "application/json; charset=utf-8"]);
    }
  });
});

describe("a file of the pages", () => {
  test.each([
    ["js", "text/javascript; charset=utf-8"],
    ["css", "text/css; charset=utf-8"],
  ] as const)("%s may be kept for good, and is known again by its tag", async (kind, type) => {
    const path = await entry(kind);
    const { status, headers, body } = await ask(path);
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-type": type,
      "cache-control": "public, max-age=31536000, immutable",
      vary: "Accept-Encoding",
      "x-content-type-options": "nosniff",
    });
    expect(headers["content-encoding"]).toBeUndefined();
    const etag = String(headers["etag"]);
    expect(etag).toMatch(/^"[\w-]{22}"$/);
    for (const known of [etag, `"other", ${etag}`, "*"]) {
      const again = await ask(path, { "If-None-Match": known });
      expect([again.status, again.body.length, again.headers["etag"]]).toEqual([304, 0, etag]);
      expect(again.headers["cache-control"]).toContain("immutable");
    }
    expect((await ask(path, { "If-None-Match": '"other"' })).body).toEqual(body);
    expect((await ask(path, { "If-None-Match": "no tag" })).status).toBe(400);
  });

  test("comes in the form that the client likes best", async () => {
    const path = await entry("js");
    const plain = (await ask(path)).body;
    const forms: [accepted: string, encoding: string | undefined, read: (body: Buffer) => Buffer][] = [
      ["gzip, deflate, br, zstd", "br", brotliDecompressSync],
      ["gzip", "gzip", gunzipSync],
      ["x-gzip", "gzip", gunzipSync],
      ["br;q=0.5, gzip;q=0.8", "gzip", gunzipSync],
      ["br;q=0, gzip;q=0, *;q=1", undefined, (body) => body],
      ["*", "br", brotliDecompressSync],
      ["zstd, deflate", undefined, (body) => body],
      ["identity", undefined, (body) => body],
      ["br;q=nonsense", undefined, (body) => body],
      ["", undefined, (body) => body],
    ];
    const tags = new Set<unknown>();
    for (const [accepted, encoding, read] of forms) {
      const { headers, body } = await ask(path, { "Accept-Encoding": accepted });
      expect([accepted, headers["content-encoding"]]).toEqual([accepted, encoding]);
      expect(read(body).equals(plain)).toBe(true);
      expect(headers["vary"]).toBe("Accept-Encoding");
      tags.add(headers["etag"]);
    }
    expect(tags.size).toBe(3);
  });

  test("has a policy of its own, which a worker made of it is under", async () => {
    const { headers } = await ask(await entry("js"));
    expect(headers["content-security-policy"]).toBe("default-src 'none'; script-src 'self'; connect-src 'self'");
  });

  test.each([
    "/ui/assets/",
    "/ui/assets/nothing.js",
    "/ui/assets/index-AAAAAAAA.js",
    "/ui/assets/../index.html",
    "/ui/assets/..%2f..%2f..%2fpackage.json",
    "/ui/assets/%2e%2e/%2e%2e/engine.js",
    "/ui/assets/..\\..\\engine.js",
    "/ui/assets/%00",
    "/ui/assets//etc/passwd",
    "/ui/assets/__proto__",
    "/ui/assets/constructor",
  ])("%s is none, which a page that loads a part of it must learn", async (path) => {
    const { status, headers, body } = await ask(path);
    expect([status, headers["content-type"]]).toEqual([404, "application/json; charset=utf-8"]);
    expect(JSON.parse(body.toString())).toMatchObject({ error: { code: "not_found" } });
  });

  test("the forms made for the wire are not files themselves", async () => {
    const path = await entry("js");
    for (const form of [".br", ".gz"]) expect((await ask(path + form)).status).toBe(404);
  });

  test("each has both forms", async () => {
    const names = await readdir(ASSETS);
    const whole = names.filter((name) => !/\.(br|gz)$/.test(name));
    expect(whole.length).toBeGreaterThan(4);
    expect(whole.flatMap((name) => [`${name}.br`, `${name}.gz`]).filter((form) => !names.includes(form))).toEqual([]);
    expect(whole.filter((name) => !/-[\w-]{8}\.\w+$/.test(name))).toEqual([]);
  });
});

test("the first load, with the overview, is within its budget", async () => {
  const names = (await readdir(ASSETS)).filter((name) => /^(index|home)-.*\.(js|css)\.gz$/.test(name));
  const sizes = await Promise.all(names.map(async (name) => [name, (await stat(join(ASSETS, name))).size] as const));
  const total = sizes.reduce((sum, [, size]) => sum + size, 0);
  process.stdout.write(`first load, gzip: ${total} bytes of 150,000: ${JSON.stringify(Object.fromEntries(sizes))}\n`);
  expect(names.length).toBeGreaterThanOrEqual(3);
  expect(total).toBeLessThan(150_000);
});

describe("who has pages", () => {
  const started: RunningServices[] = [];
  const homes: string[] = [];
  afterAll(async () => {
    for (const services of started) await services.stop();
    for (const home of homes) await rm(home, { recursive: true, force: true, maxRetries: 3 });
  });

  test.each([
    [{ ENGINE_ROLES: "all_in_one" }, true],
    [{ ENGINE_ROLES: "edge" }, true],
    [{ ENGINE_ROLES: "query" }, false],
    [{ ENGINE_ROLES: "ingest,query" }, false],
    [{ ENGINE_ROLES: "all_in_one", ENGINE_WEB: "off" }, false],
    [{ ENGINE_ROLES: "edge", ENGINE_WEB: "off" }, false],
    [{ ENGINE_ROLES: "query", ENGINE_WEB: "on" }, true],
  ])("%o: %s", async (env: Record<string, string>, hasPages) => {
    const home = await mkdtemp(join(tmpdir(), "engine-web-"));
    homes.push(home);
    const services = await startServices({ ...env, ENGINE_HOME: home });
    started.push(services);
    const statuses = await Promise.all(
      ["/", "/ui", "/ui/", "/ui/a"].map(async (path) => (await ask(path, {}, "GET", services.url)).status),
    );
    expect(statuses).toEqual(hasPages ? [302, 302, 200, 200] : [404, 404, 404, 404]);
  });

  test("pages are open where tokens are asked for, and the API is not", async () => {
    const home = await mkdtemp(join(tmpdir(), "engine-web-"));
    homes.push(home);
    const services = await startServices({ ENGINE_HOME: home, ENGINE_AUTH_TOKENS: "a-token-that-reads:read" });
    started.push(services);
    expect(isPage(await ask("/ui/", {}, "GET", services.url))).toBe(true);
    expect((await ask("/v1/catalog/schema", {}, "GET", services.url)).status).toBe(401);
  });
});
