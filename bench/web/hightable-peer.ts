import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { build } from "vite";

/** The page of hightable, in the checkout. */
const SOURCES = fileURLToPath(new URL("./hightable", import.meta.url));
const PATH = "/bench-peer";

/** Builds the page of hightable (`hightable/page.js`) into the folder, as for production. */
export async function buildPeer(folder: string): Promise<void> {
  const before = process.env["NODE_ENV"];
  // React reads it, and is several times slower where it is not set.
  process.env["NODE_ENV"] = "production";
  try {
    await build({
      configFile: false,
      root: SOURCES,
      base: `${PATH}/`,
      logLevel: "warn",
      resolve: { preserveSymlinks: true },
      build: { outDir: folder, emptyOutDir: true, modulePreload: { polyfill: false }, reportCompressedSize: false },
    });
  } finally {
    if (before === undefined) delete process.env["NODE_ENV"];
    else process.env["NODE_ENV"] = before;
  }
}

const TYPES: Readonly<Record<string, string>> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

/** Opens the page as if the server had it: what it asks goes to the server itself, and past this program. */
export async function openPeer(page: Page, url: string, folder: string): Promise<void> {
  const files = `${url}${PATH}/**`;
  await page.route(files, async (route) => {
    const name = new URL(route.request().url()).pathname.slice(PATH.length + 1);
    const body = await readFile(join(folder, name));
    await route.fulfill({ body, contentType: TYPES[extname(name)] ?? "application/octet-stream" });
  });
  await page.goto(`${url}${PATH}/index.html`);
  await page.waitForFunction("globalThis.peer !== undefined");
  // While anything is routed every request waits for this program.
  await page.unroute(files);
}
