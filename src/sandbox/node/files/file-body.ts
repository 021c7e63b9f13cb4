import { Readable } from "node:stream";
import { messageOf } from "../../../core/errors.ts";
import type { HelperProcess } from "./helper-process.ts";

/**
 * The bytes of a file as its helper sends them, at the reader's pace: exactly as many as were announced, or an error.
 * `done` is called once, when the helper is not needed any more; `isWhole` says whether it is at the end of its answer.
 */
export class FileBody extends Readable {
  readonly #helper: HelperProcess;
  readonly #done: (isWhole: boolean) => void;
  #missingBytes: number;

  constructor(helper: HelperProcess, sizeBytes: number, done: (isWhole: boolean) => void) {
    super({ highWaterMark: 64 * 1024 });
    this.#helper = helper;
    this.#missingBytes = sizeBytes;
    this.#done = done;
  }

  override _read(): void {
    if (this.#missingBytes === 0) this.push(null);
    else this.#pull().catch((error: unknown) => this.destroy(asError(error)));
  }

  async #pull(): Promise<void> {
    const piece = await this.#helper.readSome(this.#missingBytes);
    this.#missingBytes -= piece.length;
    this.push(piece);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#done(this.#missingBytes === 0);
    callback(error);
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(messageOf(error));
}
