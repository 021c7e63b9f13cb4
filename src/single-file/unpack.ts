import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { systemCodeOf } from "../core/errors.ts";
import { checkPath, fuse, NODE, type Contents } from "./contents.ts";
import { UNPACKED_AT, UnusableFolder } from "./folders.ts";
import { scratchFolder } from "./uses.ts";

/** The bytes are not those that the single file was made of. */
export class DamagedProgram extends Error {}

export type Program = { contents: Contents; archive: () => Uint8Array };

/**
 * Unpacks the program into `<root>/<id>`: beside it, synced, then renamed, so that a crash of the process or of the
 * machine leaves nothing there that is taken for whole. What was there before is damaged and makes room.
 */
export async function unpack(root: string, { contents, archive }: Program): Promise<void> {
  const made = scratchFolder(root, "unpacking");
  try {
    rmSync(made, { recursive: true, force: true });
    mkdirSync(made, { mode: 0o700 });
    writeFiles(made, contents, opened(contents, archive()));
    writeNode(join(made, NODE));
    await syncAll(made, contents);
    await put(root, contents.id, made);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

function opened({ id, sizeBytes }: Contents, archive: Uint8Array): Uint8Array {
  if (createHash("sha256").update(archive).digest("hex") !== id) throw new DamagedProgram("its archive has changed");
  const bytes = zstdDecompressSync(archive, { maxOutputLength: Math.max(1, sizeBytes) });
  if (bytes.byteLength !== sizeBytes) throw new DamagedProgram("its archive is cut off");
  return bytes;
}

function writeFiles(folder: string, { files }: Contents, bytes: Uint8Array): void {
  let offset = 0;
  for (const { path, sizeBytes, isExecutable } of files) {
    checkPath(path);
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const own = openSync(file, "wx", isExecutable ? 0o700 : 0o600);
    try {
      for (const end = offset + sizeBytes; offset < end;) offset += writeSync(own, bytes, offset, end - offset);
    } finally {
      closeSync(own);
    }
    utimesSync(file, UNPACKED_AT, UNPACKED_AT);
  }
}

/**
 * This executable once more, as plain Node: worker processes, scripts and V8's snapshots need one that takes the options
 * and files of Node's command line, which this executable never does. The fuse alone tells the two apart.
 */
function writeNode(file: string): void {
  // The running one, whatever is at its path now: an update may have replaced it.
  const own = existsSync("/proc/self/exe") ? "/proc/self/exe" : process.execPath;
  copyFileSync(own, file, constants.COPYFILE_FICLONE);
  chmodSync(file, 0o700);
  const opened = openSync(file, "r+");
  try {
    const mark = Buffer.from(`${fuse()}:1`);
    writeSync(opened, Buffer.from("0"), 0, 1, placeOf(opened, mark) + mark.byteLength - 1);
  } finally {
    closeSync(opened);
  }
  utimesSync(file, UNPACKED_AT, UNPACKED_AT);
  const { error, stdout, stderr } = spawnSync(file, ["--version"], { encoding: "utf8", env: {} });
  if (systemCodeOf(error) === "EACCES") {
    throw new UnusableFolder(`${dirname(dirname(file))} is on a file system that runs no programs (noexec)`);
  }
  if (stdout?.trim() === process.version) return;
  throw new Error(`the unpacked Node does not run: ${error?.message ?? stderr.trim()}`, { cause: error });
}

const CHUNK_BYTES = 8 * 1024 * 1024;

function placeOf(file: number, mark: Uint8Array): number {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  // Chunks overlap, so that the mark is whole in one of them.
  for (let offset = 0; ; offset += CHUNK_BYTES - mark.byteLength) {
    const length = readSync(file, chunk, 0, CHUNK_BYTES, offset);
    const found = chunk.subarray(0, length).indexOf(mark);
    if (found !== -1) return offset + found;
    if (length < CHUNK_BYTES) throw new DamagedProgram("it is no single executable application of Node");
  }
}

/** Several at a time: the file system writes its journal once for all of them. */
const SYNCED_AT_ONCE = 16;

async function syncAll(folder: string, { files }: Contents): Promise<void> {
  const folders = new Set(files.flatMap(({ path }) => foldersOf(path)));
  const paths = [NODE, ...files.map(({ path }) => path), ...folders, "."].values();
  const syncNext = async (): Promise<void> => {
    for (const path of paths) await sync(join(folder, path));
  };
  await Promise.all(Array.from({ length: SYNCED_AT_ONCE }, syncNext));
}

/** `a/b/c` is in `a/b` and `a`. */
function foldersOf(path: string): string[] {
  const parent = dirname(path);
  return parent === "." ? [] : [parent, ...foldersOf(parent)];
}

async function sync(path: string): Promise<void> {
  const opened = await open(path, "r");
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}

async function put(root: string, id: string, made: string): Promise<void> {
  const damaged = scratchFolder(root, "damaged");
  rmSync(damaged, { recursive: true, force: true });
  try {
    renameSync(join(root, id), damaged);
  } catch (error) {
    if (systemCodeOf(error) !== "ENOENT") throw error;
  }
  try {
    renameSync(made, join(root, id));
  } catch (error) {
    // Another process has put the same there meanwhile; whoever calls looks whether it is whole.
    if (systemCodeOf(error) !== "ENOTEMPTY" && systemCodeOf(error) !== "EEXIST") throw error;
  }
  rmSync(damaged, { recursive: true, force: true });
  await sync(root);
}
