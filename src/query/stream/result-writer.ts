import { writeArrowStream } from "../../io/duckdb/arrow-stream.ts";
import { prepareOne, quoteText, type Connection, type DuckDb } from "../../io/duckdb/duckdb.ts";
import { writeLines } from "../../io/duckdb/text-lines.ts";
import type { ResultFormat } from "./formats.ts";
import { outputQuery, type OutputColumn } from "../../io/duckdb/projection.ts";
import { Spool, type Spooled } from "./spool.ts";

/** What DuckDB writes by itself, and how it is told to. */
const COPY_OPTIONS = {
  csv: "FORMAT csv, HEADER true",
  parquet: "FORMAT parquet, COMPRESSION zstd",
} as const;

type StreamWriter = (
  duckdb: DuckDb,
  connection: Connection,
  sql: string,
  write: (...pieces: readonly Uint8Array[]) => void,
) => Promise<number>;

const STREAM_WRITERS: Readonly<Record<Exclude<ResultFormat, keyof typeof COPY_OPTIONS>, StreamWriter>> = {
  ndjson: writeLines,
  json: writeArray,
  arrow: writeArrowStream,
};

/** The lines of NDJSON as one array: each but the last gets a comma. A line feed inside of JSON is escaped. */
async function writeArray(
  duckdb: DuckDb,
  connection: Connection,
  sql: string,
  write: (bytes: Uint8Array) => void,
): Promise<number> {
  let isFirst = true;
  const rows = await writeLines(duckdb, connection, sql, (lines) => {
    const text = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength - 1).toString("latin1");
    write(Buffer.from(`${isFirst ? "[" : ",\n"}${text.replaceAll("\n", ",\n")}`, "latin1"));
    isFirst = false;
  });
  write(Buffer.from(isFirst ? "[]\n" : "]\n"));
  return rows;
}

export type ResultQuery = { columns: readonly OutputColumn[]; sql: string; format: ResultFormat };

/** Where the text of the query begins in the statement that runs, in bytes; for positions in errors. */
export function resultOffset(duckdb: DuckDb, { columns, sql, format }: ResultQuery): number {
  const output = outputQuery(duckdb, columns, sql, format);
  const copied = format === "csv" || format === "parquet" ? "COPY (" : "";
  return Buffer.byteLength(copied + output.slice(0, output.indexOf(sql)));
}

/** Runs a query; `file` is the name of a file that there is not, for an answer that is not small. */
export async function writeResult(
  duckdb: DuckDb,
  connection: Connection,
  { columns, sql, format }: ResultQuery,
  file: string,
): Promise<{ rows: number; data: Spooled }> {
  const output = outputQuery(duckdb, columns, sql, format);
  if (format === "csv" || format === "parquet") {
    const copy = `COPY (${output}) TO ${quoteText(file)} (${COPY_OPTIONS[format]})`;
    const statement = await prepareOne(duckdb, connection, copy, "COPY");
    try {
      return { rows: duckdb.rows_changed(await duckdb.execute_prepared(statement)), data: { file } };
    } finally {
      duckdb.destroy_prepare_sync(statement);
    }
  }
  const spool = new Spool(file);
  try {
    const rows = await STREAM_WRITERS[format](duckdb, connection, output, (...pieces) => spool.write(...pieces));
    return { rows, data: spool.end() };
  } catch (error) {
    spool.discard();
    throw error;
  }
}
