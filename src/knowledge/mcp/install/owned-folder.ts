import { createHash } from "node:crypto";
import { lstat, mkdir, readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CliError } from "../../../client/failure.ts";
import { visible } from "../../../client/text.ts";
import { writeDurably } from "../../../core/durable-file.ts";
import { messageOf, systemCodeOf } from "../../../core/errors.ts";
import type { Random } from "../../../core/random.ts";

/**
 * Folders that we write for coding agents. A list in the folder has the hash of every file as we wrote it, so that a later
 * version replaces its own files, and nothing that somebody else wrote or changed.
 */
export type OwnedFile = {
  /** Below the folder, with `/`. */
  path: string;
  text: string;
  mode: number;
};

export type FolderPlan = {
  folder: string;
  changed: readonly OwnedFile[];
  /** What the list of the folder says while files are replaced, and after. */
  during: string;
  after: string;
};

export type PlanOptions = {
  /** Replaces files of others, too. */
  force: boolean;
  /** Whether a folder with anything in it that we did not write is refused. */
  isOursAlone: boolean;
  /** What to do about a refusal. */
  advice: string;
};

const LIST = ".engine-files.json";
/** Far more than any of our files has. */
const MAX_BYTES = 1_048_576;

type Hashes = Readonly<Record<string, readonly string[]>>;

/**
 * Looks at everything and writes nothing.
 * @throws CliError where a file is not ours, or a link or something else than a folder is in the way
 */
export async function planFolder(
  folder: string,
  files: readonly OwnedFile[],
  options: PlanOptions,
): Promise<FolderPlan> {
  try {
    const known = await readList(folder);
    if (options.isOursAlone && !options.force && known === undefined && (await entriesOf(folder)).length > 0) {
      throw new CliError(`${visible(folder)} exists and was not written by this program; ${options.advice}`);
    }
    const changed: OwnedFile[] = [];
    for (const file of files) {
      const there = await read(folder, file.path);
      if (there?.text === file.text && (there.mode & ~file.mode) === 0) continue;
      const isOurs =
        there === undefined || there.text === file.text || known?.[file.path]?.includes(hashOf(there.text)) === true;
      if (!isOurs && !options.force) {
        const what = known?.[file.path] === undefined ? "was not written by this program" : "was changed";
        throw new CliError(`${visible(join(folder, file.path))} ${what}; ${options.advice}`);
      }
      changed.push(file);
    }
    const own = Object.fromEntries(files.map(({ path, text }) => [path, [hashOf(text)]]));
    // Killed in the middle, the next run knows the files of both versions.
    const both = files.map(({ path, text }) => [path, [...(known?.[path] ?? []), hashOf(text)]] as const);
    return { folder, changed, during: listText(Object.fromEntries(both)), after: listText(own) };
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(`cannot read ${visible(folder)}: ${visible(messageOf(error))}`, undefined, { cause: error });
  }
}

/** Replaces each file at once. Tells whether there was anything to do. */
export async function writeFolder({ folder, changed, during, after }: FolderPlan, random: Random): Promise<boolean> {
  if (changed.length === 0) return false;
  const list = join(folder, LIST);
  try {
    await mkdir(folder, { recursive: true });
    await writeDurably(list, during, 0o600, random);
    for (const { path, text, mode } of changed) {
      const file = join(folder, path);
      await mkdir(dirname(file), { recursive: true });
      await writeDurably(file, text, mode, random);
    }
    await writeDurably(list, after, 0o600, random);
    return true;
  } catch (error) {
    throw new CliError(`cannot write ${visible(folder)}: ${visible(messageOf(error))}`, undefined, { cause: error });
  }
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function listText(files: Hashes): string {
  const about = "Files that the engine's command line wrote, with their hashes.";
  return `${JSON.stringify({ about, files }, undefined, 2)}\n`;
}

/** Undefined where there is no list, or one that nobody can read. */
async function readList(folder: string): Promise<Hashes | undefined> {
  const there = await read(folder, LIST);
  if (there === undefined) return undefined;
  try {
    const { files } = JSON.parse(there.text) as { files?: unknown };
    if (typeof files !== "object" || files === null) return undefined;
    const hashes = Object.entries(files).filter((entry): entry is [string, string[]] => Array.isArray(entry[1]));
    return Object.fromEntries(hashes);
  } catch {
    return undefined;
  }
}

/** A file below a folder, neither of which may be reached through a link; undefined where it is not there. */
async function read(folder: string, path: string): Promise<{ text: string; mode: number } | undefined> {
  const names = path.split("/");
  for (const depth of names.keys()) {
    const part = join(folder, ...names.slice(0, depth));
    const found = await statIfThere(part);
    if (found === undefined) return undefined;
    if (!found.isDirectory()) throw new CliError(`${visible(part)} is no folder; nothing was changed`);
  }
  const file = join(folder, path);
  const found = await statIfThere(file);
  if (found === undefined) return undefined;
  if (!found.isFile()) throw new CliError(`${visible(file)} is no regular file; nothing was changed`);
  if (found.size > MAX_BYTES) throw new CliError(`${visible(file)} is longer than 1 MiB; nothing was changed`);
  return { text: await readFile(file, "utf8"), mode: found.mode & 0o777 };
}

async function entriesOf(folder: string): Promise<string[]> {
  return (await statIfThere(folder)) === undefined ? [] : await readdir(folder);
}

/** Of a link itself. */
async function statIfThere(path: string) {
  try {
    return await lstat(path);
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
