import { createHash } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { link, lstat, mkdir, open, readdir, realpath, rename, rm } from "node:fs/promises";
import { basename, join, relative, sep } from "node:path";
import { besideOf, nameBeside, TEMPORARY, temporaryBeside } from "../../core/durable-file.ts";
import { systemCodeOf } from "../../core/errors.ts";
import type { Random } from "../../core/random.ts";
import { INDEX_NAME } from "./index-file.ts";
import { FILE_SYNC_LIMITS } from "./limits.ts";

/** The folder of a project's memory files. Nothing outside of it is read or written, whatever links say. */
export type MemoryFolder = {
  /** The project's folder with every `/` as `-`, as the agent names it. */
  project: string;
  path: string;
};

export type SeenFile = { name: string; size: number; mtimeMs: number };
export type Skipped = { file: string; reason: string };

const PROJECTS = "projects";
const MEMORY = "memory";
const FACT = ".md";

/** The projects below the home of the agent that have a memory folder. */
export async function memoryFolders(home: string): Promise<MemoryFolder[]> {
  const root = join(home, PROJECTS);
  const names = await readdir(root).catch((error: unknown) => {
    if (["ENOENT", "ENOTDIR"].includes(systemCodeOf(error) ?? "")) return [];
    throw error;
  });
  const folders: MemoryFolder[] = [];
  for (const project of names.toSorted(byCodeUnits).slice(0, FILE_SYNC_LIMITS.projects)) {
    const folder = await memoryFolder(home, project);
    if (folder !== undefined) folders.push(folder);
  }
  return folders;
}

const byCodeUnits = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

/** Undefined where there is none, or where a link leads out of the home of the agent. */
export async function memoryFolder(home: string, project: string): Promise<MemoryFolder | undefined> {
  const path = join(home, PROJECTS, project, MEMORY);
  try {
    const [root, real] = [await realpath(home), await realpath(path)];
    const way = relative(root, real);
    const isInside = way !== ".." && !way.startsWith(`..${sep}`) && way !== "";
    return isInside && (await lstat(real)).isDirectory() ? { project, path: real } : undefined;
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP", "EACCES"].includes(systemCodeOf(error) ?? "")) return undefined;
    throw error;
  }
}

/** How the agent names a project: its folder with every character but letters and digits as a dash. */
export function projectOf(folder: string): string {
  return folder.replaceAll(/[^A-Za-z0-9]/g, "-");
}

/** The facts of a folder, by name, without the index; links, folders and what is too long are passed over. */
export async function filesIn({ path }: MemoryFolder): Promise<{ files: SeenFile[]; skipped: Skipped[] }> {
  const files: SeenFile[] = [];
  const skipped: Skipped[] = [];
  const names = (await readdir(path)).filter((name) => isFactName(name) || /\.md$/i.test(name)).toSorted();
  for (const name of names) {
    if (name === INDEX_NAME) continue;
    const stats = await statsOf(join(path, name));
    if (stats === undefined) continue;
    const problem = problemOf(name, stats, files.length);
    if (problem === undefined) files.push({ name, size: stats.size, mtimeMs: stats.mtimeMs });
    else skipped.push({ file: name, reason: problem });
  }
  return { files, skipped };
}

function problemOf(name: string, stats: Stats, count: number): string | undefined {
  if (!isFactName(name)) return "its name is none that a link can have";
  if (!stats.isFile()) return "it is no regular file";
  if (stats.size > FILE_SYNC_LIMITS.fileBytes) return `it is longer than ${FILE_SYNC_LIMITS.fileBytes} bytes`;
  return count >= FILE_SYNC_LIMITS.files ? `there are more than ${FILE_SYNC_LIMITS.files} files` : undefined;
}

/** Names that mean a file of this folder, on every system. */
export function isFactName(name: string): boolean {
  if (name.length > FILE_SYNC_LIMITS.fileNameChars || name === INDEX_NAME) return false;
  return /^[\p{L}\p{N}_][\p{L}\p{N}_. ()+-]*\.md$/u.test(name) && basename(name) === name;
}

async function statsOf(file: string): Promise<Stats | undefined> {
  try {
    return await lstat(file);
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** The text of a file of the folder, and what it is known by; undefined where there is none, or no text. */
export async function readText(
  folder: MemoryFolder,
  name: string,
): Promise<{ text: string; hash: string; seen: SeenFile } | undefined> {
  const bytes = await readBytes(join(folder.path, name));
  if (bytes === undefined) return undefined;
  const { content, stats } = bytes;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
    if (text.includes("\0")) return undefined;
    return { text, hash: hashOf(content), seen: { name, size: stats.size, mtimeMs: stats.mtimeMs } };
  } catch {
    // No UTF-8.
    return undefined;
  }
}

async function readBytes(file: string): Promise<{ content: Buffer; stats: Stats } | undefined> {
  let handle;
  try {
    // Neither a link nor something that would make us wait.
    handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (["ENOENT", "ELOOP", "EACCES", "ENXIO"].includes(systemCodeOf(error) ?? "")) return undefined;
    throw error;
  }
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > FILE_SYNC_LIMITS.fileBytes) return undefined;
    const content = Buffer.alloc(stats.size);
    const { bytesRead } = await handle.read(content, 0, stats.size, 0);
    return { content: content.subarray(0, bytesRead), stats };
  } finally {
    await handle.close();
  }
}

export function hashOf(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex").slice(0, 32);
}

/**
 * Writes a file of the folder, if it still is what it was: `before` is the hash of its bytes, undefined where there was
 * none. False, and nothing is written, where somebody else changed it meanwhile.
 */
export async function writeText(
  folder: MemoryFolder,
  name: string,
  text: string,
  { before, random }: { before: string | undefined; random: Random },
): Promise<boolean> {
  const file = join(folder.path, name);
  const temporary = temporaryBeside(file, random);
  await mkdir(folder.path, { recursive: true });
  try {
    const mode = before === undefined ? 0o644 : ((await statsOf(file))?.mode ?? 0o644) & 0o777;
    const handle = await open(temporary, "wx", mode);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (before === undefined) return await placed(temporary, file);
    const now = await readBytes(file);
    if (now === undefined || hashOf(now.content) !== before) return false;
    await rename(temporary, file);
    return true;
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Gives the file its name unless another one has it. */
async function placed(temporary: string, file: string): Promise<boolean> {
  try {
    await link(temporary, file);
    return true;
  } catch (error) {
    if (systemCodeOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** What a file is called for the moment in which it is deleted. */
const ASIDE = ".aside";

/**
 * What a pass that was killed has left: files half written go, and one that was being deleted has its name again, or, where
 * that is taken, another one, for it may be what somebody wrote in that moment. Whoever calls it holds the lock of the sync.
 */
export async function removeLeftovers({ path }: MemoryFolder): Promise<void> {
  for (const name of await readdir(path)) {
    const left = besideOf(name);
    if (left === undefined || !left.file.endsWith(FACT) || ![TEMPORARY, ASIDE].includes(left.ending)) continue;
    const { file: fact, drawn, ending } = left;
    const file = join(path, name);
    if (ending === ASIDE && !(await placed(file, join(path, fact))))
      await placed(file, join(path, `${fact.slice(0, -FACT.length)}-${drawn}${FACT}`));
    await rm(file, { force: true });
  }
}

/** Deletes a file of the folder, if it still is what it was. */
export async function removeFile(
  folder: MemoryFolder,
  name: string,
  { before, random }: { before: string; random: Random },
): Promise<boolean> {
  const file = join(folder.path, name);
  const now = await readBytes(file);
  if (now === undefined || hashOf(now.content) !== before) return false;
  // Moved away first: what somebody writes in this moment is another file, and stays.
  const aside = nameBeside(file, ASIDE, random);
  await rename(file, aside);
  const moved = await readBytes(aside);
  if (moved !== undefined && hashOf(moved.content) === before) {
    await rm(aside);
    return true;
  }
  if (await placed(aside, file)) await rm(aside);
  return false;
}
