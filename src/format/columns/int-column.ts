import type { ColumnBlock } from "./column-block.ts";
import { Column, INITIAL_ROWS, VALIDITY_BYTES, type Bounds } from "./column.ts";
import { grown } from "./growth.ts";
import { mix } from "./hash.ts";

/** `int`: 32-bit integers. */
export class IntColumn extends Column {
  readonly storage = "int";
  override readonly rowBytes = 4 + VALIDITY_BYTES;
  #values = new Int32Array(INITIAL_ROWS);

  appendInt(value: number): void {
    this.reserveRows(this.rows + 1);
    this.#values[this.rows] = value;
    this.commitValue();
  }

  values(row: number, rows: number): Int32Array {
    return this.#values.subarray(row, row + rows);
  }

  override appendBlock(block: ColumnBlock): void {
    this.reserveRows(this.rows + block.rows);
    const first = block.values >>> 2;
    this.#values.set(block.ints.subarray(first, first + block.rows), this.rows);
    this.commitBlock(block);
  }

  override get capacityBytes(): number {
    return this.validity.byteLength + this.#values.byteLength;
  }

  protected override reserveRows(rows: number): void {
    if (rows <= this.#values.length) return;
    this.#values = grown(this.#values, rows);
    super.reserveRows(this.#values.length);
  }

  protected override dropValues(from: number, to: number): void {
    this.#values.fill(0, from, to);
  }

  protected override bounds(): Bounds {
    let min = Infinity;
    let max = -Infinity;
    for (let row = 0; row < this.rows; row++) {
      if (this.nullCount > 0 && !this.isValid(row)) continue;
      const value = this.#values[row] ?? 0;
      if (value < min) min = value;
      if (value > max) max = value;
    }
    return { min: String(min), max: String(max) };
  }

  protected override hashRows(rows: Int32Array, hashes: Int32Array): void {
    for (let i = 0; i < rows.length; i++) hashes[i] = mix(0, this.#values[rows[i] ?? 0] ?? 0);
  }
}
