import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * The control groups of this process. A group inherits the limits of all above it, and a container often sees only the
 * lower part of the tree, so a limit is the smallest of all that can be seen.
 */

/** The text of a file, or undefined when it cannot be read. */
export type ReadFile = (path: string) => string | undefined;

export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Another platform, or a part of the tree that is not mounted here: no limit that could be seen.
    return undefined;
  }
}

export type GroupFolders = {
  version: 1 | 2;
  /** This process's group and all above it, down to the root of what is mounted. */
  folders: readonly string[];
};

/**
 * Where a controller's files of this process are; one for each version of control groups that is mounted.
 * `/proc/self/cgroup` has lines of `id:controllers:path`; version 2 has the id 0 and names no controllers.
 */
export function groupFolders(controller: string, read: ReadFile): GroupFolders[] {
  return (read("/proc/self/cgroup") ?? "").split("\n").flatMap((line): GroupFolders[] => {
    const [id, controllers = "", ...rest] = line.split(":");
    const paths = upwards(rest.join(":"));
    const below = (root: string) => paths.map((path) => join(root, path));
    if (id === "0" && controllers === "") return [{ version: 2, folders: below("/sys/fs/cgroup") }];
    if (!controllers.split(",").includes(controller)) return [];
    // Controllers that are mounted together have links of their own names, in most systems.
    const names = new Set([controller, controllers]);
    return [{ version: 1, folders: [...names].flatMap((name) => below(`/sys/fs/cgroup/${name}`)) }];
  });
}

/** `/a/b` → `/a/b`, `/a`, `/`. */
function upwards(path: string): string[] {
  const folders = [path];
  while (folders.at(-1) !== "/" && folders.at(-1) !== "." && path.startsWith("/")) {
    folders.push(dirname(folders.at(-1) ?? "/"));
  }
  return folders;
}
