import { Field, makeData, RecordBatch, RecordBatchFileWriter, Schema, Struct, type Data } from "apache-arrow";
import { arrowTypeOf } from "./arrow-types.ts";
import type { ColumnSet } from "./columns/column-set.ts";
import type { AnyColumn } from "./columns/create.ts";
import { FORMAT_VERSION, formatColumnType } from "./types.ts";

/**
 * `tlm`, the row-group-free extent format: an Arrow IPC file, readable by anything that reads Arrow.
 *
 * - Schema metadata `engine.format_version`; every field carries its type in `engine.type`, so that `dynamic` and
 *   `string`, which are both Utf8, stay apart.
 * - Fields in the table's order, then columns that the extent added. All are nullable. A column without a single value
 *   is left out (never `at`, which every row has): readers give NULL for what they do not find, and a table of 2,000
 *   columns whose rows have ten costs ten.
 * - Record batches of `BATCH_ROWS` rows, so that a reader can stop early and never needs more than one in memory.
 * - No dictionaries and no compression: readers take the buffers as they lie.
 */
export const BATCH_ROWS = 65_536;

/** Metadata keys. */
export const FORMAT_VERSION_KEY = "engine.format_version";
export const TYPE_KEY = "engine.type";

/** The columns that an extent of these rows has. */
export function storedColumns(set: ColumnSet): AnyColumn[] {
  return set.columns.filter((column) => column.hasValues);
}

/** Encodes all finished rows. The columns are padded to the set's rows; buffers are copied once, into the result. */
export function encodeTlm(set: ColumnSet): Uint8Array<ArrayBuffer> {
  const columns = storedColumns(set);
  for (const column of columns) column.padTo(set.rows);
  const fields = columns.map(({ spec }) => {
    return new Field(spec.name, arrowTypeOf(spec.type), true, new Map([[TYPE_KEY, formatColumnType(spec.type)]]));
  });
  const schema = new Schema(fields, new Map([[FORMAT_VERSION_KEY, String(FORMAT_VERSION.tlm)]]));
  const writer = new RecordBatchFileWriter();
  writer.reset(undefined, schema);
  for (let row = 0; row < set.rows; row += BATCH_ROWS) {
    const length = Math.min(BATCH_ROWS, set.rows - row);
    const children = columns.map((column) => dataOf(column, row, length));
    const data = makeData({ type: new Struct(fields), length, nullCount: 0, children });
    writer.write(new RecordBatch(schema, data));
  }
  writer.close();
  return owned(writer.toUint8Array(true));
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

/** The bytes in an ArrayBuffer that holds nothing else, so that it can be transferred to another thread. */
function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { buffer } = bytes;
  const alone = buffer instanceof ArrayBuffer && bytes.byteLength === buffer.byteLength;
  return alone ? new Uint8Array(buffer) : Uint8Array.from(bytes);
}
