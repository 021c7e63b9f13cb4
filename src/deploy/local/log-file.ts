import { appendFileSync, closeSync, openSync, readSync, truncateSync } from "node:fs";
import { copyFile, rename, rm, stat } from "node:fs/promises";

/** Of each log of a local deployment; the file before it, `<name>.log.1`, has about as much. */
export const LOG_MAX_BYTES = 32 * 2 ** 20;

const PIECE_BYTES = 2 ** 20;

/**
 * Moves what a log holds to `<file>.1` when it is longer than that. Whoever writes the log appends to it and keeps it
 * open, so the file stays and is emptied; a line that is written between the last read and the truncation, which follow
 * each other at once, is lost.
 */
export async function trimLog(file: string, maxBytes: number): Promise<void> {
  const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  if (found === undefined || found.size <= maxBytes) return;
  const [copy, kept] = [`${file}.new`, `${file}.1`];
  try {
    await copyFile(file, copy);
    appendRest(file, copy, (await stat(copy)).size);
    truncateSync(file);
    await rename(copy, kept);
  } finally {
    // Half a copy would take space of a disk that is full.
    await rm(copy, { force: true });
  }
}

/** What came while the file was copied. */
function appendRest(file: string, copy: string, fromByte: number): void {
  const input = openSync(file, "r");
  try {
    const piece = Buffer.alloc(PIECE_BYTES);
    for (let at = fromByte; ;) {
      const length = readSync(input, piece, 0, piece.length, at);
      if (length === 0) return;
      appendFileSync(copy, piece.subarray(0, length));
      at += length;
    }
  } finally {
    closeSync(input);
  }
}
