import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { RuntimeError } from "./runtime.ts";

/** One mount of this process's mount namespace. */
export type MountEntry = {
  mountId: number;
  parentId: number;
  /** The folder of the file system that is mounted, `/` for the whole of it. */
  root: string;
  /** Where it is mounted. */
  at: string;
  /** Whether mounts below it show up in other namespaces as well. */
  isShared: boolean;
  fsType: string;
  source: string;
  /** Of the file system, by commas: `rw,lowerdir=…`. */
  options: string;
};

/** All mounts that this process sees, in the order in which they were made. Linux only. */
export async function readMounts(): Promise<MountEntry[]> {
  return parseMounts(await readFile("/proc/self/mountinfo", "utf8"));
}

/** Parses what `/proc/<pid>/mountinfo` says (proc(5)). Throws on a line of another form. */
export function parseMounts(text: string): MountEntry[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [left, right] = line.split(" - ", 2);
      const [mountId, parentId, , root, at, , ...tags] = (left ?? "").split(" ");
      const [fsType, source, options] = (right ?? "").split(" ");
      if (root === undefined || at === undefined || fsType === undefined || source === undefined) {
        throw new Error(`a line of mountinfo is not understood: ${line}`);
      }
      return {
        mountId: Number(mountId),
        parentId: Number(parentId),
        root: unescape(root),
        at: unescape(at),
        isShared: tags.some((tag) => tag.startsWith("shared:")),
        fsType,
        source: unescape(source),
        options: options ?? "",
      };
    });
}

/** Spaces, tabs, line feeds and backslashes of paths are octal there. */
function unescape(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_all, digits: string) => String.fromCodePoint(Number.parseInt(digits, 8)));
}

/** The mounts at or below a folder, the latest first: the order in which they can be unmounted. */
export async function listMounts(under: string): Promise<MountEntry[]> {
  const mounts = await readMounts();
  return mounts.filter((mount) => mount.at === under || mount.at.startsWith(`${under}/`)).toReversed();
}

/** Makes a folder one whose mounts no other mount namespace sees. Repeatable; also by several processes. */
export async function makeMountsPrivate(folder: string): Promise<void> {
  await changeMounts([["private", folder]]);
}

/**
 * Unmounts everything at or below a folder, and lets go of loop devices whose file is there: what a machine left that
 * was not taken apart. What a process still uses goes when that ends.
 */
export async function sweepMounts(folder: string): Promise<void> {
  await changeMounts([
    ["unmount", folder],
    ["free", folder],
  ]);
}

/** An operation of `mounts.pl` with its arguments; its head comment says which there are. */
export type MountOperation = readonly [string, ...string[]];

const PROGRAM = fileURLToPath(new URL("./mounts.pl", import.meta.url));

/**
 * Does the operations in their order, in one process. When one fails, the mounts of this call are undone.
 *
 * Rejects with `RuntimeError`: `no_space`, or `failed`.
 */
export async function changeMounts(operations: readonly MountOperation[]): Promise<void> {
  const words = operations.flatMap((operation, index) => (index === 0 ? operation : ["--", ...operation]));
  await runProgram("perl", [PROGRAM, process.arch, String(process.pid), ...words]);
}

/** System programs are in folders that are not in everybody's path. */
const SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * Runs a program of the system to its end and returns what it wrote. Of the environment it gets the path and proxies.
 *
 * Rejects with `RuntimeError`, the last line of standard error as its message: `no_space` when that says so, `unable`
 * when there is no such program, else `failed`.
 */
export function runProgram(program: string, args: readonly string[]): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const { PATH = "", http_proxy, https_proxy, no_proxy } = process.env;
  const env = { PATH: `${PATH}:${SYSTEM_PATH}`, LC_ALL: "C", http_proxy, https_proxy, no_proxy };
  execFile(program, args, { env, maxBuffer: 16 * 1024 * 1024 }, (error, stdout, stderr) => {
    if (error === null) resolve(stdout);
    else if (error.code === "ENOENT") reject(new RuntimeError("unable", `${program} is not installed`));
    else {
      const line = stderr.trim().split("\n").at(-1) ?? "";
      const code = /\bENOSPC\b|No space left on device/.test(stderr) ? "no_space" : "failed";
      reject(new RuntimeError(code, `${program}: ${line === "" ? error.message : line}`, { cause: error }));
    }
  });
  return promise;
}
