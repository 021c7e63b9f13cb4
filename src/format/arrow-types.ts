import {
  Bool,
  Field,
  FixedSizeList,
  Float32,
  Float64,
  Int32,
  Int64,
  TimestampNanosecond,
  Utf8,
  util,
  type DataType,
} from "apache-arrow";
import type { ColumnSpec, ColumnType } from "./types.ts";

/** The Arrow type that a column is stored as (the table is in `types.ts`). */
export function arrowTypeOf(type: ColumnType): DataType {
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
      return new FixedSizeList(type.dimensions, new Field("item", new Float32(), false));
  }
}

/** Whether a stored column's Arrow type is the one its spec asks for. */
export function isStoredAs(arrow: DataType, spec: ColumnSpec): boolean {
  return util.compareTypes(arrow, arrowTypeOf(spec.type));
}
