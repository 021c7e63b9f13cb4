import type * as Bindings from "@duckdb/node-bindings";
import { readTexts, STRUCT_BYTES } from "./text-vector.ts";
import type { ColumnType } from "../../format/types.ts";

/**
 * DuckDB, as this program uses it: through the low-level bindings, because the table function that reads `tlm`
 * extents writes whole buffers into DuckDB's vectors.
 *
 * The library is 70 MB of native code. It is loaded on first use, so that a process that never runs a query (the
 * command line, `--version`, ingest into `tlm`) never pays for it.
 */
export type DuckDb = typeof Bindings;
export type { Connection, Database, DataChunk, LogicalType, PreparedStatement, Vector } from "@duckdb/node-bindings";

let loading: Promise<DuckDb> | undefined;

export function loadDuckDb(): Promise<DuckDb> {
  // The package is CommonJS: its functions are on the default export.
  loading ??= import("@duckdb/node-bindings").then((module) => (module as unknown as { default: DuckDb }).default);
  return loading;
}

/** Runs a statement and returns its rows as text, NULL as null. For the engine's own small look-ups. */
export async function runSql(
  duckdb: DuckDb,
  connection: Bindings.Connection,
  sql: string,
  ...parameters: string[]
): Promise<(string | null)[][]> {
  if (parameters.length === 0) return readTextRows(duckdb, await duckdb.query(connection, sql));
  return readStatement(duckdb, await duckdb.prepare(connection, sql), parameters);
}

/** The same for a text that comes of somebody else's: it runs only if it is one statement of that kind. */
export async function runOne(
  duckdb: DuckDb,
  connection: Bindings.Connection,
  sql: string,
  kind: "SELECT" | "EXPLAIN",
): Promise<(string | null)[][]> {
  return readStatement(duckdb, await prepareOne(duckdb, connection, sql, kind), []);
}

async function readStatement(
  duckdb: DuckDb,
  statement: Bindings.PreparedStatement,
  parameters: readonly string[],
): Promise<(string | null)[][]> {
  try {
    for (const [i, value] of parameters.entries()) duckdb.bind_varchar(statement, i + 1, value);
    return await readTextRows(duckdb, await duckdb.execute_prepared(statement));
  } finally {
    duckdb.destroy_prepare_sync(statement);
  }
}

/**
 * Prepares a text that must be one statement of that kind, and throws for any other, of which nothing has run then. (A
 * text that is given to `query` may be any number of statements of any kind.)
 */
export async function prepareOne(
  duckdb: DuckDb,
  connection: Bindings.Connection,
  sql: string,
  kind: "SELECT" | "EXPLAIN" | "COPY" | "CREATE",
): Promise<Bindings.PreparedStatement> {
  const statement = await duckdb.prepare(connection, sql);
  const found = duckdb.prepared_statement_type(statement);
  if (found === duckdb.StatementType[kind]) return statement;
  duckdb.destroy_prepare_sync(statement);
  throw new Error(`a statement that must be ${kind} is ${duckdb.StatementType[found]}`);
}

/** Rows of a result whose columns are all VARCHAR or BIGINT (what the callers select); anything else throws. */
export async function readTextRows(duckdb: DuckDb, result: Bindings.Result): Promise<(string | null)[][]> {
  const rows: (string | null)[][] = [];
  const columns = duckdb.column_count(result);
  for (;;) {
    const chunk = await duckdb.fetch_chunk(result);
    const size = chunk === null ? 0 : duckdb.data_chunk_get_size(chunk);
    if (chunk === null || size === 0) return rows;
    const texts = Array.from({ length: columns }, (_, column) =>
      readTextVector(duckdb, duckdb.data_chunk_get_vector(chunk, column), duckdb.column_type(result, column), size),
    );
    for (let row = 0; row < size; row++) rows.push(texts.map((column) => column[row] ?? null));
  }
}

/** The only row of such a result; one fetch less, each of which takes 0.1 ms. */
export async function readTextRow(duckdb: DuckDb, result: Bindings.Result): Promise<(string | null)[]> {
  const chunk = await duckdb.fetch_chunk(result);
  if (chunk === null || duckdb.data_chunk_get_size(chunk) !== 1) throw new Error("a query has not one row");
  return Array.from({ length: duckdb.column_count(result) }, (_, column) => {
    const vector = duckdb.data_chunk_get_vector(chunk, column);
    return readTextVector(duckdb, vector, duckdb.column_type(result, column), 1)[0] ?? null;
  });
}

function readTextVector(duckdb: DuckDb, vector: Bindings.Vector, type: Bindings.Type, size: number): (string | null)[] {
  const validity = duckdb.vector_get_validity(vector, Math.ceil(size / 64) * 8) as Uint8Array | null;
  const isText = type === duckdb.Type.VARCHAR;
  if (!isText && type !== duckdb.Type.BIGINT) throw new Error(`readTextRows cannot read type ${type}`);
  const isValid = (row: number): boolean => duckdb.validity_row_is_valid(validity, row);
  const data = duckdb.vector_get_data(vector, size * (isText ? STRUCT_BYTES : 8));
  if (!isText) {
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    return Array.from({ length: size }, (_, row) => (isValid(row) ? view.getBigInt64(row * 8, true).toString() : null));
  }
  const { bytes, starts, lengths } = readTexts(duckdb, data, isValid);
  return Array.from({ length: size }, (_, row) =>
    isValid(row) ? Buffer.from(bytes.buffer, starts[row], lengths[row]).toString("utf8") : null,
  );
}

/** The SQL name of the DuckDB type that holds a column of ours. */
export function sqlTypeOf(type: ColumnType): string {
  switch (type.kind) {
    case "bool":
      return "BOOLEAN";
    case "int":
      return "INTEGER";
    case "long":
      return "BIGINT";
    case "real":
      return "DOUBLE";
    case "string":
      return "VARCHAR";
    case "timestamp":
      return "TIMESTAMP_NS";
    case "dynamic":
      return "JSON";
    case "vector":
      return `FLOAT[${type.dimensions}]`;
  }
}

/** The same as a logical type of the bindings. */
export function logicalTypeOf(duckdb: DuckDb, type: ColumnType): Bindings.LogicalType {
  const { Type } = duckdb;
  switch (type.kind) {
    case "bool":
      return duckdb.create_logical_type(Type.BOOLEAN);
    case "int":
      return duckdb.create_logical_type(Type.INTEGER);
    case "long":
      return duckdb.create_logical_type(Type.BIGINT);
    case "real":
      return duckdb.create_logical_type(Type.DOUBLE);
    case "string":
      return duckdb.create_logical_type(Type.VARCHAR);
    case "timestamp":
      return duckdb.create_logical_type(Type.TIMESTAMP_NS);
    case "dynamic": {
      // DuckDB knows its JSON type by this alias alone.
      const json = duckdb.create_logical_type(Type.VARCHAR);
      duckdb.logical_type_set_alias(json, "JSON");
      return json;
    }
    case "vector":
      return duckdb.create_array_type(duckdb.create_logical_type(Type.FLOAT), type.dimensions);
  }
}

export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
