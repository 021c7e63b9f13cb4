import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { dirname, join } from "node:path";

/**
 * The memory that this process may take: the machine's, or less where a control group says so. A group inherits the
 * limits of all above it, and a container often sees only the lower part of the tree, so the smallest of what can be
 * seen counts.
 */
export function availableMemoryBytes(read: ReadFile = readText, machineBytes: number = totalmem()): number {
  const limits = groupFolders(read("/proc/self/cgroup") ?? "").flatMap(({ root, path, file }) =>
    upwards(path).map((folder) => parseLimit(read(join(root, folder, file)))),
  );
  return Math.min(machineBytes, ...limits);
}

/** The text of a file, or undefined when it cannot be read. */
type ReadFile = (path: string) => string | undefined;

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Another platform, or a part of the tree that is not mounted here: no limit that could be seen.
    return undefined;
  }
}

type GroupFolder = { root: string; path: string; file: string };

/** `/proc/self/cgroup`: lines of `id:controllers:path`; version 2 has the id 0 and names no controllers. */
function groupFolders(text: string): GroupFolder[] {
  return text.split("\n").flatMap((line): GroupFolder[] => {
    const [id, controllers = "", ...rest] = line.split(":");
    const path = rest.join(":");
    if (id === "0" && controllers === "") return [{ root: "/sys/fs/cgroup", path, file: "memory.max" }];
    if (!controllers.split(",").includes("memory")) return [];
    return [{ root: "/sys/fs/cgroup/memory", path, file: "memory.limit_in_bytes" }];
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

/** A number of bytes; `max`, nothing, or what is no number is no limit. */
function parseLimit(text: string | undefined): number {
  const bytes = Number(text?.trim() === "" ? "max" : text?.trim());
  return Number.isFinite(bytes) && bytes > 0 ? bytes : Infinity;
}
