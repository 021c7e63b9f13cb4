import {
  Bool,
  Field,
  FixedSizeList,
  Float32,
  Float64,
  Int32,
  Int64,
  RecordBatch,
  Schema,
  Struct,
  Table,
  TimestampNanosecond,
  Utf8,
  makeData,
  tableToIPC,
  vectorFromArray,
  type Data,
  type DataType,
} from "apache-arrow";
import { formatColumnType, type ColumnSpec, type ColumnType } from "../../format/types.ts";

/** Builds `tlm` extents for tests from plain values, independently of the sealer. */

export type FixtureValue = null | boolean | number | bigint | string | readonly number[];
export type FixtureRow = Readonly<Record<string, FixtureValue>>;

/** One extent with a record batch per `batchRows` rows; only the columns named are in it. */
export function tlmFixture(
  columns: readonly ColumnSpec[],
  rows: readonly FixtureRow[],
  batchRows: number = Math.max(1, rows.length),
): Uint8Array {
  const schema = new Schema(
    columns.map((column) => {
      const metadata = new Map([["engine.type", formatColumnType(column.type)]]);
      return new Field(column.name, arrowType(column.type), true, metadata);
    }),
    new Map([["engine.format_version", "1"]]),
  );
  const batches: RecordBatch[] = [];
  for (let start = 0; start < rows.length; start += batchRows) {
    const part = rows.slice(start, start + batchRows);
    const children = columns.map((column) => columnData(column, part));
    const data = makeData({ type: new Struct(schema.fields), length: part.length, nullCount: 0, children });
    batches.push(new RecordBatch(schema, data));
  }
  return tableToIPC(new Table(schema, batches), "file");
}

function columnData(column: ColumnSpec, rows: readonly FixtureRow[]): Data {
  const values = rows.map((row) => row[column.name] ?? null);
  // Arrow's own builder takes timestamps as milliseconds; nanoseconds go in as the integers that they are.
  const isTime = column.type.kind === "timestamp";
  const data = vectorFromArray(values, isTime ? new Int64() : arrowType(column.type)).data[0];
  if (data === undefined) throw new Error("no data");
  if (!isTime) return data;
  const { length, nullCount, nullBitmap, values: nanoseconds } = data;
  return makeData({ type: new TimestampNanosecond("UTC"), length, nullCount, nullBitmap, data: nanoseconds });
}

function arrowType(type: ColumnType): DataType {
  switch (type.kind) {
    case "bool":
      return new Bool();
    case "int":
      return new Int32();
    case "long":
      return new Int64();
    case "real":
      return new Float64();
    case "string":
    case "dynamic":
      return new Utf8();
    case "timestamp":
      return new TimestampNanosecond("UTC");
    case "vector":
      return new FixedSizeList(type.dimensions, new Field("item", new Float32(), true));
  }
}
