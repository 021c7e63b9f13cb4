import { mkdirSync, readdirSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { TIME_COLUMN } from "../format/types.ts";
import { quoteIdentifier, quoteText, runSql, type Connection, type DuckDb } from "../io/duckdb/duckdb.ts";
import { itemsToWrite, parquetOptions, ROW_GROUP_ROWS, type ParquetLayout } from "../io/duckdb/parquet.ts";
import type { ParquetEncodings } from "../io/duckdb/parquet-encodings.ts";
import { registerTlmScan, type TlmScans } from "../io/duckdb/tlm-scan.ts";
import { describeFile } from "./merge-describe.ts";
import { orderForFeed, writeFed, type MergeWriter } from "./merge-fed.ts";
import { openInputs, verifyInputs, type MergeSource } from "./merge-input.ts";
import type { ColumnProfile } from "./merge-profile.ts";
import type { MergedFile, MergeTask } from "./merge.ts";

/** Does a merge in this process: see `merge.ts`. Throws when anything is wrong; the folder is then the caller's to empty. */
export async function mergeFiles(duckdb: DuckDb, task: MergeTask): Promise<MergedFile[]> {
  const database = await duckdb.open(":memory:");
  const connection = await duckdb.connect(database);
  try {
    for (const setting of settingsFor(task)) await duckdb.query(connection, `SET GLOBAL ${setting}`);
    return await mergeWith(duckdb, connection, task);
  } catch (error) {
    // Bytes that are not what was committed can fail in any way; if there are any, they are the reason.
    verifyInputs(task.inputs);
    throw error;
  } finally {
    duckdb.disconnect_sync(connection);
    duckdb.close_sync(database);
  }
}

async function mergeWith(duckdb: DuckDb, connection: Connection, task: MergeTask): Promise<MergedFile[]> {
  // DuckDB gets to see nothing unchecked; extents in our own format are checked when they are read.
  if (task.inputs.some(({ format }) => format === "parquet")) verifyInputs(task.inputs);
  const scans = registerTlmScan(duckdb, connection);
  const source = await openInputs(task, { duckdb, connection, scans });
  const encodings = task.encodings === "plain" ? task.encodings : await source.encodings();
  const options = optionsFor(source, encodings);
  const writer = { duckdb, connection, task, source, options, finer: await source.finer() };
  const order = orderForFeed(task, source.inputBytes);
  const written = await (order === undefined ? writeByDuckDb(writer, scans) : writeFed(writer, order));
  const files: MergedFile[] = [];
  for (const { path, ...seen } of written) files.push(await describeFile(duckdb, connection, path, seen));
  const rows = files.reduce((sum, file) => sum + file.rows, 0);
  if (rows !== source.rows) throw new Error(`${source.rows} rows went in, ${rows} came out`);
  return files;
}

type Written = { path: string; layout: ParquetLayout; profile?: readonly ColumnProfile[] };

/** Sorts by one COPY, and cuts what spans midnight. */
async function writeByDuckDb(writer: MergeWriter, scans: TlmScans): Promise<Written[]> {
  if (writer.task.inputs.every(({ format }) => format === "tlm")) verifyInputs(writer.task.inputs);
  // Which rows a file gets is not known beforehand, so all files have what any of the inputs needs.
  const layout = { columns: writer.source.columns, finer: new Set(writer.finer.flatMap((names) => [...names])) };
  const sorted = await writeSorted(writer, layout);
  scans.clear();
  const paths: string[] = [];
  for (const path of sorted) paths.push(...(await cutDays(writer, path, layout)));
  return paths.map((path) => ({ path, layout }));
}

/** DuckDB's settings for work on extents in a folder. */
export function settingsFor({ folder, limits }: Pick<MergeTask, "folder" | "limits">): string[] {
  return [
    `memory_limit = '${limits.memoryBytes}B'`,
    `threads = ${limits.threads}`,
    `temp_directory = ${quoteText(join(folder, "spill"))}`,
    `max_temp_directory_size = '${limits.spillBytes}B'`,
    "preserve_insertion_order = true",
    "TimeZone = 'UTC'",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
  ];
}

const TIME = quoteIdentifier(TIME_COLUMN);
/** The place of a row in the order of arrival; no column can have so long a name. */
const ARRIVAL = quoteIdentifier("arrival".padEnd(256, "_"));

/** One COPY of all rows in order, into files that follow each other in time; returns their paths. */
async function writeSorted(
  { duckdb, connection, task, source, options: common }: MergeWriter,
  layout: ParquetLayout,
): Promise<string[]> {
  const folder = join(task.folder, "sorted");
  // A column that no input has is NULL everywhere, and orders nothing.
  const clusterBy = task.clusterBy.filter((cluster) => source.columns.some(({ name }) => name === cluster));
  // Qualified, for what is written of a time has the name of its column.
  const order = [TIME, ...clusterBy.map(quoteIdentifier), ARRIVAL].map((column) => `numbered.${column}`).join(", ");
  // DuckDB's sort is not stable: without a number of its own, lines of one millisecond would change places.
  const numbered = `SELECT *, row_number() OVER () AS ${ARRIVAL} FROM (${source.sql})`;
  const options = parquetOptions({ ...common, layout, fileSizeBytes: task.targetBytes });
  const rows = `SELECT ${itemsToWrite(layout)} FROM (${numbered}) AS numbered ORDER BY ${order}`;
  await duckdb.query(connection, `COPY (${rows}) TO ${quoteText(folder)} (${options})`);
  return readdirSync(folder).map((name) => join(folder, name));
}

/** A row group is held in memory while it is written. */
const ROW_GROUP_BYTES = 32 * 1024 * 1024;
const VECTOR_ROWS = 2_048;

function optionsFor(source: MergeSource, encodings: ParquetEncodings): MergeWriter["options"] {
  const rowBytes = Math.max(source.sizeBytes / source.rows, 1);
  const vectors = Math.max(Math.floor(ROW_GROUP_BYTES / rowBytes / VECTOR_ROWS), 1);
  const rowGroupRows = Math.min(vectors * VECTOR_ROWS, ROW_GROUP_ROWS);
  return { encodings, rowGroupRows };
}

/** Rows of that many days of one file become files of their own; of more, those of days that follow each other share one. */
const MAX_DAYS = 400;
const DAY_US = 86_400_000_000n;

/** Replaces a sorted file that spans midnight by one for each day; the files' paths. */
async function cutDays(
  { duckdb, connection, options: common }: MergeWriter,
  path: string,
  layout: ParquetLayout,
): Promise<string[]> {
  const file = `read_parquet(${quoteText(path)})`;
  // Rounding towards zero would put the last day before 1970 with the first one.
  const day = `(epoch_us(${TIME}) // ${DAY_US} - CAST(epoch_us(${TIME}) % ${DAY_US} < 0 AS BIGINT))`;
  const rows = await runSql(duckdb, connection, `SELECT DISTINCT ${day} AS day FROM ${file} ORDER BY day`);
  const days = rows.map(([number]) => BigInt(number ?? 0));
  if (days.length <= 1) return [path];
  const perFile = Math.ceil(days.length / MAX_DAYS);
  const folder = `${path}-days`;
  mkdirSync(folder, { mode: 0o700 });
  const paths: string[] = [];
  for (let i = 0; i < days.length; i += perFile) {
    const [first = 0n, last = 0n] = [days[i], days[Math.min(i + perFile, days.length) - 1]];
    // Bounds on the column itself let DuckDB skip the row groups of other days.
    const [from, to] = [first * DAY_US, (last + 1n) * DAY_US];
    const range = `${TIME} >= make_timestamptz(${from}) AND ${TIME} < make_timestamptz(${to})`;
    const target = join(folder, `${i}.parquet`);
    const options = parquetOptions({ ...common, layout });
    await duckdb.query(connection, `COPY (SELECT * FROM ${file} WHERE ${range}) TO ${quoteText(target)} (${options})`);
    paths.push(target);
  }
  unlinkSync(path);
  return paths;
}
