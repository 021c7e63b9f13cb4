import { Bool, Decimal, makeData, type Data, type DataType } from "apache-arrow";
import { isBitSet } from "../../format/columns/bits.ts";
import { Growing, packBits } from "./arrow-buffers.ts";
import type { DuckDb, LogicalType, Vector } from "./duckdb.ts";
import { copyTexts, textEnds } from "./text-copy.ts";
import { STRUCT_BYTES } from "./text-vector.ts";

/**
 * Arrow columns filled from DuckDB's vectors. `load` takes a vector of the current chunk, `append` copies a run of its
 * rows behind what the column has, and `take` gives the rows as Arrow data, good until the next `append`, and starts anew.
 * Lists append runs of their child, which is loaded once per chunk however many runs there are. Whole buffers where the
 * layouts agree.
 */
export type ArrowColumn = {
  readonly type: DataType;
  load(vector: Vector, rows: number): void;
  append(start: number, rows: number): void;
  take(): Data;
  /** What the rows so far take. */
  readonly sizeBytes: number;
};

/** Which rows are NULL, one byte each until they are packed. */
export class Validity {
  readonly #flags = new Growing();
  #nulls = 0;
  #loaded: Uint8Array | null = null;

  get sizeBytes(): number {
    return this.#flags.length / 8;
  }

  load(duckdb: DuckDb, vector: Vector, rows: number): void {
    this.#loaded = duckdb.vector_get_validity(vector, Math.ceil(rows / 64) * 8) as Uint8Array | null;
  }

  /** Whether the loaded rows may have NULLs. */
  get hasNulls(): boolean {
    return this.#loaded !== null;
  }

  isValid(row: number): boolean {
    return this.#loaded === null || isBitSet(this.#loaded, row);
  }

  append(start: number, rows: number): void {
    const flags = this.#flags.extend(rows);
    if (this.#loaded === null) {
      flags.fill(1);
      return;
    }
    for (let i = 0; i < rows; i++) {
      const valid = this.isValid(start + i) ? 1 : 0;
      flags[i] = valid;
      this.#nulls += 1 - valid;
    }
  }

  take(): { length: number; nullCount: number; nullBitmap: Uint8Array | undefined } {
    const flags = this.#flags.take();
    const nullCount = this.#nulls;
    this.#nulls = 0;
    return { length: flags.length, nullCount, nullBitmap: nullCount === 0 ? undefined : packBits(flags) };
  }
}

export class FixedColumn implements ArrowColumn {
  readonly type: DataType;
  readonly #duckdb: DuckDb;
  readonly #width: number;
  readonly #validity = new Validity();
  readonly #values = new Growing();
  #loaded: Uint8Array = new Uint8Array();

  constructor(duckdb: DuckDb, type: DataType, width: number) {
    this.#duckdb = duckdb;
    this.type = type;
    this.#width = width;
  }

  get sizeBytes(): number {
    return this.#validity.sizeBytes + this.#values.length;
  }

  load(vector: Vector, rows: number): void {
    this.#validity.load(this.#duckdb, vector, rows);
    this.#loaded = this.#duckdb.vector_get_data(vector, rows * this.#width);
  }

  append(start: number, rows: number): void {
    this.#validity.append(start, rows);
    const width = this.#width;
    this.#values.extend(rows * width).set(this.#loaded.subarray(start * width, (start + rows) * width));
  }

  take(): Data {
    // The constructor of the typed array follows from the type.
    const bytes = this.#values.take();
    const data = new this.type.ArrayType(bytes.buffer, 0, bytes.byteLength / this.type.ArrayType.BYTES_PER_ELEMENT);
    return makeData({ type: this.type, ...this.#validity.take(), data } as never);
  }
}

export class BoolColumn implements ArrowColumn {
  readonly type = new Bool();
  readonly #duckdb: DuckDb;
  readonly #validity = new Validity();
  readonly #values = new Growing();
  #loaded: Uint8Array = new Uint8Array();

  constructor(duckdb: DuckDb) {
    this.#duckdb = duckdb;
  }

  get sizeBytes(): number {
    return this.#validity.sizeBytes + this.#values.length / 8;
  }

  load(vector: Vector, rows: number): void {
    this.#validity.load(this.#duckdb, vector, rows);
    this.#loaded = this.#duckdb.vector_get_data(vector, rows);
  }

  append(start: number, rows: number): void {
    this.#validity.append(start, rows);
    this.#values.extend(rows).set(this.#loaded.subarray(start, start + rows));
  }

  take(): Data {
    return makeData({ type: this.type, ...this.#validity.take(), data: packBits(this.#values.take()) } as never);
  }
}

/** DuckDB keeps a decimal in the smallest integer that holds its width; Arrow's have 16 bytes. */
export class DecimalColumn implements ArrowColumn {
  readonly type: Decimal;
  readonly #duckdb: DuckDb;
  readonly #width: number;
  readonly #validity = new Validity();
  readonly #values = new Growing();
  #loaded: DataView = new DataView(new ArrayBuffer(0));

  constructor(duckdb: DuckDb, type: LogicalType) {
    this.#duckdb = duckdb;
    const digits = duckdb.decimal_width(type);
    this.type = new Decimal(duckdb.decimal_scale(type), digits, 128);
    this.#width = digits <= 4 ? 2 : digits <= 9 ? 4 : digits <= 18 ? 8 : 16;
  }

  get sizeBytes(): number {
    return this.#validity.sizeBytes + this.#values.length;
  }

  load(vector: Vector, rows: number): void {
    this.#validity.load(this.#duckdb, vector, rows);
    const bytes = this.#duckdb.vector_get_data(vector, rows * this.#width);
    this.#loaded = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  append(start: number, rows: number): void {
    this.#validity.append(start, rows);
    const bytes = this.#values.extend(rows * 16);
    const to = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let i = 0; i < rows; i++) {
      const at = (start + i) * this.#width;
      const low = this.#low(at);
      to.setBigInt64(i * 16, low, true);
      to.setBigInt64(i * 16 + 8, this.#width === 16 ? this.#loaded.getBigInt64(at + 8, true) : low >> 63n, true);
    }
  }

  take(): Data {
    const bytes = this.#values.take();
    const data = new Uint32Array(bytes.buffer, 0, bytes.byteLength / 4);
    return makeData({ type: this.type, ...this.#validity.take(), data } as never);
  }

  #low(at: number): bigint {
    if (this.#width === 2) return BigInt(this.#loaded.getInt16(at, true));
    if (this.#width === 4) return BigInt(this.#loaded.getInt32(at, true));
    return this.#loaded.getBigInt64(at, true);
  }
}

/** Text and bytes: offsets of four bytes, so a batch must stay below 2 GiB; `arrow-stream.ts` ends them long before. */
export class TextColumn implements ArrowColumn {
  readonly type: DataType;
  readonly #duckdb: DuckDb;
  readonly #validity = new Validity();
  readonly #offsets = new Growing();
  readonly #bytes = new Growing();
  #structs = new Uint8Array();

  constructor(duckdb: DuckDb, type: DataType) {
    this.#duckdb = duckdb;
    this.type = type;
  }

  get sizeBytes(): number {
    return this.#validity.sizeBytes + this.#offsets.length + this.#bytes.length;
  }

  load(vector: Vector, rows: number): void {
    this.#validity.load(this.#duckdb, vector, rows);
    this.#structs = Uint8Array.from(this.#duckdb.vector_get_data(vector, rows * STRUCT_BYTES));
  }

  append(start: number, rows: number): void {
    this.#validity.append(start, rows);
    const structs = this.#structs.subarray(start * STRUCT_BYTES, (start + rows) * STRUCT_BYTES);
    const validity = this.#validity;
    const isValid = validity.hasNulls ? (row: number) => validity.isValid(start + row) : undefined;
    const offsets = this.#offsets.extend(rows * 4);
    const run = { start: this.#bytes.length, ends: new Int32Array(offsets.buffer, offsets.byteOffset, rows) };
    const to = this.#bytes.extend(textEnds(structs, isValid, run) - run.start);
    copyTexts(this.#duckdb, structs, run, to);
  }

  take(): Data {
    const valueOffsets = offsetsOf(this.#offsets.take());
    return makeData({ type: this.type, ...this.#validity.take(), valueOffsets, data: this.#bytes.take() } as never);
  }
}

/** Ends of the rows as offsets: with the zero that Arrow begins with. */
export function offsetsOf(ends: Uint8Array<ArrayBuffer>): Int32Array {
  const offsets = new Int32Array(ends.byteLength / 4 + 1);
  offsets.set(new Int32Array(ends.buffer, 0, ends.byteLength / 4), 1);
  return offsets;
}
