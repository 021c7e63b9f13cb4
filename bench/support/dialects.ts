import { quoteIdentifier, quoteText } from "../../src/io/duckdb/duckdb.ts";
import type { ColumnSpec, ScalarTypeName } from "../../src/format/types.ts";

/** The columns of a dataset as the peers declare them: the type of theirs that a user would choose. */

/** Microseconds are the time that DuckDB reads fastest, and all that the data has. */
const DUCKDB_TYPES: Readonly<Record<ScalarTypeName, string>> = {
  bool: "BOOLEAN",
  int: "INTEGER",
  long: "BIGINT",
  real: "DOUBLE",
  string: "VARCHAR",
  timestamp: "TIMESTAMP",
  dynamic: "JSON",
};

/** Nested values as text, as the engine keeps them: ClickHouse's own JSON type stores each path apart. */
const CLICKHOUSE_TYPES: Readonly<Record<ScalarTypeName, string>> = {
  bool: "Bool",
  int: "Int32",
  long: "Int64",
  real: "Float64",
  string: "String",
  timestamp: "DateTime64(6, 'UTC')",
  dynamic: "String",
};

const POSTGRES_TYPES: Readonly<Record<ScalarTypeName, string>> = {
  bool: "boolean",
  int: "integer",
  long: "bigint",
  real: "double precision",
  string: "text",
  timestamp: "timestamptz",
  dynamic: "jsonb",
};

/** `read_json('…', …)` with the columns declared, so that nothing is guessed. */
export function duckdbReadJson(path: string, columns: readonly ColumnSpec[]): string {
  const types = columns.map((column) => `${quoteIdentifier(column.name)}: ${quoteText(typeIn(DUCKDB_TYPES, column))}`);
  return `read_json(${quoteText(path)}, format = 'newline_delimited', columns = {${types.join(", ")}})`;
}

export function clickhouseColumns(columns: readonly ColumnSpec[]): string {
  return columns.map((column) => `\`${column.name}\` ${typeIn(CLICKHOUSE_TYPES, column)}`).join(", ");
}

export function postgresColumns(columns: readonly ColumnSpec[]): string {
  return columns.map((column) => `${quoteIdentifier(column.name)} ${typeIn(POSTGRES_TYPES, column)}`).join(", ");
}

function typeIn(types: Readonly<Record<ScalarTypeName, string>>, { type }: ColumnSpec): string {
  if (type.kind === "vector") throw new Error("the benchmarks have no vectors");
  return types[type.kind];
}
