import { createReadStream, createWriteStream } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join, posix } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { TAR_END, headerBlocks, padding, type TarHeader } from "../../src/io/tar/tar-format.ts";

/**
 * Archives whose bytes depend on the files alone: names come in order, owners are root, modes 0755 or 0644, and all
 * times are one, wherever, whenever and under whatever umask the files were written. How well they are compressed is a
 * matter of zlib, so the same Node on the same kind of processor makes the same bytes.
 */

/** A file, its text or where its bytes are. Folders follow from the paths. */
export type TarEntry = { path: string; source: string | Buffer; isExecutable: boolean };

/** The highest takes three times as long and saves a hundredth. */
const LEVEL = 6;

/** Writes a gzipped tar with everything below `root`. */
export async function writeTar(
  file: string,
  root: string,
  entries: readonly TarEntry[],
  timeSecs: number,
): Promise<void> {
  const blocks = Readable.from(tarOf(entriesBelow(root, inOrder(entries)), timeSecs));
  await pipeline(blocks, createGzip({ level: LEVEL }), createWriteStream(file));
}

/** By the bytes of their paths. @throws Error for a path that comes twice */
function inOrder(entries: readonly TarEntry[]): TarEntry[] {
  const sorted = entries.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  const twice = sorted.find(({ path }, i) => sorted[i + 1]?.path === path);
  if (twice !== undefined) throw new Error(`${twice.path} comes twice`);
  return sorted;
}

async function* entriesBelow(root: string, entries: readonly TarEntry[]): AsyncGenerator<Entry> {
  for (const path of foldersOf(root, entries)) yield { path, type: "folder", mode: 0o755, uid: 0 };
  for (const { path, source, isExecutable } of entries) {
    const sizeBytes = typeof source === "string" ? (await lstat(source)).size : source.length;
    yield { path: posix.join(root, path), type: "file", mode: isExecutable ? 0o755 : 0o644, sizeBytes, source };
  }
}

/** An entry of an archive: a folder, a link, or a file with its bytes or the path of them. */
export type Entry =
  | { path: string; type: "folder"; mode: number; uid: number }
  | { path: string; type: "symlink"; target: string }
  | { path: string; type: "file"; mode: number; sizeBytes: number; source: string | Buffer };

/** A tar archive of these entries, in their order, all with one time. */
export async function* tarOf(
  entries: Iterable<Entry> | AsyncIterable<Entry>,
  timeSecs: number,
): AsyncGenerator<Buffer> {
  for await (const entry of entries) {
    yield headerBlocks(headerOf(entry, timeSecs));
    if (entry.type !== "file") continue;
    if (typeof entry.source === "string") yield* bytesOf(entry.source, entry.sizeBytes);
    else yield entry.source;
    yield padding(entry.sizeBytes);
  }
  yield TAR_END;
}

function headerOf(entry: Entry, timeSecs: number): TarHeader {
  const common = { path: entry.path, uid: 0, gid: 0, sizeBytes: 0, target: "", modifiedSecs: timeSecs };
  if (entry.type === "symlink") return { ...common, type: "symlink", mode: 0o777, target: entry.target };
  if (entry.type === "folder") {
    return { ...common, type: "folder", mode: entry.mode, uid: entry.uid, gid: entry.uid };
  }
  return { ...common, type: "file", mode: entry.mode, sizeBytes: entry.sizeBytes };
}

async function* bytesOf(file: string, sizeBytes: number): AsyncGenerator<Buffer> {
  let read = 0;
  for await (const piece of createReadStream(file) as AsyncIterable<Buffer>) {
    read += piece.length;
    yield piece;
  }
  if (read !== sizeBytes) throw new Error(`${file} changed while it was packed`);
}

/** Those above come first. */
function foldersOf(root: string, entries: readonly TarEntry[]): string[] {
  const folders = new Set<string>([root]);
  for (const { path } of entries) {
    for (let above = posix.dirname(path); above !== "."; above = posix.dirname(above))
      folders.add(posix.join(root, above));
  }
  return [...folders].toSorted();
}

const EXECUTABLE = 0o100;

/**
 * The files below a folder, by their paths from it with `at` in front. Links are left out where `skip` says so.
 * @throws Error for what is neither a file nor a folder
 */
export async function entriesIn(
  folder: string,
  at = "",
  skip: (path: string) => boolean = () => false,
): Promise<TarEntry[]> {
  const found: TarEntry[] = [];
  for (const name of await readdir(folder)) {
    const [source, path] = [join(folder, name), posix.join(at, name)];
    if (skip(path)) continue;
    const status = await lstat(source);
    if (status.isDirectory()) found.push(...(await entriesIn(source, path, skip)));
    else if (status.isFile()) found.push({ path, source, isExecutable: (status.mode & EXECUTABLE) !== 0 });
    else throw new Error(`${source} is neither a file nor a folder`);
  }
  return found;
}
