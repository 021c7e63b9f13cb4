import { fileURLToPath } from "node:url";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { isolateFile } from "../../core/isolate.ts";

/**
 * What Node and DuckDB open to run, as seen by tracing them, with glibc and musl. None of it is anybody's secret: not
 * in it are `/proc/self/environ`, and `/proc/self/mem`, by which a process could be made to change its own code.
 */
const SYSTEM_FILES = [
  "/lib",
  "/lib64",
  "/usr/lib",
  "/usr/lib64",
  "/etc/ld.so.cache",
  "/etc/ld-musl-x86_64.path",
  "/etc/ld-musl-aarch64.path",
  "/etc/localtime",
  "/usr/share/zoneinfo",
  "/sys/devices/system/cpu",
  "/sys/fs/cgroup",
  "/sys/kernel/mm/transparent_hugepage",
  "/dev/urandom",
];

/** Of these the process's own are its memory, its control group and its stack. */
const KERNEL_FILES = [
  "/proc/self/stat",
  "/proc/self/cgroup",
  "/proc/self/maps",
  "/proc/cpuinfo",
  "/proc/meminfo",
  "/proc/stat",
  "/proc/sys/vm/overcommit_memory",
];

export function kernelFiles(): string[] {
  return KERNEL_FILES.filter((path) => existsSync(path));
}

/** Tests run from the sources and start processes from the bundle: those may read both. */
export function readableFiles(): string[] {
  const child = isolateFile(new URL("./probe-child.ts", import.meta.url));
  const code = [child, fileURLToPath(import.meta.url)].flatMap((file) => programFiles(file));
  return [...new Set([...SYSTEM_FILES, ...code])].filter((path) => existsSync(path));
}

/** The libraries that are loaded with Node, wherever they are: the loader is run as a program is. */
export function executableFiles(): string[] {
  const libraries = readFileSync("/proc/self/maps", "utf8")
    .split("\n")
    .flatMap((line) => /^\S+ ..x\S* .*? (\/.*\.so(?:\.\d+)*)$/.exec(line)?.[1] ?? []);
  return [...new Set(libraries)];
}

/**
 * The folder of our own that the file `code` is in, `src` or `dist` of the package, with the packages that it may load:
 * each `node_modules` around.
 */
function programFiles(code: string): string[] {
  const above = foldersAbove(code);
  const root = above.find((folder) => existsSync(join(folder, "package.json")));
  const own =
    root === undefined
      ? [dirname(code)]
      : [join(root, relative(root, code).split(sep)[0] ?? ""), join(root, "package.json")];
  return [...own, ...above.map((folder) => join(folder, "node_modules"))];
}

function foldersAbove(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [parent, ...foldersAbove(parent)];
}
