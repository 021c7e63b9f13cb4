import "../../core/warnings.ts";
import { writeSync } from "node:fs";
import { messageOf, systemCodeOf } from "../../core/errors.ts";
import { loadDuckDb, prepareOne, quoteIdentifier, quoteText } from "../../io/duckdb/duckdb.ts";
import { writeLines } from "../../io/duckdb/text-lines.ts";
import { TIME_MACROS } from "../../query/stream/macros.ts";
import { outputQuery, type OutputColumn } from "../../query/stream/projection.ts";

/**
 * See `parquet-rows.ts`: writes the rows of a Parquet file to standard output as NDJSON, in their order. What is wrong
 * with the file goes to standard error, and the exit code is 1; a file that crashes the reader takes this process alone.
 */

/** Not `process.stdout`, which would hold what a slow reader has not taken. */
const STDOUT = 1;
const MEMORY_LIMIT = "1GB";
const RETRY_MS = 1;

async function writeRows(file: string): Promise<void> {
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  const settings = [
    `memory_limit = '${MEMORY_LIMIT}'`,
    "threads = 2",
    "preserve_insertion_order = true",
    "TimeZone = 'UTC'",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    `allowed_paths = [${quoteText(file)}]`,
    "enable_external_access = false",
  ];
  for (const setting of settings) await duckdb.query(connection, `SET GLOBAL ${setting}`);
  for (const macro of TIME_MACROS) await duckdb.query(connection, `CREATE MACRO ${macro}`);
  // The folders of a path and files beside it are nobody's columns.
  const source = `SELECT * FROM read_parquet(${quoteText(file)}, hive_partitioning = false)`;
  const statement = await prepareOne(duckdb, connection, source, "SELECT");
  const columns = Array.from({ length: duckdb.prepared_statement_column_count(statement) }, (_, i) => ({
    name: duckdb.prepared_statement_column_name(statement, i),
    type: duckdb.prepared_statement_column_logical_type(statement, i),
  }));
  duckdb.destroy_prepare_sync(statement);
  // A time without a zone is one of UTC, as everywhere in ingest.
  const { Type } = duckdb;
  const withoutZone = new Set<number>([Type.TIMESTAMP, Type.TIMESTAMP_S, Type.TIMESTAMP_MS]);
  const isWithoutZone = ({ type }: OutputColumn) => withoutZone.has(duckdb.get_type_id(type));
  const zoned = duckdb.create_logical_type(Type.TIMESTAMP_TZ);
  const outputs = columns.map((column) => (isWithoutZone(column) ? { name: column.name, type: zoned } : column));
  const items = columns.map((column) => {
    const quoted = quoteIdentifier(column.name);
    return isWithoutZone(column) ? `CAST(${quoted} AS TIMESTAMPTZ) AS ${quoted}` : quoted;
  });
  const rows = `SELECT ${items.join(", ")} FROM (${source})`;
  await writeLines(duckdb, connection, outputQuery(duckdb, outputs, rows, "ndjson"), writeAll);
}

function writeAll(bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(STDOUT, bytes, at);
    } catch (error) {
      // Only where the pipe does not block: until it is read.
      if (systemCodeOf(error) !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
    }
  }
}

const file = process.argv.at(-1) ?? "";
try {
  await writeRows(file);
} catch (error) {
  process.stderr.write(messageOf(error));
  process.exitCode = 1;
}
