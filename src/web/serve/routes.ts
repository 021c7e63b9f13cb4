import { fileURLToPath } from "node:url";
import { z } from "zod";
import { matchesWeakly } from "../../core/etags.ts";
import { EngineError } from "../../core/errors.ts";
import type { Random } from "../../core/random.ts";
import type { HttpRequest, HttpResponse } from "../../io/http/http.ts";
import { defineRoute, type Call } from "../../server/route.ts";
import { NONCE_MARK, readWebFiles, type WebFile, type WebFiles } from "./files.ts";
import { preferredEncoding } from "./preferred-encoding.ts";
import { ASSET_POLICY, pagePolicy, TEXT_POLICY } from "./policies.ts";

export type WebDeps = {
  /** What was built; read when somebody first asks, so that a start is no slower for it. */
  files: () => Promise<WebFiles | undefined>;
  random: Random;
};

declare const ENGINE_BUNDLED: boolean | undefined;

/** `dist/web/`, as seen from the bundle or from the sources. */
const isBundled = typeof ENGINE_BUNDLED === "boolean" && ENGINE_BUNDLED;
export const BUILT_FOLDER = fileURLToPath(new URL(isBundled ? "web/" : "../../../dist/web/", import.meta.url));

/** The pages in `folder`. They are read once; where there are none yet, each request looks again. */
export function webDeps(random: Random, folder: string = BUILT_FOLDER): WebDeps {
  let found: Promise<WebFiles | undefined> | undefined;
  const files = async (): Promise<WebFiles | undefined> => {
    const mine = (found ??= readWebFiles(folder));
    try {
      const read = await mine;
      if (read === undefined) found = undefined;
      return read;
    } catch (error) {
      found = undefined;
      throw error;
    }
  };
  return { files, random };
}

const common = { method: "GET", role: "none", tag: "Web UI" } as const;

const thePage = {
  status: 200,
  description: "The page, never kept by caches.",
  type: "text/html",
} as const;

const toThePages = defineRoute({
  ...common,
  path: "/",
  summary: "Go to the pages of this server",
  responses: [{ status: 302, description: "To `/ui/`.", headers: { Location: "`/ui/`" } }],
  errors: [],
  handler: (_deps: WebDeps) => () => Promise.resolve(redirect()),
});

const withoutSlash = defineRoute({
  ...common,
  path: "/ui",
  summary: "Go to the pages of this server",
  responses: [{ status: 302, description: "To `/ui/`.", headers: { Location: "`/ui/`" } }],
  errors: [],
  handler: (_deps: WebDeps) => () => Promise.resolve(redirect()),
});

const homePage = defineRoute({
  ...common,
  path: "/ui/",
  summary: "The first page",
  responses: [thePage],
  errors: [],
  handler: (deps: WebDeps) => () => page(deps),
});

const pageOrAsset = defineRoute({
  ...common,
  path: "/ui/{*path}",
  summary: "Any page, and the files that pages load",
  description:
    "Files are below `/ui/assets/`; their names hold a hash of what is in them, so they may be kept for good. Every other " +
    "path gives the page, which shows what the path means.",
  params: z.object({ path: z.string() }),
  responses: [
    thePage,
    { status: 200, description: "A file.", type: "text/javascript" },
    { status: 200, description: "A file.", type: "text/css" },
    { status: 200, description: "A file.", type: "image/svg+xml" },
    { status: 304, description: "The client has the file." },
  ],
  errors: ["invalid_header"],
  handler: (deps: WebDeps) => async (call: Call<{ path: string }>) => {
    const { path } = call.params;
    if (!path.startsWith("assets/")) return await page(deps);
    const file = (await deps.files())?.assets.get(path);
    // Not the page: what loads a script of an earlier release must learn that it is gone.
    if (file === undefined) throw new EngineError("not_found", `there is no file /ui/${path}`);
    return asset(call.request, file);
  },
});

export const WEB_ROUTES = [toThePages, withoutSlash, homePage, pageOrAsset];

function redirect(): HttpResponse {
  return { status: 302, headers: { Location: "/ui/", "Cache-Control": "no-store" } };
}

async function page({ files, random }: WebDeps): Promise<HttpResponse> {
  const built = await files();
  if (built === undefined) return notBuilt();
  const nonce = Buffer.from(random.fill(new Uint8Array(16))).toString("base64");
  return {
    status: 200,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Cache-Control": "no-store",
      "Content-Security-Policy": pagePolicy(nonce),
      "Cross-Origin-Opener-Policy": "same-origin-allow-popups",
    },
    body: built.page.replaceAll(NONCE_MARK, nonce),
  };
}

const NOT_BUILT = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>engine: the web UI is not built</title></head>
<body><h1>The web UI is not built</h1>
<p>This server runs and answers the API. Its pages are made by a build, which this checkout has not had. Run, in its folder:</p>
<pre>npm ci
npm run build</pre>
<p>Then load this page again. The reference of the API is at <a href="/docs">/docs</a>.</p></body></html>
`;

function notBuilt(): HttpResponse {
  return {
    status: 503,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Cache-Control": "no-store",
      "Content-Security-Policy": TEXT_POLICY,
    },
    body: NOT_BUILT,
  };
}

function asset(request: HttpRequest, { type, hash, bodies }: WebFile): HttpResponse {
  const encoding = preferredEncoding(request.header("accept-encoding"), bodies);
  const etag = encoding === "identity" ? `"${hash}"` : `"${hash}-${encoding}"`;
  const headers = {
    ETag: etag,
    "Cache-Control": "public, max-age=31536000, immutable",
    Vary: "Accept-Encoding",
    "Content-Security-Policy": ASSET_POLICY,
  };
  const known = request.header("if-none-match");
  if (known !== undefined && matchesWeakly(known, etag)) return { status: 304, headers };
  return {
    status: 200,
    headers: {
      ...headers,
      "Content-Type": type,
      ...(encoding !== "identity" && { "Content-Encoding": encoding }),
    },
    body: bodies[encoding] ?? bodies.identity,
  };
}
