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

  /** The least and greatest value; undefined when there is none. The low half of a value comes first and is unsigned. */
  range(): { min: bigint; max: bigint } | undefined {
    if (!this.hasValues) return undefined;
    const words = this.#words;
    const hasNulls = this.nullCount > 0;
    let min = -1;
    let minHigh = 0;
    let minLow = 0;
    let max = -1;
    let maxHigh = 0;
    let maxLow = 0;
    for (let row = 0; row < this.rows; row++) {
      if (hasNulls && !this.isValid(row)) continue;
      const high = words[row * 2 + 1] as number;
      const low = (words[row * 2] as number) >>> 0;
      if (min < 0 || high < minHigh || (high === minHigh && low < minLow)) {
        min = row;
        minHigh = high;
        minLow = low;
      }
      if (max < 0 || high > maxHigh || (high === maxHigh && low > maxLow)) {
        max = row;
        maxHigh = high;
        maxLow = low;
      }
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
