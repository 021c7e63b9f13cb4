import type { AnyColumn } from "../columns/create.ts";
import { epochToNs, toExactReal, toFinite, toInt32, toInt64 } from "../decimal.ts";
import { timeTextToNs, utcTextToNs } from "../time-text.ts";
import { compactJson } from "./compact.ts";
import { kindAt, skipSpace, valueEnd } from "./json-text.ts";
import { textOf, tokenOf, type Row } from "./json-row.ts";

/** Appends field `index` of the row, which is not null, to the column. False, and nothing written, if it does not fit. */
export function appendField(column: AnyColumn, row: Row, index: number): boolean {
  const kind = row.kinds[index];
  switch (column.storage) {
    case "bool":
      if (kind !== "bool") return false;
      column.appendBool(row.text[row.starts[index] ?? 0] === "t");
      return true;
    case "int":
      return given(kind === "number" ? toInt32(tokenOf(row, index)) : undefined, (value) => column.appendInt(value));
    case "long":
      return given(longOf(column, row, index), (value) => column.appendLong(value));
    case "real":
      return given(kind === "number" ? realOf(column, row, index) : undefined, (value) => column.appendReal(value));
    case "text":
      column.appendText(
        kind === "string" && column.spec.type.kind === "string" ? textOf(row, index) : jsonOf(row, index),
      );
      return true;
    case "vector": {
      const vector = kind === "array" ? vectorOf(row, index, column.dimensions) : undefined;
      return given(vector, (value) => column.appendVector(value));
    }
  }
}

/** Field `index` as a point in time, nanoseconds since the epoch; undefined when it is none. */
export function timeOf(row: Row, index: number): bigint | undefined {
  const kind = row.kinds[index];
  if (kind === "string") return timeTextToNs(textOf(row, index));
  return kind === "number" ? epochToNs(tokenOf(row, index)) : undefined;
}

/** Field `index` as a point in time that it would be written as again. */
function utcTimeOf(row: Row, index: number): bigint | undefined {
  return row.kinds[index] === "string" ? utcTextToNs(textOf(row, index)) : undefined;
}

/** Field `index` as compact JSON. */
export function jsonOf(row: Row, index: number): string {
  return compactJson(row.text, row.starts[index] ?? 0, row.ends[index] ?? 0);
}

function realOf({ spec }: AnyColumn, row: Row, index: number): number | undefined {
  const token = tokenOf(row, index);
  return spec.inferred === true ? toExactReal(token) : toFinite(token);
}

function longOf({ spec }: AnyColumn, row: Row, index: number): bigint | undefined {
  if (spec.type.kind === "timestamp") return spec.inferred === true ? utcTimeOf(row, index) : timeOf(row, index);
  return row.kinds[index] === "number" ? toInt64(tokenOf(row, index)) : undefined;
}

function given<T>(value: T | undefined, append: (value: T) => void): boolean {
  if (value === undefined) return false;
  append(value);
  return true;
}

/** The array at field `index` when it is exactly `dimensions` numbers, each finite in 32 bits. */
function vectorOf(row: Row, index: number, dimensions: number): Float32Array | undefined {
  const { text } = row;
  const vector = new Float32Array(dimensions);
  let at = skipSpace(text, (row.starts[index] ?? 0) + 1);
  for (let i = 0; i < dimensions; i++) {
    if (text[at] === "]" || kindAt(text, at) !== "number") return undefined;
    const end = valueEnd(text, at, "number");
    const value = Math.fround(Number(text.slice(at, end)));
    if (!Number.isFinite(value)) return undefined;
    vector[i] = value;
    at = skipSpace(text, end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return text[at] === "]" ? vector : undefined;
}
