import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { WEB_MANIFEST, writeManifest } from "./bundle-manifest.ts";
import { buildWeb } from "./web/build-web.ts";

/**
 * Builds the pages for browsers alone, into `dist/web/`: `npm start` runs it where their sources are newer, and whoever
 * works on them (`npm run web`). A server that runs goes on with those that it has read.
 */
const repository = fileURLToPath(new URL("..", import.meta.url));
const dist = join(repository, "dist");
const startedMs = Date.now();
await mkdir(join(repository, ".cache"), { recursive: true });
await mkdir(dist, { recursive: true });
const made = await mkdtemp(join(repository, ".cache", "web-"));
try {
  const { sources } = await buildWeb(repository, join(made, "web"));
  await writeManifest(repository, join(made, WEB_MANIFEST), { sources, startedMs });
  // First, so that what is interrupted here is built again.
  await rm(join(dist, WEB_MANIFEST), { force: true });
  await rm(join(dist, "web"), { recursive: true, force: true });
  await rename(join(made, "web"), join(dist, "web"));
  await rename(join(made, WEB_MANIFEST), join(dist, WEB_MANIFEST));
} finally {
  await rm(made, { recursive: true, force: true });
}
console.log(`dist/web: built in ${((Date.now() - startedMs) / 1_000).toFixed(1)} s`);
