import { isBitSet, setBits, zeroBits } from "./bits.ts";
import type { ColumnBlock } from "./column-block.ts";
import { estimateDistinct } from "./distinct.ts";
import { grown } from "./growth.ts";
import type { ColumnSpec, ColumnStats } from "../types.ts";

/**
 * Column builders: what scanners write into and extents are made of.
 *
 * A builder holds one column of the extent under construction as the buffers Arrow prescribes: a validity bitmap
 * (least significant bit first, 1 = has a value) and, by storage, fixed-width values, packed bits, or 32-bit offsets
 * into bytes. Slots without a value are zero, so that equal rows give equal bytes.
 *
 * Columns lag: a row that lacks a field costs its column nothing. `padTo(row)` fills the gap with NULLs when the next
 * value comes, or at the end; a table of 2,000 columns therefore pays only for the fields that its rows have.
 *
 * `mark` takes a savepoint (one at a time) and `rollback` returns to it, leaving the builder as if what came between
 * had never been written.
 */
export abstract class Column {
  readonly spec: ColumnSpec;
  /** Rows written; the column's later rows are NULL until somebody writes them. */
  rows = 0;
  nullCount = 0;
  /** Values that were kept in `props` because they did not fit. */
  misfits = 0;
  protected validity = new Uint8Array(INITIAL_ROWS >>> 3);
  #markRows = 0;
  #markNulls = 0;
  #markMisfits = 0;

  constructor(spec: ColumnSpec) {
    this.spec = spec;
  }

  /** Whether any row has a value. */
  get hasValues(): boolean {
    return this.rows > this.nullCount;
  }

  /** Whether the column is part of the extent: what did not fit is told in its statistics. */
  get isStored(): boolean {
    return this.hasValues || this.misfits > 0;
  }

  appendNull(): void {
    this.padTo(this.rows + 1);
  }

  /** Makes the column `rows` long by appending NULLs; does nothing when it is that long already. */
  padTo(rows: number): void {
    if (rows <= this.rows) return;
    this.reserveRows(rows);
    this.fillNulls(this.rows, rows);
    this.nullCount += rows - this.rows;
    this.rows = rows;
  }

  isValid(row: number): boolean {
    return row < this.rows && isBitSet(this.validity, row);
  }

  /** The first `rows` bits of the validity bitmap, from a `row` that is a multiple of eight. */
  validityBytes(row: number, rows: number): Uint8Array {
    return this.validity.subarray(row >>> 3, (row + rows + 7) >>> 3);
  }

  /** Takes the savepoint that the next `rollback` returns to. */
  mark(): void {
    this.#markRows = this.rows;
    this.#markNulls = this.nullCount;
    this.#markMisfits = this.misfits;
  }

  /** Forgets everything written since `mark`. */
  rollback(): void {
    zeroBits(this.validity, this.#markRows, this.rows);
    this.dropValues(this.#markRows, this.rows);
    this.rows = this.#markRows;
    this.nullCount = this.#markNulls;
    this.misfits = this.#markMisfits;
  }

  /** Takes back what is written from `row` on; does nothing when there is nothing. Those rows must have values. */
  dropRow(row: number): void {
    if (this.rows <= row) return;
    zeroBits(this.validity, row, this.rows);
    this.dropValues(row, this.rows);
    this.rows = row;
  }

  /** Forgets all rows and keeps the buffers, for another extent. */
  reset(): void {
    zeroBits(this.validity, 0, this.rows);
    this.dropValues(0, this.rows);
    this.rows = 0;
    this.nullCount = 0;
    this.misfits = 0;
  }

  /** Nulls, misfits, different values and bounds over the column made `rows` long. Scans the values: call it once, at the end. */
  stats(rows: number): ColumnStats {
    const { misfits } = this;
    const nullCount = this.nullCount + rows - this.rows;
    const stats = { name: this.spec.name, nullCount, ...(misfits > 0 && { misfits }) };
    if (!this.hasValues) return stats;
    const bounds = this.bounds();
    return { ...stats, distinct: this.distinct(bounds), ...bounds };
  }

  /** Bytes that `rows` rows take in an extent, or a little more. */
  encodedBytes(rows: number): number {
    return Math.ceil(rows * this.rowBytes) + ALIGNMENT_BYTES;
  }

  /** Bytes of the buffers, used or not. */
  abstract get capacityBytes(): number;

  /** Bytes that a row takes whether it has a value or not. */
  abstract readonly rowBytes: number;

  /** Makes room for rows up to `rows`, exclusive. */
  protected reserveRows(rows: number): void {
    const bytes = (rows + 7) >>> 3;
    if (bytes > this.validity.length) this.validity = grown(this.validity, bytes);
  }

  /** Whatever NULL rows need beyond the zeroes that are there already. */
  protected fillNulls(_from: number, _to: number): void {}
  /** Zeroes the values of rows `[from, to)`. */
  protected abstract dropValues(from: number, to: number): void;
  /** Bounds of the values, of which there is at least one. */
  protected abstract bounds(): Bounds | undefined;
  /** Puts the hash of the value in `rows[i]` into `hashes[i]`. Equal values have equal hashes. */
  protected abstract hashRows(rows: Int32Array, hashes: Int32Array): void;

  /** How many different values there are, of at least one. */
  protected distinct(bounds: Bounds | undefined): number {
    if (bounds?.min !== undefined && bounds.min === bounds.max) return 1;
    const { rows, nullCount, validity } = this;
    return estimateDistinct({ rows, nullCount, validity, hashRows: (some, hashes) => this.hashRows(some, hashes) });
  }

  /** Appends rows that have been read elsewhere. */
  abstract appendBlock(block: ColumnBlock): void;

  /** Makes the block's rows, whose values are in place, part of the column. */
  protected commitBlock({ bytes, rows, nulls, nullBits }: ColumnBlock): void {
    const [from, to] = [this.rows, this.rows + rows];
    const { validity } = this;
    setBits(validity, from, to);
    if (nulls > 0) {
      // Bits outside of the block's rows are clear there.
      const first = from >>> 3;
      const count = ((to + 7) >>> 3) - first;
      for (let i = 0; i < count; i++) {
        validity[first + i] = (validity[first + i] as number) & ~(bytes[nullBits + i] as number);
      }
    }
    this.nullCount += nulls;
    this.rows = to;
  }

  /** Marks the row at the end as having a value, and makes it part of the column. */
  protected commitValue(): void {
    const row = this.rows++;
    this.validity[row >>> 3] = (this.validity[row >>> 3] ?? 0) | (1 << (row & 7));
  }
}

export type Bounds = { min?: string; max?: string };

/** What the padding of a column's buffers may come to. */
const ALIGNMENT_BYTES = 192;

export const INITIAL_ROWS = 64;
/** A row's share of a bitmap. */
export const VALIDITY_BYTES = 1 / 8;
