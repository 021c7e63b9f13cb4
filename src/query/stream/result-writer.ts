import { writeArrowStream } from "../../io/duckdb/arrow-stream.ts";
import { prepareOne, quoteText, runSql, type Connection, type DuckDb } from "../../io/duckdb/duckdb.ts";
import { resultType } from "../../io/duckdb/result-type.ts";
import { writeLines } from "../../io/duckdb/text-lines.ts";
import type { ResultFormat } from "./formats.ts";
import { outputQuery, type OutputColumn } from "../../io/duckdb/projection.ts";
import { Spool, type Spooled } from "./spool.ts";

/** What DuckDB writes by itself, and how it is told to. */
const COPY_OPTIONS = {
  csv: "FORMAT csv, HEADER true",
  parquet: "FORMAT parquet, COMPRESSION zstd",
} as const;

type Write = (...pieces: readonly Uint8Array[]) => void;

type StreamWriter = (
  duckdb: DuckDb,
  connection: Connection,
  { output, maxRows }: { output: string; maxRows: number; columns: readonly OutputColumn[] },
  write: Write,
) => Promise<number>;

const STREAM_WRITERS: Readonly<Record<Exclude<ResultFormat, keyof typeof COPY_OPTIONS>, StreamWriter>> = {
  ndjson: (duckdb, connection, { output, maxRows }, write) => writeLines(duckdb, connection, output, write, maxRows),
  json: writeArray,
  arrow: (duckdb, connection, { output, maxRows, columns }, write) => {
    const types = columns.map(({ type }) => resultType(duckdb, type));
    return writeArrowStream(duckdb, connection, output, write, { maxRows, types });
  },
};

/** The lines of NDJSON as one array: each but the last gets a comma. A line feed inside of JSON is escaped. */
async function writeArray(
  duckdb: DuckDb,
  connection: Connection,
  { output, maxRows }: { output: string; maxRows: number },
  write: Write,
): Promise<number> {
  let isFirst = true;
  const writeSome = (lines: Uint8Array): void => {
    const text = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength - 1).toString("latin1");
    write(Buffer.from(`${isFirst ? "[" : ",\n"}${text.replaceAll("\n", ",\n")}`, "latin1"));
    isFirst = false;
  };
  const rows = await writeLines(duckdb, connection, output, writeSome, maxRows);
  write(Buffer.from(isFirst ? "[]\n" : "]\n"));
  return rows;
}

export type ResultQuery = {
  columns: readonly OutputColumn[];
  sql: string;
  format: ResultFormat;
  /** Most rows of the answer; all without. */
  maxRows?: number | undefined;
};

export type WrittenResult = {
  rows: number;
  /** Whether there was a row more than `maxRows`. */
  isTruncated: boolean;
  data: Spooled;
};

/** Where the text of the query begins in the statement that runs, in bytes; for positions in errors. */
export function resultOffset(duckdb: DuckDb, { columns, sql, format, maxRows }: ResultQuery): number {
  const isCopied = format === "csv" || format === "parquet";
  if (isCopied && maxRows !== undefined) return Buffer.byteLength(FIRST_ROWS);
  const output = outputQuery(duckdb, columns, sql, format);
  return Buffer.byteLength((isCopied ? "COPY (" : "") + output.slice(0, output.indexOf(sql)));
}

/**
 * Runs a query; `file` is the name of a file that there is not, for an answer that is not small.
 *
 * With `maxRows` the query runs under a LIMIT of one row more, which keeps its order and ends it as soon as the answer is
 * there; that row is looked for and not written.
 */
export async function writeResult(
  duckdb: DuckDb,
  connection: Connection,
  { columns, sql, format, maxRows }: ResultQuery,
  file: string,
): Promise<WrittenResult> {
  if (format === "csv" || format === "parquet") {
    if (maxRows !== undefined) return await copyFirst(duckdb, connection, { columns, sql, format, maxRows }, file);
    const output = outputQuery(duckdb, columns, sql, format);
    return { rows: await copy(duckdb, connection, { output, format, file }), isTruncated: false, data: { file } };
  }
  const all = outputQuery(duckdb, columns, sql, format);
  const limited =
    maxRows === undefined ? { output: all, maxRows: Infinity } : { output: `${all} LIMIT ${maxRows + 1}`, maxRows };
  const spool = new Spool(file);
  try {
    const write: Write = (...pieces) => spool.write(...pieces);
    const found = await STREAM_WRITERS[format](duckdb, connection, { ...limited, columns }, write);
    return { rows: Math.min(found, limited.maxRows), isTruncated: found > limited.maxRows, data: spool.end() };
  } catch (error) {
    spool.discard();
    throw error;
  }
}

type Copied = keyof typeof COPY_OPTIONS;

async function copy(
  duckdb: DuckDb,
  connection: Connection,
  { output, format, file }: { output: string; format: Copied; file: string },
): Promise<number> {
  const text = `COPY (${output}) TO ${quoteText(file)} (${COPY_OPTIONS[format]})`;
  return await changedRows(duckdb, connection, text, "COPY");
}

const FIRST_ROWS = "CREATE TEMP TABLE engine_first_rows AS SELECT * FROM (";

/** DuckDB writes these formats whole, so the rows, and the one more, are kept in a table before; it spills like any. */
async function copyFirst(
  duckdb: DuckDb,
  connection: Connection,
  { columns, sql, format, maxRows }: { columns: readonly OutputColumn[]; sql: string; format: Copied; maxRows: number },
  file: string,
): Promise<WrittenResult> {
  const inner = columns.map((_, i) => `c${i}`).join(", ");
  const rowsToKeep = `${FIRST_ROWS}${sql}\n) AS engine_row(${inner}) LIMIT ${maxRows + 1}`;
  await changedRows(duckdb, connection, rowsToKeep, "CREATE");
  const [[found] = []] = await runSql(duckdb, connection, "SELECT count(*) FROM engine_first_rows");
  const output = outputQuery(duckdb, columns, `SELECT * FROM engine_first_rows LIMIT ${maxRows}`, format);
  const rows = await copy(duckdb, connection, { output, format, file });
  await duckdb.query(connection, "DROP TABLE engine_first_rows");
  return { rows, isTruncated: Number(found) > maxRows, data: { file } };
}

async function changedRows(
  duckdb: DuckDb,
  connection: Connection,
  text: string,
  kind: "COPY" | "CREATE",
): Promise<number> {
  const statement = await prepareOne(duckdb, connection, text, kind);
  try {
    return duckdb.rows_changed(await duckdb.execute_prepared(statement));
  } finally {
    duckdb.destroy_prepare_sync(statement);
  }
}
