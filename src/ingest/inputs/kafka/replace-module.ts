import { existsSync, realpathSync } from "node:fs";
import { Module } from "node:module";
import { join } from "node:path";

/**
 * Has every later `require` of a file of a package get these exports. `name` is that of the package with the file's path
 * in it. Throws where the file was loaded before, and where there is none.
 *
 * Where the package is behind a symbolic link it is replaced at both paths: Node loads modules at their real paths, but
 * once in a while (22 and 24: when the last file that a call has looked at was a socket or a pipe) stops at the link.
 */
export function replaceModule(load: NodeJS.Require, name: string, exports: unknown): void {
  const found = (load.resolve.paths(name) ?? []).map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (found === undefined) throw new Error(`there is no ${name} to be replaced`);
  for (const path of new Set([found, realpathSync(found)])) {
    if (load.cache[path] !== undefined) throw new Error(`${name} was loaded before it could be replaced`);
    load.cache[path] = Object.assign(new Module(path), { exports, loaded: true });
  }
}
