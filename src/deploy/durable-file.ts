import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { systemCodeOf } from "../core/errors.ts";
import type { Random } from "../core/random.ts";

/** Writes a file whole or not at all, for this user alone, in place of the one that was there. */
export async function writeDurably(file: string, text: string, random: Random): Promise<void> {
  const temporary = `${file}.${Buffer.from(random.fill(new Uint8Array(6))).toString("hex")}.tmp`;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  try {
    const handle = await open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } finally {
    await rm(temporary, { force: true });
  }
  const folder = await open(dirname(file), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** The text of a file; undefined where there is none. */
export async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
