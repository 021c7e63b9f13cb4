import type { BigIntStats, Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { systemCodeOf } from "../../core/errors.ts";
import type { ListOptions, ObjectInfo } from "./objectstore.ts";

type Entry = { key: string; isFolder: boolean; sortKey: Buffer };

/**
 * The files below a folder as objects, in bytewise order of their keys. Memory is bounded by the largest single folder.
 * Entries that start with a dot are not objects; entries that vanish meanwhile are passed over.
 */
export async function* walkObjects(root: string, folderKey: string, options: WalkOptions): AsyncGenerator<ObjectInfo> {
  try {
    for (const entry of await readEntries(root, folderKey)) {
      if (entry.isFolder) {
        if (mayHoldKeys(entry, options)) yield* walkObjects(root, entry.key, options);
      } else if (entry.key.startsWith(options.prefix) && entry.sortKey.compare(options.startAfter) > 0) {
        const info = await infoOf(root, entry.key);
        if (info !== undefined) yield info;
      }
    }
  } catch (error) {
    // Without the right to search a folder its names can be read, and nothing about them.
    if (options.onUnreadable === undefined || !isForbidden(error)) throw error;
    options.onUnreadable(`${folderKey}/`, error);
  }
}

type Range = { prefix: string; startAfter: Buffer };
type WalkOptions = Range & Pick<ListOptions, "onUnreadable">;

function isForbidden(error: unknown): error is Error {
  const code = systemCodeOf(error);
  return code === "EACCES" || code === "EPERM";
}

/** The object of that key; undefined when there is none. */
export async function infoOf(root: string, key: string): Promise<ObjectInfo | undefined> {
  try {
    const stats = await stat(join(root, key), { bigint: true });
    if (!stats.isFile()) return undefined;
    // An object is there from when it was renamed to its place, which may be long after its bytes were written.
    const modifiedAtMs = Number(stats.mtimeMs > stats.ctimeMs ? stats.mtimeMs : stats.ctimeMs);
    return { key, sizeBytes: Number(stats.size), modifiedAtMs, identity: identityOf(stats) };
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw error;
  }
}

/** See `ObjectInfo.identity`. */
export function identityOf({ size, mtimeNs, ino }: Pick<BigIntStats, "size" | "mtimeNs" | "ino">): string {
  return `${size}-${mtimeNs}-${ino}`;
}

/** Whether the error says that there is no such file. */
export function isAbsence(error: unknown): boolean {
  const code = systemCodeOf(error);
  return code === "ENOENT" || code === "ENOTDIR";
}

/** A folder sorts as its keys do: by its name with the slash (`a.b` comes before `a/b`). */
async function readEntries(root: string, folderKey: string): Promise<Entry[]> {
  const found = await readFolder(join(root, folderKey));
  const entries: Entry[] = [];
  for (const item of found) {
    const isFolder = item.isDirectory();
    if (item.name.startsWith(".") || !(isFolder || item.isFile())) continue;
    const key = folderKey === "" ? item.name : `${folderKey}/${item.name}`;
    entries.push({ key, isFolder, sortKey: Buffer.from(isFolder ? `${key}/` : key) });
  }
  return entries.sort((a, b) => a.sortKey.compare(b.sortKey));
}

async function readFolder(path: string): Promise<Dirent[]> {
  try {
    return await readdir(path, { withFileTypes: true });
  } catch (error) {
    if (isAbsence(error)) return [];
    throw error;
  }
}

function mayHoldKeys(folder: Entry, range: Range): boolean {
  const start = `${folder.key}/`;
  if (!start.startsWith(range.prefix) && !range.prefix.startsWith(start)) return false;
  const startsInside = range.startAfter.subarray(0, folder.sortKey.length).equals(folder.sortKey);
  return startsInside || range.startAfter.compare(folder.sortKey) < 0;
}
