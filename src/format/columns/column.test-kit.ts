import type { Value } from "../tlm-decode.ts";
import type { AnyColumn } from "./create.ts";

/** Appends a plain value of the column's type, for tests. */
export function appendValue(column: AnyColumn, value: Value): void {
  if (value === null) column.appendNull();
  else if (column.storage === "bool") column.appendBool(value as boolean);
  else if (column.storage === "int") column.appendInt(value as number);
  else if (column.storage === "long") column.appendLong(value as bigint);
  else if (column.storage === "real") column.appendReal(value as number);
  else if (column.storage === "text") column.appendText(value as string);
  else column.appendVector(Float32Array.from(value as number[]));
}
