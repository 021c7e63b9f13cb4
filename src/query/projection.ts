import { quoteIdentifier, quoteText, type DuckDb, type LogicalType } from "../io/duckdb/duckdb.ts";

/**
 * How values become JSON. DuckDB writes the NDJSON itself; each column goes through an expression where its own way of
 * writing the type is not ours:
 *
 * | type | JSON |
 * |---|---|
 * | TIMESTAMP_NS, TIMESTAMPTZ | `"2024-01-01T00:00:00.123456789Z"`: RFC 3339 in UTC, fraction as short as it is exact |
 * | TIMESTAMP and its other precisions | `"2024-01-01T00:00:00"`: a wall clock without a zone, so without `Z` |
 * | DOUBLE, FLOAT | number, as short as it is exact; NaN and infinities are null |
 * | BIGINT, HUGEINT, DECIMAL | exact number, however many digits |
 * | JSON | nested JSON |
 * | FLOAT[N], lists | array |
 * | STRUCT, MAP | object; a struct without field names is an array |
 * | BLOB | base64 text |
 * | DATE, TIME, INTERVAL, UUID, ENUM, BIT | text, as SQL writes it |
 *
 * The same holds inside lists, structs and maps.
 */
export type OutputColumn = { name: string; type: LogicalType };

/** The SELECT that turns rows of `source` (a query's text) into rows that COPY writes as we want them. */
export function outputQuery(duckdb: DuckDb, columns: readonly OutputColumn[], source: string): string {
  const inner = columns.map((_, i) => `c${i}`);
  const names = uniqueNames(columns.map((column) => column.name));
  const items = columns.map((column, i) => {
    const expression = jsonReady(duckdb, column.type, `engine_row.c${i}`, 0) ?? `engine_row.c${i}`;
    return `${expression} AS ${quoteIdentifier(names[i] ?? "")}`;
  });
  // The line break ends a comment that the text may end with.
  return `SELECT ${items.join(", ")} FROM (${source}\n) AS engine_row(${inner.join(", ")})`;
}

/** Names made unique without regard to case, as members of one JSON object: `a`, `a_1`, `a_2`. */
export function uniqueNames(names: readonly string[]): string[] {
  const taken = new Set<string>();
  const all = new Set(names.map((name) => name.toLowerCase()));
  return names.map((name) => {
    let candidate = name;
    for (let n = 1; taken.has(candidate.toLowerCase()); n++) {
      candidate = `${name}_${n}`;
      // A later column may carry this very name.
      while (all.has(candidate.toLowerCase())) candidate = `${name}_${++n}`;
    }
    taken.add(candidate.toLowerCase());
    return candidate;
  });
}

type Writer = (duckdb: DuckDb, type: LogicalType, value: string, depth: number) => string | undefined;

const wallClock: Writer = (_duckdb, _type, value) => finiteTime(value, `replace(CAST(${value} AS VARCHAR), ' ', 'T')`);

/** By the name of the type; what is not here is right as DuckDB writes it. */
const WRITERS: Partial<Record<keyof DuckDb["Type"], Writer>> = {
  DOUBLE: (_duckdb, _type, value) => `CASE WHEN isfinite(${value}) THEN ${value} END`,
  // By way of text, so that 0.1 is written as 0.1 and not as the double next to the float.
  FLOAT: (_duckdb, _type, value) => `CASE WHEN isfinite(${value}) THEN CAST(CAST(${value} AS VARCHAR) AS DOUBLE) END`,
  TIMESTAMP_NS: (_duckdb, _type, value) => `replace(CAST(${value} AS VARCHAR), ' ', 'T') || 'Z'`,
  TIMESTAMP_TZ: (_duckdb, _type, value) =>
    finiteTime(value, `replace(CAST(CAST(${value} AS TIMESTAMP) AS VARCHAR), ' ', 'T') || 'Z'`),
  TIMESTAMP: wallClock,
  TIMESTAMP_S: wallClock,
  TIMESTAMP_MS: wallClock,
  BLOB: (_duckdb, _type, value) => `to_base64(${value})`,
  VARIANT: (_duckdb, _type, value) => `CAST(${value} AS JSON)`,
  LIST: (duckdb, type, value, depth) => jsonReadyList(duckdb, duckdb.list_type_child_type(type), value, depth),
  ARRAY: (duckdb, type, value, depth) => jsonReadyList(duckdb, duckdb.array_type_child_type(type), value, depth),
  STRUCT: jsonReadyStruct,
  MAP: jsonReadyMap,
};

/** The expression for a value of the type; undefined when DuckDB's own JSON is right as it is. */
function jsonReady(duckdb: DuckDb, type: LogicalType, value: string, depth: number): string | undefined {
  const name = duckdb.Type[duckdb.get_type_id(type)] as keyof DuckDb["Type"];
  return WRITERS[name]?.(duckdb, type, value, depth);
}

function finiteTime(value: string, expression: string): string {
  return `CASE WHEN isfinite(${value}) THEN ${expression} ELSE CAST(${value} AS VARCHAR) END`;
}

function jsonReadyList(duckdb: DuckDb, item: LogicalType, value: string, depth: number): string | undefined {
  if (duckdb.get_type_id(item) === duckdb.Type.FLOAT) return floatsAsJson(value);
  const variable = `v${depth}`;
  const expression = jsonReady(duckdb, item, variable, depth + 1);
  return expression === undefined ? undefined : mapped(value, variable, expression);
}

function mapped(list: string, variable: string, expression: string): string {
  return `list_transform(${list}, lambda ${variable}: ${expression})`;
}

/** DuckDB's text for a list of floats is JSON but for NULL, nan and inf, and much faster than item by item. */
function floatsAsJson(value: string): string {
  const text = `CAST(${value} AS VARCHAR)`;
  return `CAST(CASE WHEN regexp_matches(${text}, '[nN]') THEN regexp_replace(${text}, '-?(nan|inf|NULL)', 'null', 'g')
    ELSE ${text} END AS JSON)`;
}

function jsonReadyStruct(duckdb: DuckDb, type: LogicalType, value: string, depth: number): string | undefined {
  const count = duckdb.struct_type_child_count(type);
  const fields = Array.from({ length: count }, (_, i) => {
    const name = duckdb.struct_type_child_name(type, i);
    const field =
      name === "" ? `struct_extract_at(${value}, ${i + 1})` : `struct_extract(${value}, ${quoteText(name)})`;
    return { name, field, expression: jsonReady(duckdb, duckdb.struct_type_child_type(type, i), field, depth) };
  });
  const unnamed = fields.some(({ name }) => name === "");
  if (!unnamed && fields.every(({ expression }) => expression === undefined)) return undefined;
  const items = fields.map(({ name, field, expression }) =>
    unnamed ? (expression ?? field) : `${quoteIdentifier(name)} := ${expression ?? field}`,
  );
  return `CASE WHEN ${value} IS NOT NULL THEN ${unnamed ? "json_array" : "struct_pack"}(${items.join(", ")}) END`;
}

function jsonReadyMap(duckdb: DuckDb, type: LogicalType, value: string, depth: number): string | undefined {
  const variable = `v${depth}`;
  const keyType = duckdb.map_type_key_type(type);
  const isFloat = [duckdb.Type.DOUBLE, duckdb.Type.FLOAT].includes(duckdb.get_type_id(keyType));
  // Non-finite keys would all become null, and a map takes a key once; as text they are fine.
  const key = isFloat ? undefined : jsonReady(duckdb, keyType, variable, depth + 1);
  const item = jsonReady(duckdb, duckdb.map_type_value_type(type), variable, depth + 1);
  if (key === undefined && item === undefined) return undefined;
  const keys = `map_keys(${value})`;
  const items = `map_values(${value})`;
  return `CASE WHEN ${value} IS NOT NULL THEN map(${key === undefined ? keys : mapped(keys, variable, key)},
    ${item === undefined ? items : mapped(items, variable, item)}) END`;
}
