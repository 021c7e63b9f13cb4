import type { ColumnType } from "../../format/types.ts";
import type { DuckDb, LogicalType } from "./duckdb.ts";

type TypeName = keyof DuckDb["Type"];

/** Digits that a double keeps, and that 64 bits keep. */
const EXACT_DIGITS = { real: 15, long: 18 } as const;

const KINDS: Partial<Record<TypeName, Exclude<ColumnType["kind"], "vector">>> = {
  BOOLEAN: "bool",
  TINYINT: "int",
  SMALLINT: "int",
  INTEGER: "int",
  UTINYINT: "int",
  USMALLINT: "int",
  UINTEGER: "long",
  BIGINT: "long",
  FLOAT: "real",
  DOUBLE: "real",
  DATE: "timestamp",
  TIMESTAMP: "timestamp",
  TIMESTAMP_S: "timestamp",
  TIMESTAMP_MS: "timestamp",
  TIMESTAMP_NS: "timestamp",
  TIMESTAMP_TZ: "timestamp",
  LIST: "dynamic",
  ARRAY: "dynamic",
  STRUCT: "dynamic",
  MAP: "dynamic",
  UNION: "dynamic",
  VARIANT: "dynamic",
};

/**
 * The column type of the product that holds every value of a DuckDB type. What no type holds exactly (integers over 64
 * bits, long decimals, times without a day, bytes) becomes `string`, which keeps all digits.
 */
export function columnTypeOf(duckdb: DuckDb, type: LogicalType): ColumnType {
  const name = duckdb.Type[duckdb.get_type_id(type)] as TypeName;
  if (name === "DECIMAL") return { kind: decimalKind(duckdb.decimal_width(type), duckdb.decimal_scale(type)) };
  if (name === "VARCHAR" && duckdb.logical_type_get_alias(type) === "JSON") return { kind: "dynamic" };
  return { kind: KINDS[name] ?? "string" };
}

function decimalKind(digits: number, scale: number): "long" | "real" | "string" {
  if (scale === 0) return digits <= EXACT_DIGITS.long ? "long" : "string";
  return digits <= EXACT_DIGITS.real ? "real" : "string";
}
