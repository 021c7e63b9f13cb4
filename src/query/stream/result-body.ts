import { constants, lstatSync } from "node:fs";
import { open, rename, rm, writeFile, type FileHandle } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { EngineError } from "../../core/errors.ts";
import type { Spooled } from "./spool.ts";

const CHUNK_BYTES = 256 * 1024;

/** An answer as its process tells of it, which may be anybody's word: the file must be one of its output folder. */
export function checkedData(data: Spooled, folder: string): Spooled {
  if ("bytes" in data) return data;
  const isOwn = dirname(data.file) === folder && /^\d+\.[a-z]+$/.test(basename(data.file));
  if (isOwn && lstatSync(data.file).isFile()) return data;
  throw new EngineError("query_failed", "the query process named a file that is not its own");
}

/** The bytes of an answer, read at the reader's pace, once. */
export async function bodyOf(data: Spooled, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
  return "bytes" in data ? only(data.bytes) : readOnce(data.file, signal);
}

/** Makes an answer the file at `saveTo`, whose body is then empty; without one it is the body itself. */
export async function deliver(
  data: Spooled,
  { saveTo, signal }: { saveTo?: string | undefined; signal: AbortSignal },
): Promise<AsyncIterable<Uint8Array>> {
  if (saveTo === undefined) return await bodyOf(data, signal);
  if ("bytes" in data) await writeFile(saveTo, data.bytes, { flag: "wx", mode: 0o600 });
  else await rename(data.file, saveTo);
  return none();
}

export async function* none(): AsyncGenerator<never> {}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.byteLength > 0) yield bytes;
}

/**
 * The bytes of a file, read at the reader's pace, once. The file is unlinked right away where the platform allows it,
 * so that nothing is left whatever happens; it is gone at the latest when the reader is done, returns early, or the
 * signal aborts.
 */
async function readOnce(path: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
  const handle = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  await rm(path, { force: true });
  return new ResultFile(handle, signal);
}

/** Not a generator: one that was never started would not run its clean-up when it is returned. */
class ResultFile implements AsyncIterableIterator<Uint8Array> {
  readonly #handle: FileHandle;
  readonly #signal: AbortSignal;
  readonly #onAbort = (): void => void this.#close();
  #closed: Promise<void> | undefined;
  /** The next piece is read while the one before it is on its way to the client. */
  #reading: Promise<Uint8Array> | undefined;

  constructor(handle: FileHandle, signal: AbortSignal) {
    this.#handle = handle;
    this.#signal = signal;
    signal.addEventListener("abort", this.#onAbort, { once: true });
    if (signal.aborted) this.#onAbort();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    this.#signal.throwIfAborted();
    if (this.#closed !== undefined) return { done: true, value: undefined };
    const value = await (this.#reading ?? this.#read());
    // Somebody ended the query meanwhile: what the client has must not look whole.
    this.#signal.throwIfAborted();
    if (value.byteLength === 0 || this.#closed !== undefined) {
      await this.#close();
      return { done: true, value: undefined };
    }
    this.#reading = this.#read();
    // A failure is for whoever asks for the piece; nobody may ever do.
    this.#reading.catch(() => {});
    return { done: false, value };
  }

  async #read(): Promise<Uint8Array> {
    const { bytesRead, buffer } = await this.#handle.read(Buffer.allocUnsafe(CHUNK_BYTES));
    return buffer.subarray(0, bytesRead);
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    await this.#close();
    return { done: true, value: undefined };
  }

  #close(): Promise<void> {
    this.#signal.removeEventListener("abort", this.#onAbort);
    // Waits for a read that is under way.
    this.#closed ??= this.#handle.close();
    return this.#closed;
  }
}
