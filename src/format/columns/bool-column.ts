import { isBitSet, zeroBits } from "./bits.ts";
import type { ColumnBlock } from "./column-block.ts";
import { Column, INITIAL_ROWS, VALIDITY_BYTES, type Bounds } from "./column.ts";
import { grown } from "./growth.ts";

/** `bool`: packed bits. Bounds order `false` before `true`. */
export class BoolColumn extends Column {
  readonly storage = "bool";
  override readonly rowBytes = 2 * VALIDITY_BYTES;
  #bits = new Uint8Array(INITIAL_ROWS >>> 3);

  appendBool(value: boolean): void {
    this.reserveRows(this.rows + 1);
    if (value) this.#bits[this.rows >>> 3] = (this.#bits[this.rows >>> 3] ?? 0) | (1 << (this.rows & 7));
    this.commitValue();
  }

  /** The bits from `row`, a multiple of eight. */
  values(row: number, rows: number): Uint8Array {
    return this.#bits.subarray(row >>> 3, (row + rows + 7) >>> 3);
  }

  override appendBlock(block: ColumnBlock): void {
    this.reserveRows(this.rows + block.rows);
    const first = this.rows >>> 3;
    const count = ((this.rows + block.rows + 7) >>> 3) - first;
    for (let i = 0; i < count; i++) {
      this.#bits[first + i] = (this.#bits[first + i] as number) | (block.bytes[block.values + i] as number);
    }
    this.commitBlock(block);
  }

  override get capacityBytes(): number {
    return this.validity.byteLength + this.#bits.byteLength;
  }

  protected override reserveRows(rows: number): void {
    if (rows <= this.#bits.length * 8) return;
    this.#bits = grown(this.#bits, (rows + 7) >>> 3);
    super.reserveRows(this.#bits.length * 8);
  }

  protected override dropValues(from: number, to: number): void {
    zeroBits(this.#bits, from, to);
  }

  protected override bounds(): Bounds {
    let some = false;
    let every = true;
    for (let row = 0; row < this.rows; row++) {
      if (!this.isValid(row)) continue;
      const value = isBitSet(this.#bits, row);
      some ||= value;
      every &&= value;
    }
    return { min: String(every), max: String(some) };
  }

  /** The bounds say it exactly. */
  protected override distinct({ min, max }: Bounds): number {
    return min === max ? 1 : 2;
  }

  protected override hashRows(rows: Int32Array, hashes: Int32Array): void {
    for (let i = 0; i < rows.length; i++) hashes[i] = isBitSet(this.#bits, rows[i] ?? 0) ? 1 : 0;
  }
}
