import {
  AsyncByteQueue,
  Field,
  makeData,
  RecordBatch,
  RecordBatchFileWriter,
  Schema,
  Struct,
  type Data,
} from "apache-arrow";
import { arrowTypeOf } from "./arrow-types.ts";
import type { ColumnSet } from "./columns/column-set.ts";
import type { AnyColumn } from "./columns/create.ts";
import { FORMAT_VERSION, FORMAT_VERSION_KEY, formatColumnType, TYPE_KEY } from "./types.ts";

/**
 * `tlm`, the row-group-free extent format: an Arrow IPC file, readable by anything that reads Arrow.
 *
 * - Schema metadata `engine.format_version`; every field carries its type in `engine.type`, so that `dynamic` and
 *   `string`, which are both Utf8, stay apart.
 * - Fields in the table's order, then columns that the extent added. All are nullable. A column without a single value
 *   is left out (never `at`, which every row has), unless a value came that did not fit it: readers give NULL for what
 *   they do not find, and a table of 2,000 columns whose rows have ten costs ten.
 * - Record batches of `BATCH_ROWS` rows, so that a reader can stop early and never needs more than one in memory.
 * - No dictionaries and no compression: readers take the buffers as they lie.
 */
export const BATCH_ROWS = 65_536;

/** The columns that an extent of these rows has. */
export function storedColumns(set: ColumnSet): AnyColumn[] {
  return set.columns.filter((column) => column.isStored);
}

/**
 * Encodes all finished rows. The columns are padded to the set's rows; buffers are copied once, into `target` if they
 * fit there, else into a buffer of their own.
 */
export function encodeTlm(set: ColumnSet, target?: ArrayBufferLike): Uint8Array {
  const columns = storedColumns(set);
  for (const column of columns) column.padTo(set.rows);
  const fields = columns.map(({ spec }) => {
    return new Field(spec.name, arrowTypeOf(spec.type), true, new Map([[TYPE_KEY, formatColumnType(spec.type)]]));
  });
  const schema = new Schema(fields, new Map([[FORMAT_VERSION_KEY, String(FORMAT_VERSION.tlm)]]));
  const sink = new BufferSink(target ?? new ArrayBuffer(estimateBytes(columns, set.rows)));
  const writer = new RecordBatchFileWriter();
  writer.reset(sink, schema);
  for (let row = 0; row < set.rows; row += BATCH_ROWS) {
    const length = Math.min(BATCH_ROWS, set.rows - row);
    const children = columns.map((column) => dataOf(column, row, length));
    const data = makeData({ type: new Struct(fields), length, nullCount: 0, children });
    writer.write(new RecordBatch(schema, data));
  }
  writer.close();
  return sink.written();
}

/** Takes the writer's pieces one behind the other; moves to a larger buffer of its own when they do not fit. */
class BufferSink extends AsyncByteQueue {
  #bytes: Uint8Array;
  #length = 0;

  constructor(target: ArrayBufferLike) {
    super();
    this.#bytes = new Uint8Array(target);
  }

  override write(piece: ArrayBufferView | ArrayBufferLike | string): void {
    const bytes = bytesOf(piece);
    const end = this.#length + bytes.byteLength;
    if (end > this.#bytes.byteLength) this.#grow(end);
    this.#bytes.set(bytes, this.#length);
    this.#length = end;
  }

  written(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  #grow(needed: number): void {
    const larger = new Uint8Array(Math.max(needed, this.#bytes.byteLength * 2));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}

/** A piece that one of Arrow's writers hands on, as bytes. */
export function bytesOf(piece: ArrayBufferView | ArrayBufferLike | string): Uint8Array {
  if (typeof piece === "string") return Buffer.from(piece);
  if (!ArrayBuffer.isView(piece)) return new Uint8Array(piece);
  return new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength);
}

const SCHEMA_BYTES_PER_COLUMN = 512;

function estimateBytes(columns: readonly AnyColumn[], rows: number): number {
  const buffers = columns.reduce((sum, column) => sum + column.encodedBytes(rows) + SCHEMA_BYTES_PER_COLUMN, 0);
  return buffers + SCHEMA_BYTES_PER_COLUMN;
}

/** Rows `[row, row + length)` of a column as views of its buffers; `row` is a multiple of eight. */
function dataOf(column: AnyColumn, row: number, length: number): Data {
  const nullBitmap = column.validityBytes(row, length);
  const nullCount = column.nullCount === 0 ? 0 : length - countBits(nullBitmap);
  const common = { length, nullCount, nullBitmap };
  const type = arrowTypeOf(column.spec.type);
  switch (column.storage) {
    case "text":
      return makeData({ type, ...common, valueOffsets: column.offsets(row, length), data: column.bytes() } as never);
    case "vector": {
      const values = column.values(row, length);
      const child = makeData({
        type: type.children[0]?.type,
        length: values.length,
        nullCount: 0,
        data: values,
      } as never);
      return makeData({ type, ...common, child } as never);
    }
    case "bool":
    case "int":
    case "long":
    case "real":
      return makeData({ type, ...common, data: column.values(row, length) } as never);
  }
}

/** How many bits are set; a builder has none beyond its rows. */
function countBits(bits: Uint8Array): number {
  let count = 0;
  for (let at = 0; at < bits.length; at++) {
    for (let byte = bits[at] ?? 0; byte !== 0; byte &= byte - 1) count++;
  }
  return count;
}
