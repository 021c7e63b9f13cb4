import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemRandom } from "../../core/random.ts";
import { EngineError } from "../../core/errors.ts";
import type { HttpResponse } from "../../io/http/http.ts";
import { requestWith } from "../../io/http/request.test-kit.ts";
import type { Call } from "../../server/route.ts";
import { WEB_ROUTES, webDeps, type WebDeps } from "./routes.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-pages-"));
});
afterEach(() => rm(folder, { recursive: true }));

async function get(deps: WebDeps, path: string, headers: Record<string, string> = {}): Promise<HttpResponse> {
  const route = WEB_ROUTES.find((one) => one.path === "/ui/{*path}");
  const call = { params: { path }, request: requestWith(headers) } as unknown as Call;
  return await (route?.handler(deps)(call) ?? Promise.reject(new Error("there is no such route")));
}

test("without a build the page says what to run, and is there once it was built", async () => {
  const deps = webDeps(systemRandom, join(folder, "web"));
  const { status, headers, body } = await get(deps, "query");
  expect([status, headers["Content-Type"]]).toEqual([503, "text/html; charset=utf-8"]);
  expect(body).toContain("npm run build");
  await expect(get(deps, "assets/a.js")).rejects.toThrow(EngineError);

  await mkdir(join(folder, "web", "assets"), { recursive: true });
  await writeFile(join(folder, "web", "assets", "a.js"), "let a;");
  await writeFile(join(folder, "web", "index.html"), '<p nonce="__NONCE__"><p nonce="__NONCE__">');
  const page = await get(deps, "query");
  expect(page.status).toBe(200);
  expect(page.body).toMatch(/^<p nonce="([\w+/]{22}==)"><p nonce="\1">$/);
  expect(await get(deps, "assets/a.js")).toMatchObject({ status: 200, body: Buffer.from("let a;") });
});

test("files are read once: a build under a server that runs changes nothing for it", async () => {
  await mkdir(join(folder, "assets"));
  await writeFile(join(folder, "assets", "a.js"), "let a;");
  await writeFile(join(folder, "index.html"), "one");
  const deps = webDeps(systemRandom, folder);
  await get(deps, "");
  await rm(join(folder, "assets"), { recursive: true });
  await writeFile(join(folder, "index.html"), "two");
  expect(await get(deps, "")).toMatchObject({ body: "one" });
  expect(await get(deps, "assets/a.js")).toMatchObject({ status: 200 });
});

test("a build that cannot be read is an error, and is tried again", async () => {
  await writeFile(join(folder, "index.html"), "one");
  const file = join(folder, "index.html", "below");
  const deps = webDeps(systemRandom, file);
  await expect(get(deps, "")).rejects.toThrow("ENOTDIR");
  await rm(join(folder, "index.html"));
  expect(await get(deps, "")).toMatchObject({ status: 503 });
});

test("a file is known again by its tag, also by one that something on the way has made weak", async () => {
  await mkdir(join(folder, "assets"));
  await writeFile(join(folder, "assets", "a.js"), "let a;");
  await writeFile(join(folder, "index.html"), "one");
  const deps = webDeps(systemRandom, folder);
  const etag = (await get(deps, "assets/a.js")).headers["ETag"] ?? "";
  for (const known of [etag, `W/${etag}`]) {
    expect(await get(deps, "assets/a.js", { "if-none-match": known })).toMatchObject({ status: 304 });
  }
  expect(await get(deps, "assets/a.js", { "if-none-match": 'W/"other"' })).toMatchObject({ status: 200 });
});
