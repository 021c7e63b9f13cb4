import "../../core/warnings.ts";
import { messageOf } from "../../core/errors.ts";
import { columnTypeOf } from "../duckdb/column-types.ts";
import { loadDuckDb, prepareOne, quoteIdentifier, quoteText, type Connection, type DuckDb } from "../duckdb/duckdb.ts";
import { TIME_MACROS } from "../duckdb/macros.ts";
import { outputQuery, type OutputColumn } from "../duckdb/projection.ts";
import { writeLines } from "../duckdb/text-lines.ts";
import type { ParquetTask } from "./parquet-task.ts";
import { writeOut } from "./write-out.ts";

/**
 * See `parquet-rows.ts`: writes the rows of a Parquet file to standard output as NDJSON, in their order. What is wrong
 * with the file goes to standard error, and the exit code is 1; a file that crashes the reader takes this process alone.
 */
async function writeRows({ file, memoryMib, isDescribed }: ParquetTask): Promise<void> {
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  const settings = [
    `memory_limit = '${memoryMib}MiB'`,
    "threads = 2",
    "preserve_insertion_order = true",
    "TimeZone = 'UTC'",
    "temp_directory = ''",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    `allowed_paths = [${quoteText(file)}]`,
    "enable_external_access = false",
  ];
  for (const setting of settings) await duckdb.query(connection, `SET GLOBAL ${setting}`);
  for (const macro of TIME_MACROS) await duckdb.query(connection, `CREATE MACRO ${macro}`);
  // The folders of a path and files beside it are nobody's columns.
  const source = `SELECT * FROM read_parquet(${quoteText(file)}, hive_partitioning = false)`;
  const columns = await columnsOf(duckdb, connection, source);
  if (isDescribed) writeOut(descriptionOf(duckdb, columns));
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
  await writeLines(duckdb, connection, outputQuery(duckdb, outputs, rows, "ndjson"), writeOut);
}

async function columnsOf(duckdb: DuckDb, connection: Connection, source: string): Promise<OutputColumn[]> {
  const statement = await prepareOne(duckdb, connection, source, "SELECT");
  const columns = Array.from({ length: duckdb.prepared_statement_column_count(statement) }, (_, i) => ({
    name: duckdb.prepared_statement_column_name(statement, i),
    type: duckdb.prepared_statement_column_logical_type(statement, i),
  }));
  duckdb.destroy_prepare_sync(statement);
  return columns;
}

/** One line of JSON in front of the rows. */
function descriptionOf(duckdb: DuckDb, columns: readonly OutputColumn[]): Uint8Array {
  const described = columns.map(({ name, type }) => ({ name, type: columnTypeOf(duckdb, type) }));
  return Buffer.from(`${JSON.stringify(described)}\n`);
}

const task = JSON.parse(process.argv.at(-1) ?? "") as ParquetTask;
if (task.isWatched) {
  // Whoever started it holds the other end, and is gone when that closes. An ordinary exit would wait for DuckDB.
  process.stdin.on("end", () => process.kill(process.pid, "SIGKILL")).resume();
}
try {
  await writeRows(task);
  process.stdin.destroy();
} catch (error) {
  process.stderr.write(messageOf(error));
  process.stdin.destroy();
  process.exitCode = 1;
}
