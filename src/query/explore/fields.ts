import { EngineError } from "../../core/errors.ts";
import { foldName } from "../../core/names.ts";
import { nearest } from "../../core/nearest.ts";
import { formatColumnType, TIME_COLUMN, type ColumnSpec } from "../../format/types.ts";
import { quoteIdentifier, quoteText } from "../../io/duckdb/duckdb.ts";
import type { TableShape } from "../contract/tables.ts";

/** A column, or a path inside a dynamic one: `level`, `props.user.id`, `["props", "user.id"]`. */
export type FieldName = string | readonly string[];

/** One as it is asked for, and what it is in SQL. Names and keys are in there as identifiers and literals alone. */
export type Field = {
  name: FieldName;
  /** As the table spells it. */
  column: string;
  /** What its values are of: `dynamic` of a path, whose values are texts. */
  type: string;
  kind: ColumnSpec["type"]["kind"];
  /** Its value in a row, NULL where there is none; of a path and of JSON's `null`, too. */
  sql: string;
  /** The same as JSON; of dynamic ones alone. */
  json: string;
};

/**
 * Finds a field. The whole of a text is a name first; else the longest part before a dot that is a dynamic column's, and
 * what follows are keys, or places in arrays. Throws `invalid_parameter`.
 */
export function fieldNamed(shape: TableShape, name: FieldName): Field {
  const [column, keys] = typeof name === "string" ? splitName(shape, name) : listedName(shape, name);
  const { kind } = column.type;
  const own = { name, column: column.name, kind, type: formatColumnType(column.type) };
  const sql = quoteIdentifier(column.name);
  if (keys.length === 0) return { ...own, sql, json: `CAST(${sql} AS JSON)` };
  // A JSON pointer (RFC 6901): any key can be said in it.
  const path = quoteText(keys.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join(""));
  return { ...own, sql: `json_extract_string(${sql}, ${path})`, json: `json_extract(${sql}, ${path})` };
}

/** The column of times. Throws `invalid_parameter` where the table has none. */
export function timeColumn(shape: TableShape): string {
  const column = columnNamed(shape, TIME_COLUMN);
  if (column?.type.kind === "timestamp") return column.name;
  throw new EngineError("invalid_parameter", `the table ${shape.name} has no column ${TIME_COLUMN} of times`);
}

type Split = [column: ColumnSpec, keys: readonly string[]];

function splitName(shape: TableShape, name: string): Split {
  const whole = columnNamed(shape, name);
  if (whole !== undefined) return [whole, []];
  const parts = name.split(".");
  for (let end = parts.length - 1; end > 0; end--) {
    const column = columnNamed(shape, parts.slice(0, end).join("."));
    if (column !== undefined) return [dynamic(column, name), parts.slice(end)];
  }
  throw unknownField(shape, parts[0] ?? name);
}

function listedName(shape: TableShape, [first = "", ...keys]: readonly string[]): Split {
  const column = columnNamed(shape, first);
  if (column === undefined) throw unknownField(shape, first);
  return [keys.length === 0 ? column : dynamic(column, [first, ...keys].join(".")), keys];
}

function columnNamed({ columns }: TableShape, name: string): ColumnSpec | undefined {
  const folded = foldName(name);
  return columns.find((column) => foldName(column.name) === folded);
}

function dynamic(column: ColumnSpec, path: string): ColumnSpec {
  if (column.type.kind === "dynamic") return column;
  const what = `${JSON.stringify(column.name)} is of type ${formatColumnType(column.type)}`;
  throw new EngineError("invalid_parameter", `${JSON.stringify(path)}: ${what}, and only dynamic columns have fields`);
}

function unknownField(shape: TableShape, name: string): EngineError {
  const suggestion = nearest(
    name,
    shape.columns.map((column) => column.name),
  );
  const hint = suggestion === undefined ? "" : `; did you mean ${JSON.stringify(suggestion)}?`;
  return new EngineError("invalid_parameter", `there is no column ${JSON.stringify(name)}${hint}`, {
    ...(suggestion !== undefined && { suggestion }),
  });
}
