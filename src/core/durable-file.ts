import { constants, copyFile, link, mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { systemCodeOf } from "./errors.ts";
import type { Random } from "./random.ts";

/** Files that are there whole or not at all, whenever the process is killed or the power fails. */

/** The text of a file; undefined where there is none. */
export async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** How temporary files end. */
export const TEMPORARY = ".tmp";

/** A name beside `file` that nobody else takes, and that `besideOf` reads. */
export function nameBeside(file: string, ending: string, random: Random): string {
  return `${file}.${Buffer.from(random.fill(new Uint8Array(6))).toString("hex")}${ending}`;
}

/** What a name beside a file is made of: the file's name, what was drawn for it, and its ending. Undefined for others. */
export function besideOf(name: string): { file: string; drawn: string; ending: string } | undefined {
  const [, file, drawn, ending] = /^([^]+)\.([0-9a-f]{12})(\.[a-z]+)$/.exec(name) ?? [];
  return file === undefined || drawn === undefined || ending === undefined ? undefined : { file, drawn, ending };
}

/** A temporary name beside `file` that nobody else takes. */
export function temporaryBeside(file: string, random: Random): string {
  return nameBeside(file, TEMPORARY, random);
}

/** Removes the temporary files beside `file` that a process has left which was killed. */
export async function removeTemporaries(file: string): Promise<void> {
  const [folder, own] = [dirname(file), basename(file)];
  const left = (await readdir(folder)).filter((name) => {
    const beside = besideOf(name);
    return beside?.file === own && beside.ending === TEMPORARY;
  });
  for (const name of left) await rm(join(folder, name), { force: true });
}

/** Writes a file in place of the one that was there, and makes its folder (0700) where there is none. */
export async function writeDurably(file: string, text: string, mode: number, random: Random): Promise<void> {
  const temporary = temporaryBeside(file, random);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  try {
    const handle = await open(temporary, "wx", mode);
    try {
      await handle.writeFile(text);
      // Whatever the umask is.
      await handle.chmod(mode);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await moveDurably(temporary, file);
  } catch (error) {
    // What is told is why it could not be written, not that there was nothing to take away.
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Renames within a folder, in place of what was there. */
export async function moveDurably(from: string, to: string): Promise<void> {
  await rename(from, to);
  await syncFolder(dirname(to));
}

/** Gives a file a second name, in place of what had it; a copy where the file system has no links. */
export async function keepAs(file: string, kept: string, random: Random): Promise<void> {
  const temporary = temporaryBeside(kept, random);
  try {
    await link(file, temporary).catch(() => copyFile(file, temporary, constants.COPYFILE_EXCL));
    await syncFile(temporary);
    await moveDurably(temporary, kept);
  } finally {
    // A rename between two names of one file leaves both.
    await rm(temporary, { force: true });
  }
}

export async function syncFile(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
