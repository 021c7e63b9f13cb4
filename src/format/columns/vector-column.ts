import type { ColumnBlock } from "./column-block.ts";
import { Column, INITIAL_ROWS, VALIDITY_BYTES, type Bounds } from "./column.ts";
import { grown } from "./growth.ts";
import { hashBytes } from "./hash.ts";

/** `vector(N)`: N 32-bit floats per row. */
export class VectorColumn extends Column {
  readonly storage = "vector";
  override readonly rowBytes: number;
  readonly dimensions: number;
  #values: Float32Array<ArrayBuffer>;
  #capacity = 1;

  constructor(spec: Column["spec"], dimensions: number) {
    super(spec);
    this.dimensions = dimensions;
    this.rowBytes = dimensions * 4 + VALIDITY_BYTES;
    this.#values = new Float32Array(dimensions);
  }

  /** Appends the first `dimensions` elements of `vector`. */
  appendVector(vector: Float32Array): void {
    this.reserveRows(this.rows + 1);
    const start = this.rows * this.dimensions;
    this.#values.set(vector.length === this.dimensions ? vector : vector.subarray(0, this.dimensions), start);
    this.commitValue();
  }

  values(row: number, rows: number): Float32Array {
    return this.#values.subarray(row * this.dimensions, (row + rows) * this.dimensions);
  }

  override appendBlock(_block: ColumnBlock): void {
    throw new Error("no block has vectors");
  }

  override get capacityBytes(): number {
    return this.validity.byteLength + this.#values.byteLength;
  }

  protected override reserveRows(rows: number): void {
    if (rows <= this.#capacity) return;
    this.#values = grown(this.#values, rows * this.dimensions);
    this.#capacity = Math.floor(this.#values.length / this.dimensions);
    super.reserveRows(Math.max(INITIAL_ROWS, this.#capacity));
  }

  protected override dropValues(from: number, to: number): void {
    this.#values.fill(0, from * this.dimensions, to * this.dimensions);
  }

  protected override bounds(): Bounds | undefined {
    return undefined;
  }

  protected override hashRows(rows: Int32Array, hashes: Int32Array): void {
    const view = new DataView(this.#values.buffer);
    const vectorBytes = this.dimensions * Float32Array.BYTES_PER_ELEMENT;
    for (let i = 0; i < rows.length; i++) hashes[i] = hashBytes(view, (rows[i] ?? 0) * vectorBytes, vectorBytes);
  }
}
