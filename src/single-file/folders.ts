import { accessSync, constants, existsSync, lstatSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { systemCodeOf } from "../core/errors.ts";
import { NODE, type Contents } from "./contents.ts";

/** Where the program is unpacked, and whether what lies there may be used. */

/** Every file that was unpacked says so by its time of change: one that anything has written to since does not. */
export const UNPACKED_AT = new Date(Date.UTC(2000, 0, 1));

/**
 * The folders that may hold unpacked programs, best first. `ENGINE_RUNTIME_DIR` stands alone. Else it is a cache of the
 * user's, which all of their servers share; a service or a container without a home folder has it beside its data.
 */
export function runtimeFolders(env: NodeJS.ProcessEnv, uid: number): string[] {
  const home = homeFolder();
  const own = `runtime-${uid}`;
  const chosen = pathOf(env["ENGINE_RUNTIME_DIR"], home);
  if (chosen !== undefined) return [join(chosen, own)];
  const cache = cacheFolder(env["XDG_CACHE_HOME"], home);
  const data = pathOf(env["ENGINE_HOME"], home);
  return [cache && join(cache, "engine"), data].flatMap((folder) => (folder === undefined ? [] : [join(folder, own)]));
}

/** As options that are paths are read: `src/config/kinds.ts`. */
function pathOf(text = "", home: string | undefined): string | undefined {
  const path = text.trim();
  if (path === "") return undefined;
  return home !== undefined && /^~(\/|$)/.test(path) ? resolve(home, path.slice(2)) : resolve(path);
}

/** A relative one is to be ignored, says the XDG Base Directory Specification. */
function cacheFolder(configured = "", home: string | undefined): string | undefined {
  if (isAbsolute(configured)) return configured;
  return home && join(home, ".cache");
}

/** Undefined for a user of whom the system knows nothing. */
function homeFolder(): string | undefined {
  try {
    const home = homedir();
    return isAbsolute(home) ? home : undefined;
  } catch (error) {
    // `uv_os_homedir returned ENOENT`: the error's own code says nothing.
    if (systemCodeOf(error) === "ERR_SYSTEM_ERROR") return undefined;
    throw error;
  }
}

/** Why a folder cannot be used, as the end of a sentence. */
export class UnusableFolder extends Error {}

/** Makes the folder if need be. Throws `UnusableFolder` unless nobody but this user can have put anything into it. */
export function openFolder(folder: string, uid: number): void {
  makeFolder(folder);
  checkOwner(folder, uid);
}

/** One by one: Node's own way to make several says ENOENT where the file system is read-only. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    const code = systemCodeOf(error);
    // A read-only file system says so of folders that are there, too.
    if (code === "EEXIST" || existsSync(folder)) return;
    if (code !== "ENOENT" || dirname(folder) === folder) throw error;
    makeFolder(dirname(folder));
    mkdirSync(folder, { mode: 0o700 });
  }
}

function checkOwner(folder: string, uid: number): void {
  const stats = lstatSync(folder);
  if (!stats.isDirectory()) throw new UnusableFolder(`${folder} is not a folder`);
  if (stats.uid !== uid) throw new UnusableFolder(`${folder} belongs to user ${stats.uid}, not to ${uid}`);
  if ((stats.mode & 0o077) !== 0) throw new UnusableFolder(`${folder} is open to other users: chmod 700`);
}

/**
 * Whether all that was unpacked into the folder is there, as it was written. Sizes, times and owners are compared, not
 * bytes: reading those would take as long as all the rest of a start.
 */
export function isWhole(folder: string, { files }: Contents, uid: number): boolean {
  if (lstatSync(folder, { throwIfNoEntry: false }) === undefined) return false;
  checkOwner(folder, uid);
  const isUnchanged = (path: string, sizeBytes: number | undefined): boolean => {
    const stats = lstatSync(join(folder, path), { throwIfNoEntry: false });
    if (stats === undefined || !stats.isFile() || stats.uid !== uid) return false;
    return stats.mtimeMs === UNPACKED_AT.getTime() && (sizeBytes === undefined || stats.size === sizeBytes);
  };
  return isUnchanged(NODE, undefined) && files.every(({ path, sizeBytes }) => isUnchanged(path, sizeBytes));
}

/** Throws `UnusableFolder` where programs may not be run: native packages could not be loaded either. */
export function checkRuns(folder: string): void {
  try {
    accessSync(join(folder, NODE), constants.X_OK);
  } catch (error) {
    if (systemCodeOf(error) !== "EACCES") throw error;
    throw new UnusableFolder(`${folder} is on a file system that runs no programs (noexec)`);
  }
}
