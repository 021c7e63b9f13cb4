import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isCurrent, MANIFEST, WEB_MANIFEST } from "../../scripts/bundle-manifest.ts";
import { buildSharedSnapshot } from "../../src/query/translator/shared-snapshot.test-kit.ts";
import { serveSharedServers } from "./shared-servers.ts";

/**
 * Before the first test: builds the bundle unless it is current, for `bin/engine.js` to run, and has ready what test files
 * share: servers, and the start-up snapshot of the KQL translator. Tests start hundreds of programs, and from the sources
 * each takes twice the time. Where the build fails no test runs. Returns what is to be done after the last test.
 */
export default async function setup(): Promise<() => Promise<void>> {
  const repository = fileURLToPath(new URL("../..", import.meta.url));
  const [builds, pages] = await Promise.all(
    [MANIFEST, WEB_MANIFEST].map((name) => isCurrent(repository, join(repository, "dist", name))),
  );
  if (builds !== true || pages !== true) {
    const script = builds === true ? "scripts/web.ts" : "scripts/build.ts";
    execFileSync(process.execPath, [script], { cwd: repository, stdio: ["ignore", "ignore", "inherit"] });
  }
  // What one program has compiled the next ones need not: that is a tenth of what a server's start takes.
  process.env["NODE_COMPILE_CACHE"] ??= join(repository, "node_modules/.cache/compiled");
  await buildSharedSnapshot();
  return await serveSharedServers();
}
