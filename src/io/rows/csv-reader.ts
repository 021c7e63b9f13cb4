import { once } from "node:events";
import type { Writable } from "node:stream";
import { LIMITS } from "../../core/limits.ts";
import type { Batch } from "./batcher.ts";
import { decodeBatches, encodeTask, type CsvTask } from "./csv-protocol.ts";
import { ReaderProcess, type ReaderOptions } from "./reader-process.ts";

/** The most that a batch of a row at its limit takes, with the numbers of its lines. */
const MOST_BATCH_BYTES = 4 * LIMITS.ingestBodyBytes;

/**
 * CSV as batches of NDJSON, parsed in a process of its own: parsing would take a thread that serves clients for as long
 * as a file is. Fails with `UnreadableRows` for what is wrong with the CSV, and with what the chunks fail with.
 */
export async function* readCsv(
  chunks: AsyncIterable<Uint8Array>,
  task: CsvTask,
  limits: Pick<ReaderOptions, "dataBytes" | "confinement" | "signal" | "silence">,
): AsyncGenerator<Batch> {
  const reader = new ReaderProcess({
    ...limits,
    source: new URL("./csv-child.ts", import.meta.url),
    isolate: "csv",
    task: "-",
    problem: `${task.shown} cannot be read as CSV`,
    hasInput: true,
  });
  const feeding = new Feeding(chunks, reader);
  feeding.start(encodeTask(task));
  try {
    yield* decodeBatches(reader.output(), MOST_BATCH_BYTES);
  } catch (error) {
    throw feeding.failure ?? error;
  } finally {
    reader.child.kill("SIGKILL");
    await feeding.end();
  }
  if (feeding.failure !== undefined) throw feeding.failure;
}

/** Writes the chunks to the process, no faster than it reads them. */
class Feeding {
  /** What reading the chunks failed with. The process is killed then. */
  failure: Error | undefined;
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #reader: ReaderProcess;
  #done: Promise<void> = Promise.resolve();
  #isOver = false;

  constructor(chunks: AsyncIterable<Uint8Array>, reader: ReaderProcess) {
    this.#chunks = chunks[Symbol.asyncIterator]();
    this.#reader = reader;
  }

  start(first: Uint8Array): void {
    this.#done = this.#feed(first);
  }

  async #feed(first: Uint8Array): Promise<void> {
    const { stdin } = this.#reader.child;
    if (stdin === null) return;
    try {
      await writeTo(stdin, first);
      while (!this.#isOver && stdin.writable) {
        const chunk = await this.#chunks.next();
        if (chunk.done === true) break;
        await writeTo(stdin, chunk.value);
      }
      stdin.end();
    } catch (error) {
      this.failure = error as Error;
      this.#reader.child.kill("SIGKILL");
    }
  }

  /** Resolves when nothing is read any more. The process is gone. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.#reader.child.stdin?.destroy();
    await this.#done;
    await this.#chunks.return?.();
  }
}

/** Resolves when more may be written, or nothing will be read any more. */
async function writeTo(stdin: Writable, bytes: Uint8Array): Promise<void> {
  if (!stdin.writable || stdin.write(bytes)) return;
  const stop = new AbortController();
  const either = ["drain", "close"].map((event) => once(stdin, event, { signal: stop.signal }));
  either.forEach((one) => one.catch(() => undefined));
  try {
    // Where it stopped reading, its end says why.
    await Promise.race(either).catch(() => undefined);
  } finally {
    stop.abort();
  }
}
