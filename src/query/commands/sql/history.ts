import { constants } from "node:fs";
import { chmod, mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { systemCodeOf } from "../../../core/errors.ts";
import { tokenize } from "../../parse/tokens.ts";

/** Entries that are offered; twice as many are kept in the file before it is cut. */
export const HISTORY_ENTRIES = 1_000;
/** A longer one is not kept: it came from a file. */
const ENTRY_CHARS = 16_384;
/** Of the file's end, what is read. */
const READ_BYTES = 4 * 1024 * 1024;
const PRIVATE = 0o600;

/**
 * What was typed into the shell, an entry a line, the newest last, in a file that its user alone can read: queries hold
 * what people look for. An entry that begins with a blank is not kept.
 */
export class History {
  readonly #file: string;
  readonly #home: string;

  constructor(home: string) {
    this.#home = home;
    this.#file = join(home, "sql_history");
  }

  /** The newest entries, the newest first, as `node:readline` has them. @throws when there are some and they cannot be read. */
  async read(): Promise<string[]> {
    const entries = await this.#entries();
    if (entries.length > 2 * HISTORY_ENTRIES) await this.#replace(entries.slice(-HISTORY_ENTRIES));
    return entries.slice(-HISTORY_ENTRIES).reverse();
  }

  async add(entry: string): Promise<void> {
    if (/^\s|^$|[\r\n]/.test(entry) || entry.length > ENTRY_CHARS) return;
    await mkdir(this.#home, { recursive: true, mode: 0o700 });
    const handle = await open(this.#file, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT, PRIVATE);
    try {
      // Shells that run side by side add whole lines.
      await handle.write(`${entry}\n`);
    } finally {
      await handle.close();
    }
  }

  async #entries(): Promise<string[]> {
    let handle;
    try {
      handle = await open(this.#file, "r");
    } catch (error) {
      if (systemCodeOf(error) === "ENOENT") return [];
      throw error;
    }
    try {
      const { size, mode } = await handle.stat();
      if ((mode & 0o077) !== 0) await chmod(this.#file, PRIVATE);
      const start = Math.max(0, size - READ_BYTES);
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(size - start), 0, size - start, start);
      const lines = buffer.toString("utf8", 0, bytesRead).split("\n");
      if (start > 0) lines.shift();
      return lines.filter((line) => line !== "");
    } finally {
      await handle.close();
    }
  }

  async #replace(entries: readonly string[]): Promise<void> {
    const temporary = `${this.#file}.${process.pid}.tmp`;
    const handle = await open(temporary, "wx", PRIVATE);
    try {
      await handle.writeFile(entries.map((entry) => `${entry}\n`).join(""));
    } finally {
      await handle.close();
    }
    await rename(temporary, this.#file).catch(async (error: unknown) => {
      await rm(temporary, { force: true });
      throw error;
    });
  }
}

/**
 * A statement of several lines as one entry; undefined when that would change it: a comment would swallow what follows,
 * and a line break within quotes is part of a value.
 */
export function oneLine(lines: readonly string[]): string | undefined {
  if (lines.length === 1) return lines[0];
  const text = lines.join("\n");
  const isBroken = tokenize(text).some(({ start, end }) => text.slice(start, end).includes("\n"));
  return isBroken || text.includes("--") ? undefined : lines.map((line) => line.trim()).join(" ");
}
