import { LIMITS } from "../../core/limits.ts";
import { BATCH_BYTES, rowTooLong, type Batch, type Cutter, type Origin } from "./batcher.ts";

/** A row that was no line of NDJSON before. */
export type InputRow = {
  /** The row as JSON, without a line break. */
  json: string;
  /**
   * What it counts for, in bytes, where batches are cut. It depends on the input alone, so that the same input is cut the
   * same way though the table has changed, and with it how values are written.
   */
  weightBytes: number;
  /** Line of the input with which it begins. */
  line: number;
};

/** Gathers rows into batches of at most `batchBytes` by weight. */
export class RowCutter implements Cutter<readonly InputRow[]> {
  readonly #origin: Origin;
  readonly #batchBytes: number;
  #rows: InputRow[] = [];
  /** Rows whose weight is known, all of which fit one batch. */
  #weighed = 0;
  #weightBytes = 0;

  constructor(origin: Origin, batchBytes = BATCH_BYTES) {
    this.#origin = origin;
    this.#batchBytes = batchBytes;
  }

  push(rows: readonly InputRow[]): void {
    for (const row of rows) this.#rows.push(row);
  }

  takeFull(): Batch | undefined {
    for (; this.#weighed < this.#rows.length; this.#weighed++) {
      const weightBytes = this.#rows[this.#weighed]?.weightBytes ?? 0;
      // One that is too heavy by itself is a batch of its own.
      if (this.#weighed > 0 && this.#weightBytes + weightBytes > this.#batchBytes) return this.#take(this.#weighed);
      this.#weightBytes += weightBytes;
    }
    return undefined;
  }

  takeLines(): Batch | undefined {
    return this.#rows.length === 0 ? undefined : this.#take(this.#rows.length);
  }

  takeRest(): Batch | undefined {
    return this.takeLines();
  }

  #take(count: number): Batch {
    const rows = this.#rows.splice(0, count);
    this.#weighed = 0;
    this.#weightBytes = 0;
    const tooLong = rows.find(({ json }) => Buffer.byteLength(json) >= LIMITS.ingestBodyBytes);
    if (tooLong !== undefined) throw rowTooLong(this.#origin, tooLong.line, LIMITS.ingestBodyBytes - 1);
    const body = Buffer.from(rows.map(({ json }) => `${json}\n`).join(""));
    const lineNumbers = rows.map(({ line }) => line);
    return { body, firstLine: lineNumbers[0] ?? 1, lines: rows.length, lineNumbers };
  }
}
