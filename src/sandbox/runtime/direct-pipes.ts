import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { systemCodeOf } from "../../core/errors.ts";
import { piecesIn } from "./supervisor-client.ts";

/**
 * The pipes of a command, used without its supervisor: one process less that is to wake up before each message arrives.
 * Where they cannot be, for whatever reason, there is the supervisor.
 */

/** Most bytes that a pipe may be made to hold, without privileges. */
const PIPE_BYTES = 1024 * 1024;
const PIECE_BYTES = 64 * 1024;

/** The pipe that a command reads. What it does not take at once is for the supervisor, and so is everything after it. */
export class DirectInput {
  #descriptor: number | undefined;

  private constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  /** @param where what the supervisor said of its end of the pipe */
  static open(where: readonly string[]): DirectInput | undefined {
    const descriptor = openPipe(where, constants.O_WRONLY);
    return descriptor === undefined ? undefined : new DirectInput(descriptor);
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

/** The pipe that a command writes its standard output to, lent by the supervisor. */
export class DirectOutput {
  /** Where the pipe begins for us: the bytes before, counted from the command's first one, come from the supervisor. */
  readonly start: number;
  readonly #socket: Socket;
  /** The socket's, as long as that is not destroyed. */
  readonly #descriptor: number;

  private constructor(descriptor: number, start: number) {
    this.#descriptor = descriptor;
    this.#socket = new Socket({ fd: descriptor, readable: true, writable: false });
    this.start = start;
  }

  /**
   * @param where what the supervisor said of its end of the pipe
   * @param onNews is called when there is something to take, or will be no more
   */
  static open(where: readonly string[], onNews: () => void): DirectOutput | undefined {
    const descriptor = openPipe(where, constants.O_RDONLY);
    if (descriptor === undefined) return undefined;
    const opened = new DirectOutput(descriptor, Number(where[3]));
    // Its end is told by the supervisor.
    opened.#socket.on("error", () => opened.close()).on("readable", onNews);
    return opened;
  }

  /** What has arrived by now: no more, however fast the command goes on. */
  pieces(): Uint8Array[] {
    return [...piecesIn(this.#socket)];
  }

  /** When the command has ended: the last that it has written. What comes after that is of others. */
  rest(): Uint8Array[] {
    // All at once, for meanwhile nobody else takes from the pipe.
    const pieces = this.pieces();
    for (let size = 0; size < PIPE_BYTES;) {
      const piece = this.#readNow();
      if (piece.length === 0) break;
      size += piece.length;
      pieces.push(piece);
    }
    return pieces;
  }

  close(): void {
    this.#socket.destroy();
  }

  #readNow(): Uint8Array {
    if (this.#socket.destroyed) return new Uint8Array(0);
    const piece = Buffer.allocUnsafe(PIECE_BYTES);
    try {
      return piece.subarray(0, readSync(this.#descriptor, piece));
    } catch (error) {
      if (systemCodeOf(error) === "EAGAIN") return new Uint8Array(0);
      throw error;
    }
  }
}

/** Undefined where it is gone, or may not be opened. It never waits: for the other end, for room, or for bytes. */
function openPipe([pid, descriptor, inode]: readonly string[], mode: number): number | undefined {
  if (pid === undefined || descriptor === undefined) return undefined;
  try {
    const own = openSync(`/proc/${pid}/fd/${descriptor}`, mode | constants.O_NONBLOCK);
    const found = fstatSync(own, { bigint: true });
    if (found.isFIFO() && String(found.ino) === inode) return own;
    closeSync(own);
  } catch {
    // Whatever it is, there is the other way.
  }
  return undefined;
}
