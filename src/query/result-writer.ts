import { writeArrowStream } from "../io/duckdb/arrow-stream.ts";
import { quoteText, type Connection, type DuckDb } from "../io/duckdb/duckdb.ts";
import type { ResultFormat } from "./formats.ts";
import { outputQuery, type OutputColumn } from "./projection.ts";

/** What DuckDB writes by itself, and how it is told to. */
const COPY_OPTIONS: Readonly<Record<Exclude<ResultFormat, "arrow">, string>> = {
  ndjson: "FORMAT json",
  csv: "FORMAT csv, HEADER true",
  parquet: "FORMAT parquet, COMPRESSION zstd",
};

export type ResultQuery = { columns: readonly OutputColumn[]; sql: string; format: ResultFormat };

/** Runs a query, its rows into a file that is new, and returns how many they are. */
export async function writeResult(
  duckdb: DuckDb,
  connection: Connection,
  { columns, sql, format }: ResultQuery,
  file: string,
): Promise<number> {
  const output = outputQuery(duckdb, columns, sql, format);
  if (format === "arrow") return writeArrowStream(duckdb, connection, output, file);
  const result = await duckdb.query(connection, `COPY (${output}) TO ${quoteText(file)} (${COPY_OPTIONS[format]})`);
  return duckdb.rows_changed(result);
}
