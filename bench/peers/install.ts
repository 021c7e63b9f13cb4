import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * The packages of the peers. They are half a gigabyte, so they are no dependencies of the project: this folder's lock
 * file names them, and they are installed when a benchmark first needs them, out of the way of what walks the sources.
 */
const HERE = fileURLToPath(new URL(".", import.meta.url));
const FOLDER = fileURLToPath(new URL("../../.cache/bench-peers/", import.meta.url));
const LOCK = "package-lock.json";
/** A copy of the lock file, written when the installation is complete. */
const INSTALLED = "installed-lock.json";

/** Installs what the lock file says, unless that is what is installed. */
export function installPeers(): void {
  const wanted = readFileSync(join(HERE, LOCK), "utf8");
  const marker = join(FOLDER, INSTALLED);
  if (existsSync(marker) && readFileSync(marker, "utf8") === wanted) return;
  console.log(`installing the peers' packages into ${FOLDER} (about 550 MB, once)`);
  mkdirSync(FOLDER, { recursive: true });
  for (const file of ["package.json", LOCK]) copyFileSync(join(HERE, file), join(FOLDER, file));
  // Not `npm ci`: it refuses a lock file without the variants of chdb for other platforms, which not every registry has.
  execFileSync("npm", ["install", "--no-save", "--no-fund", "--no-audit"], { cwd: FOLDER, stdio: "inherit" });
  writeFileSync(marker, wanted);
}

/** Loads a package that `installPeers` installed. The caller says what it uses of it. */
export function loadPeer(name: string): unknown {
  return createRequire(join(FOLDER, "package.json"))(name);
}
