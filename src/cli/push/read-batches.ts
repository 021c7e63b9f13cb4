import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { CliInput } from "../context.ts";
import { CliError, EXIT } from "../failure.ts";
import { Batcher, hasRows, type Batch } from "./batcher.ts";

export type ReadOptions = {
  clock: Clock;
  /** Lines that are there go out after so long, though the batch is not full; undefined waits until it is. */
  maxAgeMs?: number;
  /** Told when a batch was cut by its age: the cuts then depend on time, and cannot be repeated. */
  onAged?: () => void;
};

/** The input as batches; batches of blank lines only are left out. */
export async function* readBatches(input: CliInput, options: ReadOptions): AsyncGenerator<Batch> {
  const batcher = new Batcher();
  const age = new Age(options);
  const chunks = input[Symbol.asyncIterator]() as AsyncIterator<Uint8Array | string>;
  let reading = nextChunk(chunks);
  for (;;) {
    const chunk = await age.orDue(reading);
    if (chunk === undefined) break;
    if (chunk === DUE) {
      const batch = batcher.takeLines();
      if (batch === undefined || !hasRows(batch.body)) continue;
      options.onAged?.();
      yield batch;
    } else {
      batcher.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
      age.start();
      for (let batch = batcher.takeFull(); batch !== undefined; batch = batcher.takeFull()) {
        if (hasRows(batch.body)) yield batch;
        age.restart();
      }
      reading = nextChunk(chunks);
    }
  }
  const rest = batcher.takeRest();
  if (rest !== undefined && hasRows(rest.body)) yield rest;
}

const DUE = Symbol("due");

/** How long the oldest line has been waiting. */
class Age {
  readonly #options: ReadOptions;
  #dueMs: number | undefined;

  constructor(options: ReadOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#dueMs === undefined) this.restart();
  }

  restart(): void {
    const { clock, maxAgeMs } = this.#options;
    this.#dueMs = maxAgeMs === undefined ? undefined : clock.monotonicMs() + maxAgeMs;
  }

  /** The next piece of input, or `DUE` when that takes longer than the oldest line may wait. */
  async orDue<T>(reading: Promise<T>): Promise<T | typeof DUE> {
    if (this.#dueMs === undefined) return reading;
    const { clock } = this.#options;
    const { promise, resolve } = Promise.withResolvers<typeof DUE>();
    const timer = clock.after(Math.max(0, this.#dueMs - clock.monotonicMs()), () => resolve(DUE));
    try {
      const first = await Promise.race([reading, promise]);
      if (first === DUE) this.#dueMs = undefined;
      return first;
    } finally {
      timer.cancel();
    }
  }
}

async function nextChunk(chunks: AsyncIterator<Uint8Array | string>): Promise<Uint8Array | string | undefined> {
  try {
    const next = await chunks.next();
    return next.done === true ? undefined : next.value;
  } catch (error) {
    throw new CliError(`cannot read standard input: ${messageOf(error)}`, EXIT.failed, { cause: error });
  }
}
