import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isBundleCurrent } from "../../scripts/bundle-manifest.ts";

/**
 * Before the first test: builds the bundle unless it is current, for `bin/engine.js` to run. Tests start hundreds of
 * servers, and from the sources each takes twice the time. Where the build fails no test runs.
 */
export default async function setup(): Promise<void> {
  const repository = fileURLToPath(new URL("../..", import.meta.url));
  if (await isBundleCurrent(repository, join(repository, "dist"))) return;
  execFileSync(process.execPath, ["scripts/build.ts"], { cwd: repository, stdio: ["ignore", "ignore", "inherit"] });
}
