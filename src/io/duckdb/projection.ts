import { quoteIdentifier, quoteText, type DuckDb, type LogicalType } from "./duckdb.ts";

/** What the values are written for. */
export type OutputFormat = "ndjson" | "arrow" | "csv" | "parquet" | "json";

/**
 * How values become what a format holds (the table is in `formats.ts`). DuckDB writes NDJSON, CSV and Parquet itself;
 * each column goes through an expression where its own way of writing the type is not ours. For JSON:
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

/**
 * The SELECT that turns rows of `source` (a query's text) into rows that can be written in the format; for NDJSON and JSON,
 * into their lines.
 */
export function outputQuery(
  duckdb: DuckDb,
  columns: readonly OutputColumn[],
  source: string,
  format: OutputFormat,
): string {
  const inner = columns.map((_, i) => `c${i}`);
  const names = uniqueNames(columns.map((column) => column.name));
  const cells = columns.map(({ type }, i) => cell(duckdb, type, `engine_row.c${i}`, format) ?? `engine_row.c${i}`);
  const items =
    format === "ndjson" || format === "json"
      ? `CAST(json_object(${cells.map((value, i) => `${quoteText(names[i] ?? "")}, ${value}`).join(", ")}) AS VARCHAR)`
      : cells.map((value, i) => `${value} AS ${quoteIdentifier(names[i] ?? "")}`).join(", ");
  // The line break ends a comment that the text may end with.
  return `SELECT ${items} FROM (${source}\n) AS engine_row(${inner.join(", ")})`;
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

/** Writes one type: the expression for `value`, or undefined when DuckDB's own way is right. */
type Writer = (value: string) => string | undefined;

type TypeName = keyof DuckDb["Type"];

/** How one family of formats writes values at any depth. What is not in `writers` is right as it is. */
type Rules = {
  writers: Partial<Record<TypeName, Writer>>;
  /** A shorter way for a whole list of FLOAT. */
  floats?: Writer;
  /** The function that makes a struct whose fields have no names, and whether it takes names for them. */
  unnamed: { pack: string; named: boolean };
  /** Whether keys of maps may be turned like other values. */
  turnsKey(duckdb: DuckDb, type: LogicalType): boolean;
};

const text: Writer = (value) => `CAST(${value} AS VARCHAR)`;
const jsonText: Writer = (value) => `CAST(to_json(${value}) AS VARCHAR)`;
const wallClock: Writer = (value) => finiteTime(value, `replace(CAST(${value} AS VARCHAR), ' ', 'T')`);

/** Moments and bytes as text. */
const TEXTS: Rules["writers"] = {
  TIMESTAMP_NS: (value) => `engine_rfc3339(${value})`,
  TIMESTAMP_TZ: (value) => finiteTime(value, `replace(CAST(CAST(${value} AS TIMESTAMP) AS VARCHAR), ' ', 'T') || 'Z'`),
  TIMESTAMP: wallClock,
  TIMESTAMP_S: wallClock,
  TIMESTAMP_MS: wallClock,
  BLOB: (value) => `to_base64(${value})`,
};

const JSON_RULES: Rules = {
  writers: {
    ...TEXTS,
    DOUBLE: (value) => `CASE WHEN isfinite(${value}) THEN ${value} END`,
    // By way of text, so that 0.1 is written as 0.1 and not as the double next to the float.
    FLOAT: (value) => `CASE WHEN isfinite(${value}) THEN CAST(CAST(${value} AS VARCHAR) AS DOUBLE) END`,
    VARIANT: (value) => `CAST(${value} AS JSON)`,
  },
  // DuckDB's text for a list of floats is JSON but for NULL, nan and inf, and much faster than item by item.
  floats: (value) => `CAST(CASE WHEN regexp_matches(${text(value)}, '[nN]')
    THEN regexp_replace(${text(value)}, '-?(nan|inf|NULL)', 'null', 'g') ELSE ${text(value)} END AS JSON)`,
  unnamed: { pack: "json_array", named: false },
  // Non-finite keys would all become null, and a map takes a key once; as text they are fine.
  turnsKey: (duckdb, type) => ![duckdb.Type.DOUBLE, duckdb.Type.FLOAT].includes(duckdb.get_type_id(type)),
};

/** For formats with types of their own: only what they cannot hold, or not exactly, is turned. */
const PARQUET_RULES: Rules = {
  writers: {
    // DuckDB would write these as doubles.
    HUGEINT: (value) => `CAST(${value} AS DECIMAL(38, 0))`,
    UHUGEINT: (value) => `CAST(${value} AS DECIMAL(38, 0))`,
    // Parquet's own has milliseconds only.
    INTERVAL: text,
    TIME_TZ: text,
    BIT: text,
    BIGNUM: text,
    ENUM: text,
    GEOMETRY: text,
    UNION: jsonText,
    VARIANT: (value) => text(`CAST(${value} AS JSON)`),
    SQLNULL: (value) => `CAST(${value} AS INTEGER)`,
  },
  unnamed: { pack: "struct_pack", named: true },
  turnsKey: () => true,
};

const ARROW_RULES: Rules = { ...PARQUET_RULES, writers: { ...PARQUET_RULES.writers, UUID: text } };

const NESTED = new Set<TypeName>(["LIST", "ARRAY", "STRUCT", "MAP", "UNION", "VARIANT"]);

/** The expression for a cell of the result; undefined when it is right as it is. */
function cell(duckdb: DuckDb, type: LogicalType, value: string, format: OutputFormat): string | undefined {
  switch (format) {
    case "ndjson":
    case "json":
      return turned(JSON_RULES, duckdb, type, value, 0);
    case "parquet":
      return turned(PARQUET_RULES, duckdb, type, value, 0);
    case "arrow":
      return turned(ARROW_RULES, duckdb, type, value, 0);
    case "csv": {
      const name = typeName(duckdb, type);
      if (NESTED.has(name)) return jsonText(turned(JSON_RULES, duckdb, type, value, 0) ?? value);
      return TEXTS[name]?.(value);
    }
  }
}

function typeName(duckdb: DuckDb, type: LogicalType): TypeName {
  return duckdb.Type[duckdb.get_type_id(type)] as TypeName;
}

/** The expression for a value at any depth; undefined when it is right as it is. */
function turned(rules: Rules, duckdb: DuckDb, type: LogicalType, value: string, depth: number): string | undefined {
  const name = typeName(duckdb, type);
  const nested = CONTAINERS[name];
  return nested === undefined ? rules.writers[name]?.(value) : nested(rules, duckdb, type, value, depth);
}

type Nested = (rules: Rules, duckdb: DuckDb, type: LogicalType, value: string, depth: number) => string | undefined;

const CONTAINERS: Partial<Record<TypeName, Nested>> = {
  LIST: (rules, duckdb, type, value, depth) =>
    turnedList(rules, duckdb, duckdb.list_type_child_type(type), value, depth),
  ARRAY: (rules, duckdb, type, value, depth) =>
    turnedList(rules, duckdb, duckdb.array_type_child_type(type), value, depth),
  STRUCT: turnedStruct,
  MAP: turnedMap,
};

function finiteTime(value: string, expression: string): string {
  return `CASE WHEN isfinite(${value}) THEN ${expression} ELSE CAST(${value} AS VARCHAR) END`;
}

function turnedList(rules: Rules, duckdb: DuckDb, item: LogicalType, value: string, depth: number): string | undefined {
  if (rules.floats !== undefined && duckdb.get_type_id(item) === duckdb.Type.FLOAT) return rules.floats(value);
  const variable = `v${depth}`;
  const expression = turned(rules, duckdb, item, variable, depth + 1);
  return expression === undefined ? undefined : mapped(value, variable, expression);
}

function mapped(list: string, variable: string, expression: string): string {
  return `list_transform(${list}, lambda ${variable}: ${expression})`;
}

function turnedStruct(
  rules: Rules,
  duckdb: DuckDb,
  type: LogicalType,
  value: string,
  depth: number,
): string | undefined {
  const count = duckdb.struct_type_child_count(type);
  const fields = Array.from({ length: count }, (_, i) => {
    const name = duckdb.struct_type_child_name(type, i);
    const field =
      name === "" ? `struct_extract_at(${value}, ${i + 1})` : `struct_extract(${value}, ${quoteText(name)})`;
    return { name, field, expression: turned(rules, duckdb, duckdb.struct_type_child_type(type, i), field, depth) };
  });
  const unnamed = fields.some(({ name }) => name === "");
  if (!unnamed && fields.every(({ expression }) => expression === undefined)) return undefined;
  const isNamed = !unnamed || rules.unnamed.named;
  const items = fields.map(({ name, field, expression }, i) =>
    isNamed ? `${quoteIdentifier(unnamed ? `f${i + 1}` : name)} := ${expression ?? field}` : (expression ?? field),
  );
  const pack = unnamed ? rules.unnamed.pack : "struct_pack";
  return `CASE WHEN ${value} IS NOT NULL THEN ${pack}(${items.join(", ")}) END`;
}

function turnedMap(rules: Rules, duckdb: DuckDb, type: LogicalType, value: string, depth: number): string | undefined {
  const variable = `v${depth}`;
  const keyType = duckdb.map_type_key_type(type);
  const key = rules.turnsKey(duckdb, keyType) ? turned(rules, duckdb, keyType, variable, depth + 1) : undefined;
  const item = turned(rules, duckdb, duckdb.map_type_value_type(type), variable, depth + 1);
  if (key === undefined && item === undefined) return undefined;
  const keys = `map_keys(${value})`;
  const items = `map_values(${value})`;
  return `CASE WHEN ${value} IS NOT NULL THEN map(${key === undefined ? keys : mapped(keys, variable, key)},
    ${item === undefined ? items : mapped(items, variable, item)}) END`;
}
