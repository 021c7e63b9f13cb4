import { toExactReal } from "../decimal.ts";
import type { ColumnBlock } from "./column-block.ts";
import { Column, INITIAL_ROWS, VALIDITY_BYTES, type Bounds } from "./column.ts";
import { grown } from "./growth.ts";
import { mix } from "./hash.ts";

/**
 * `long` and `timestamp` (nanoseconds since the epoch): 64-bit integers.
 *
 * Reading a BigInt64Array makes a BigInt on the heap per element, so the bounds are found on the 32-bit halves.
 */
export class LongColumn extends Column {
  readonly storage = "long";
  override readonly rowBytes = 8 + VALIDITY_BYTES;
  #values = new BigInt64Array(INITIAL_ROWS);
  #words = new Int32Array(this.#values.buffer);

  appendLong(value: bigint): void {
    this.reserveRows(this.rows + 1);
    this.#values[this.rows] = value;
    this.commitValue();
  }

  /** Appends `high * 2^32 + low`; both are taken modulo 2^32. */
  appendWords(high: number, low: number): void {
    this.reserveRows(this.rows + 1);
    this.#words[this.rows * 2] = low;
    this.#words[this.rows * 2 + 1] = high;
    this.commitValue();
  }

  values(row: number, rows: number): BigInt64Array {
    return this.#values.subarray(row, row + rows);
  }

  /** The least and greatest value; undefined when there is none. */
  range(): { min: bigint; max: bigint } | undefined {
    if (!this.hasValues) return undefined;
    const words = this.#words;
    let min = -1;
    let max = -1;
    for (let row = 0; row < this.rows; row++) {
      if (this.nullCount > 0 && !this.isValid(row)) continue;
      if (min < 0 || isLess(words, row, min)) min = row;
      if (max < 0 || isLess(words, max, row)) max = row;
    }
    return { min: this.#values[min] ?? 0n, max: this.#values[max] ?? 0n };
  }

  /** Whether a double holds every value exactly, so that its shortest decimal is the same number. */
  fitsReal(): boolean {
    const range = this.range();
    if (range === undefined || (range.min >= -SAFE && range.max <= SAFE)) return true;
    return this.#values
      .subarray(0, this.rows)
      .every((value) => (value >= -SAFE && value <= SAFE) || toExactReal(String(value)) !== undefined);
  }

  override appendBlock(block: ColumnBlock): void {
    this.reserveRows(this.rows + block.rows);
    const first = block.values >>> 3;
    this.#values.set(block.longs.subarray(first, first + block.rows), this.rows);
    this.commitBlock(block);
  }

  override get capacityBytes(): number {
    return this.validity.byteLength + this.#values.byteLength;
  }

  protected override reserveRows(rows: number): void {
    if (rows <= this.#values.length) return;
    this.#values = grown(this.#values, rows);
    this.#words = new Int32Array(this.#values.buffer);
    super.reserveRows(this.#values.length);
  }

  protected override dropValues(from: number, to: number): void {
    this.#values.fill(0n, from, to);
  }

  protected override bounds(): Bounds | undefined {
    const range = this.range();
    return range && { min: range.min.toString(), max: range.max.toString() };
  }

  protected override hashRows(rows: Int32Array, hashes: Int32Array): void {
    const words = this.#words;
    for (let i = 0; i < rows.length; i++) {
      const at = (rows[i] ?? 0) * 2;
      hashes[i] = mix(mix(0, words[at + 1] ?? 0), words[at] ?? 0);
    }
  }
}

/** Up to here every integer is a double. */
const SAFE = 2n ** 53n;

/** Whether the value in row `a` is less than the one in row `b`; the low half comes first and is unsigned. */
function isLess(words: Int32Array, a: number, b: number): boolean {
  const highA = words[a * 2 + 1] ?? 0;
  const highB = words[b * 2 + 1] ?? 0;
  if (highA !== highB) return highA < highB;
  return (words[a * 2] ?? 0) >>> 0 < (words[b * 2] ?? 0) >>> 0;
}
