import { mkdir, readFile, readdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, sleep } from "../../../core/clock.ts";
import { messageOf, systemCodeOf } from "../../../core/errors.ts";

/** Files of cgroups: words are written to them, and lines are read. */

/** Writes without making the file where it is not there. */
export async function writeWord(file: string, word: string): Promise<void> {
  await writeFile(file, word, { flag: "r+" });
}

/** Makes a group in one that is there. Repeatable. */
export async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch (error) {
    if (systemCodeOf(error) !== "EEXIST") throw error;
  }
}

export function hasLine(text: string, line: string): boolean {
  return text.split("\n").includes(line);
}

/** A file of one number; `max` is 0, and so is what is not there: no limit. */
export async function readNumber(file: string): Promise<number> {
  const value = Number((await readOptional(file))?.trim());
  return Number.isSafeInteger(value) ? value : 0;
}

/** The number behind a key, in a file with a line `key number` for each; 0 where there is none. */
export async function readKey(file: string, key: string): Promise<number> {
  const line = (await readOptional(file))?.split("\n").find((line) => line.startsWith(`${key} `));
  return line === undefined ? 0 : Number(line.slice(key.length + 1));
}

async function readOptional(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT" || systemCodeOf(error) === "ENODEV") return undefined;
    throw error;
  }
}

/** Processes that were killed leave their group a little later. */
const LEAVE_TIMEOUT_MS = 5000;

/** Removes a group with those below it. Repeatable. Rejects when something runs in it for longer than a few seconds. */
export async function removeFolder(folder: string, clock: Clock): Promise<void> {
  const startedMs = clock.monotonicMs();
  while (!(await isRemoved(folder))) {
    if (clock.monotonicMs() - startedMs > LEAVE_TIMEOUT_MS) throw new Error(`${folder} still has processes`);
    await sleep(clock, 1);
  }
}

async function isRemoved(folder: string): Promise<boolean> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    for (const entry of entries) if (entry.isDirectory() && !(await isRemoved(join(folder, entry.name)))) return false;
    await rmdir(folder);
    return true;
  } catch (error) {
    if (systemCodeOf(error) === "EBUSY") return false;
    if (systemCodeOf(error) === "ENOENT") return true;
    throw error;
  }
}

/** Why a folder of groups could not be made, for the operator. */
export function reasonOf(what: string, error: unknown): string {
  const code = systemCodeOf(error);
  if (code === "EACCES" || code === "EPERM") return `${what} may not be changed by this user`;
  if (code === "EROFS") return `${what} is mounted read-only`;
  return `${what} cannot be used: ${messageOf(error)}`;
}
