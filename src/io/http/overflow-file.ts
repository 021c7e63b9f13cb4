import { closeSync, mkdirSync, mkdtempSync, openSync, read as readFile, readSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const read = promisify(readFile);

/** A piece that is read back. */
const PIECE_BYTES = 512 * 1024;
const SHORTER = "the overflow of a body is shorter than it was";

/**
 * Bytes that came faster than they were taken: appended in the middle of an event, so without waiting, and taken from the
 * front later. The file has no name, so nothing is left of it whoever dies.
 */
export class OverflowFile {
  #fd: number | undefined;
  #takenBytes = 0;
  #writtenBytes = 0;
  #isReading = false;
  #isClosed = false;

  /** Throws a system error (`EACCES`, `ENOSPC`) when there can be no such file. */
  constructor(folder: string) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const own = mkdtempSync(join(folder, "body-"));
    try {
      this.#fd = openSync(join(own, "overflow"), "wx+", 0o600);
    } finally {
      rmSync(own, { recursive: true });
    }
  }

  get isEmpty(): boolean {
    return this.#takenBytes === this.#writtenBytes;
  }

  /** Throws a system error (`ENOSPC`), and is of no use then. */
  append(bytes: Uint8Array): void {
    if (this.#fd === undefined) throw new Error("the overflow of a body was closed");
    for (let done = 0; done < bytes.length;) {
      const written = writeSync(this.#fd, bytes, done, bytes.length - done, this.#writtenBytes);
      done += written;
      this.#writtenBytes += written;
    }
  }

  /** The next bytes; one call at a time, while there are any. */
  async take(): Promise<Uint8Array> {
    if (this.#fd === undefined) throw new Error("the overflow of a body was closed");
    const piece = new Uint8Array(Math.min(PIECE_BYTES, this.#writtenBytes - this.#takenBytes));
    this.#isReading = true;
    try {
      const { bytesRead } = await read(this.#fd, piece, 0, piece.length, this.#takenBytes);
      if (bytesRead === 0) throw new Error(SHORTER);
      this.#takenBytes += bytesRead;
      return piece.subarray(0, bytesRead);
    } finally {
      this.#isReading = false;
      if (this.#isClosed) this.close();
    }
  }

  /** Fills the beginning of `target` with all that is left, and closes the file. Returns how many bytes that are. */
  takeAll(target: Uint8Array): number {
    const allBytes = this.#writtenBytes - this.#takenBytes;
    try {
      for (let done = 0; done < allBytes && this.#fd !== undefined;) {
        const bytesRead = readSync(this.#fd, target, done, allBytes - done, this.#takenBytes + done);
        if (bytesRead === 0) throw new Error(SHORTER);
        done += bytesRead;
      }
      return allBytes;
    } finally {
      this.close();
    }
  }

  close(): void {
    this.#isClosed = true;
    // A number that is read from may be another file's as soon as it was closed.
    if (this.#isReading || this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
  }
}
