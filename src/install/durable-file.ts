import { constants, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { systemCodeOf } from "../core/errors.ts";
import type { Random } from "../core/random.ts";

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

/** A name beside `file` that nobody else takes. */
function temporaryBeside(file: string, random: Random): string {
  return `${file}.${Buffer.from(random.fill(new Uint8Array(6))).toString("hex")}.tmp`;
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
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Renames within a folder, in place of what was there. */
async function moveDurably(from: string, to: string): Promise<void> {
  await rename(from, to);
  await syncFolder(dirname(to));
}

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
