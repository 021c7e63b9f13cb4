import { closeSync, constants, fstatSync, openSync, writeSync } from "node:fs";

/**
 * The pipe that a command reads, written to without its supervisor: one process less that is to wake up before each
 * message arrives. What the pipe does not take at once is for the supervisor, and so is everything after it, for the
 * order's sake.
 */
export class DirectInput {
  #descriptor: number | undefined;

  private constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  /**
   * The supervisor's end of the pipe, by what it said of it. Undefined where that is gone, or may not be opened: then the
   * supervisor writes.
   */
  static open([pid, descriptor, inode]: readonly string[]): DirectInput | undefined {
    if (pid === undefined || descriptor === undefined) return undefined;
    try {
      // It never waits: for a reader, or for room.
      const own = openSync(`/proc/${pid}/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK);
      const found = fstatSync(own, { bigint: true });
      if (found.isFIFO() && String(found.ino) === inode) return new DirectInput(own);
      closeSync(own);
    } catch {
      // Whatever it is, there is the other way.
    }
    return undefined;
  }

  /** How many bytes it took; where those are not all, it takes no more. */
  write(bytes: Uint8Array): number {
    if (this.#descriptor === undefined) return 0;
    let taken = 0;
    try {
      taken = writeSync(this.#descriptor, bytes);
    } catch {
      // Full, or nobody reads any more: the supervisor knows.
    }
    if (taken < bytes.length) this.close();
    return taken;
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }
}
