import { opendir, open, realpath, stat, glob } from "node:fs/promises";
import { join, sep } from "node:path";
import { messageOf, systemCodeOf } from "../../../core/errors.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { visible } from "../../../client/text.ts";
import { FileError } from "./file-error.ts";

/** One thing to read: a file, or standard input. */
export type InputFile = {
  /** Undefined: standard input. */
  path: string | undefined;
  /** What it is called in messages: safe to print. */
  shown: string;
};

export type FoundInputs = {
  files: readonly InputFile[];
  /** Files in folders that were left out: their names say nothing of rows. */
  skipped: number;
  /** Folders that cannot be read, and why. */
  failures: readonly FileError[];
};

export const STDIN: InputFile = { path: undefined, shown: "standard input" };

const ROWS = /\.(ndjson|ldjson|jsonl|json|csv|tsv|parquet)(\.(gz|gzip|zst|zstd))?$/i;
const GLOB = /[*?[\]{}]/;

/**
 * The files that the arguments name, each once, in their order. `-` is standard input; a folder stands for all files
 * below it whose names are those of rows, in the order of their names; a pattern that is no file's name is matched here.
 * @throws CliError (exit code 2) for an argument that names nothing: nothing is read then.
 */
export async function findInputs(args: readonly string[]): Promise<FoundInputs> {
  const finder = new Finder();
  for (const arg of args) {
    if (arg === "-") finder.addStdin();
    else for (const path of await pathsOf(arg)) await finder.add(path);
  }
  return finder;
}

async function pathsOf(arg: string): Promise<readonly string[]> {
  try {
    await stat(arg);
    return [arg];
  } catch (error) {
    if (systemCodeOf(error) !== "ENOENT") throw unreadable(arg, error);
    if (!GLOB.test(arg)) throw new CliError(`there is no file ${visible(arg)}; nothing was sent`, EXIT.usage);
  }
  const matched: string[] = [];
  for await (const path of glob(arg)) matched.push(path);
  if (matched.length === 0) throw new CliError(`no file matches ${visible(arg)}; nothing was sent`, EXIT.usage);
  return matched.sort();
}

class Finder implements FoundInputs {
  readonly files: InputFile[] = [];
  readonly failures: FileError[] = [];
  skipped = 0;
  /** Real paths: one file by two names is sent once, and a link to a folder above ends there. */
  readonly #seen = new Set<string>();
  #hasStdin = false;

  addStdin(): void {
    if (this.#hasStdin) return;
    this.#hasStdin = true;
    this.files.push(STDIN);
  }

  /** What somebody named. */
  async add(path: string): Promise<void> {
    try {
      const found = await stat(path);
      if (found.isDirectory()) await this.#walk(path, await realpath(path));
      // Of a pipe (`<(zcat …)`) the path by which it is opened is all that there is.
      else if (!found.isFile() || (await this.#isNew(path))) this.files.push({ path, shown: visible(path) });
    } catch (error) {
      this.failures.push(unreadable(path, error));
    }
  }

  /** @param top where the folder that somebody named really is */
  async #walk(folder: string, top: string): Promise<void> {
    if (!(await this.#isNew(folder))) return;
    const names: string[] = [];
    for await (const { name } of await opendir(folder)) if (!name.startsWith(".")) names.push(name);
    for (const name of names.sort()) await this.#addFound(join(folder, name), name, top);
  }

  async #addFound(path: string, name: string, top: string): Promise<void> {
    try {
      const found = await stat(path);
      // A link that leads out of the folder is not of it: who unpacked the folder need not know where it leads.
      if (isOutside(await realpath(path), top)) this.skipped++;
      else if (found.isDirectory()) await this.#walk(path, top);
      // A pipe or a device would be waited for.
      else if (!found.isFile() || !ROWS.test(name)) this.skipped++;
      else if (await this.#isNew(path)) this.files.push({ path, shown: visible(path) });
    } catch (error) {
      this.failures.push(unreadable(path, error));
    }
  }

  async #isNew(path: string): Promise<boolean> {
    const real = await realpath(path);
    if (this.#seen.has(real)) return false;
    this.#seen.add(real);
    return true;
  }
}

function isOutside(path: string, folder: string): boolean {
  return path !== folder && !path.startsWith(folder === sep ? sep : `${folder}${sep}`);
}

function unreadable(path: string, error: unknown): FileError {
  return new FileError(`cannot read ${visible(path)}: ${reasonOf(error)}`, error);
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  ENOENT: "it is not there (any more)",
  ELOOP: "its links lead in a circle",
  EISDIR: "it is a folder",
};

/** Without the path, which may hold anything. */
function reasonOf(error: unknown): string {
  return REASONS[systemCodeOf(error) ?? ""] ?? visible(messageOf(error).replace(/, .*$/s, ""));
}

const CHUNK_BYTES = 1024 * 1024;

/**
 * The bytes of a file.
 * @throws FileError at the end of one that has changed meanwhile: what was read may be of no one state of it.
 */
export async function* readChunks(path: string): AsyncGenerator<Uint8Array> {
  const handle = await open(path, "r").catch((error: unknown) => Promise.reject(unreadable(path, error)));
  try {
    const before = await handle.stat();
    for (;;) {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, null);
      if (bytesRead === 0) break;
      yield buffer.subarray(0, bytesRead);
    }
    const after = await handle.stat();
    if (before.isFile() && (before.size !== after.size || before.mtimeMs !== after.mtimeMs)) throw changed(path);
  } catch (error) {
    throw error instanceof CliError ? error : unreadable(path, error);
  } finally {
    await handle.close();
  }
}

function changed(path: string): FileError {
  const next = "push it again when nobody writes to it (for a file that grows: `tail -f FILE | engine ingest push`)";
  return new FileError(`${visible(path)} was changed while it was read; ${next}`);
}

/** Runs what reads a file by its path, and fails as `readChunks` when the file has changed at its end. */
export async function* watchedFile(path: string, read: () => AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  const before = await stat(path);
  yield* read();
  const after = await stat(path);
  const same = before.ino === after.ino && before.size === after.size && before.mtimeMs === after.mtimeMs;
  if (!same) throw changed(path);
}

/** The path by which a file is known, and whether it can be read again: a pipe cannot. */
export async function identityOf(path: string): Promise<{ realPath: string; isRegular: boolean }> {
  try {
    if (!(await stat(path)).isFile()) return { realPath: path, isRegular: false };
    return { realPath: await realpath(path), isRegular: true };
  } catch (error) {
    throw unreadable(path, error);
  }
}
