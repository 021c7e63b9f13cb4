import type { Clock } from "../../../core/clock.ts";
import { hasRows, type Batch, type Cutter } from "../../../io/rows/batcher.ts";

export type ReadOptions = {
  clock: Clock;
  /** Lines that are there go out after so long, though the batch is not full; undefined waits until it is. */
  maxAgeMs?: number;
  /** Told when a batch was cut by its age: the cuts then depend on time, and cannot be repeated. */
  onAged?: () => void;
};

/** The input as batches; batches of blank lines only are left out. */
export async function* readBatches<Piece>(
  input: AsyncIterable<Piece>,
  batcher: Cutter<Piece>,
  options: ReadOptions,
): AsyncGenerator<Batch> {
  const age = new Age(options);
  const pieces = input[Symbol.asyncIterator]();
  try {
    yield* batchesOf(pieces, batcher, { age, ...options });
  } finally {
    // Not waited for: a piece that is being read may never come.
    pieces.return?.().catch(() => undefined);
  }
}

async function* batchesOf<Piece>(
  pieces: AsyncIterator<Piece>,
  batcher: Cutter<Piece>,
  { age, onAged }: { age: Age; onAged?: () => void },
): AsyncGenerator<Batch> {
  let reading = readNext(pieces);
  for (;;) {
    const piece = await age.orDue(reading);
    if (piece === DUE) {
      const batch = batcher.takeLines();
      if (batch === undefined || !hasRows(batch.body)) continue;
      onAged?.();
      yield batch;
    } else {
      if (piece.done === true) break;
      batcher.push(piece.value);
      age.start();
      for (let batch = batcher.takeFull(); batch !== undefined; batch = batcher.takeFull()) {
        if (hasRows(batch.body)) yield batch;
        age.restart();
      }
      reading = readNext(pieces);
    }
  }
  const rest = batcher.takeRest();
  if (rest !== undefined && hasRows(rest.body)) yield rest;
}

/** A failure is kept until somebody waits for it. */
function readNext<Piece>(pieces: AsyncIterator<Piece>): Promise<IteratorResult<Piece>> {
  const reading = pieces.next();
  reading.catch(() => undefined);
  return reading;
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
