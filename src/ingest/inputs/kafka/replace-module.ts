import { existsSync, realpathSync } from "node:fs";
import { Module } from "node:module";
import { join } from "node:path";

/**
 * Makes every later `require` of a file of a package return these exports. `name` is the name of the package with the path
 * of the file in it.
 *
 * Replaces the module at both paths where the package is behind a symbolic link: Node loads modules by their real paths,
 * but Node 22 (22.23.5; not 24.21.0) uses the path of the link right after a call that looked at a socket or a pipe.
 * @throws where the file was loaded before, and where it does not exist.
 */
export function replaceModule(load: NodeJS.Require, name: string, exports: unknown): void {
  const found = (load.resolve.paths(name) ?? []).map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (found === undefined) throw new Error(`${name} does not exist, and cannot be replaced`);
  for (const path of new Set([found, realpathSync(found)])) {
    if (load.cache[path] !== undefined) throw new Error(`${name} was loaded before it could be replaced`);
    load.cache[path] = Object.assign(new Module(path), { exports, loaded: true });
  }
}
