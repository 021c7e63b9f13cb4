import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Puts the sources of a commit into a folder, which is made, with the packages of this checkout: those of the commit are
 * among them. Returns the path of its program.
 */
export function checkOut(commit: string, folder: string): string {
  mkdirSync(folder, { recursive: true });
  const packed = execFileSync("git", ["archive", commit], { cwd: REPOSITORY, maxBuffer: 2 ** 28 });
  execFileSync("tar", ["-x", "-C", folder], { input: packed });
  symlinkSync(join(REPOSITORY, "node_modules"), join(folder, "node_modules"));
  return join(folder, "bin/engine.js");
}
