import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../core/errors.ts";
import { logicalTypeOf, quoteText, type Connection, type DataChunk, type DuckDb } from "../io/duckdb/duckdb.ts";
import { itemsToWrite, parquetOptions, type ParquetLayout, type ParquetOptions } from "../io/duckdb/parquet.ts";
import { Feed, openBytesOf } from "./merge-feed.ts";
import type { MergeSource } from "./merge-input.ts";
import { endsOfDays, orderRows, type RowOrder } from "./merge-order.ts";
import { FileProfile, type ColumnProfile } from "./merge-profile.ts";
import type { MergeTask } from "./merge.ts";

/**
 * A merge of `tlm` extents alone, which is most of what is merged: the order of the rows is found out beforehand
 * (`merge-order.ts`), and DuckDB is fed rows in order (`merge-feed.ts`), one COPY for each file. So nothing is sorted or
 * spilled, files end where a day ends or where they are large enough, and what describes them is gathered on the way.
 */
export type FedFile = { path: string; layout: ParquetLayout; profile: readonly ColumnProfile[] };

/** Who writes the files of a merge, and how. */
export type MergeWriter = {
  duckdb: DuckDb;
  connection: Connection;
  task: MergeTask;
  source: MergeSource;
  /** See `MergeSource.finer`. */
  finer: readonly ReadonlySet<string>[];
  options: ParquetOptions & { rowGroupRows: number };
};

/** An input that is open takes up to so many times its size. */
const OPEN_FACTOR = 2;
/** Of the memory of a merge, what open inputs may take; DuckDB takes a row group, and what it compresses it to. */
const OPEN_SHARE = 1 / 2;

/** The order of the rows; undefined for merges that are to be sorted by DuckDB. */
export function orderForFeed({ inputs, clusterBy, limits }: MergeTask, sizes: readonly number[]): RowOrder | undefined {
  if (clusterBy.length > 0) return undefined;
  const order = orderRows(inputs);
  if (order === undefined) return undefined;
  return openBytesOf(order, sizes) * OPEN_FACTOR <= limits.memoryBytes * OPEN_SHARE ? order : undefined;
}

/**
 * For files that will be merged again before long, because they end far below the size aimed for: a third of the time of
 * the default that zstd takes, for up to a tenth more bytes.
 */
const LIGHT_COMPRESSION = 1;
/** `tlm` shrinks at least so many times. */
const MIN_SHRINKING = 3;

const FEED = "engine_merge_feed";

/** Writes all rows into files that follow each other in time, each of one day. */
export async function writeFed(merge: MergeWriter, order: RowOrder): Promise<FedFile[]> {
  const { duckdb, connection, task, source } = merge;
  const folder = join(task.folder, "sorted");
  mkdirSync(folder, { mode: 0o700 });
  const memoryBytes = Math.floor(task.limits.memoryBytes * (1 - OPEN_SHARE));
  await duckdb.query(connection, `SET GLOBAL memory_limit = '${memoryBytes}B'`);
  const feed = new Feed(duckdb, { columns: source.columns, inputs: task.inputs, order });
  const plan = { rowGroupRows: merge.options.rowGroupRows, targetBytes: task.targetBytes };
  const files: FedFile[] = [];
  let current: FileFeed | undefined;
  registerFeed(duckdb, connection, source, (output) => {
    if (current === undefined) throw new Error("no file is being written");
    current.fill(output);
  });
  const isSmall = source.sizeBytes < MIN_SHRINKING * task.targetBytes;
  const level = isSmall ? { compressionLevel: LIGHT_COMPRESSION } : {};
  for (const end of endsOfDays(order)) {
    while (feed.place < end) {
      const path = join(folder, `${files.length}.parquet`);
      const profile = new FileProfile(source.columns);
      const layout = { columns: source.columns, finer: finerBetween(merge.finer, order, feed.place, end) };
      const options = parquetOptions({ ...merge.options, ...level, layout });
      feed.reopen();
      current = new FileFeed(duckdb, feed, { ...plan, path, profile, start: feed.place, end });
      await duckdb.query(
        connection,
        `COPY (SELECT ${itemsToWrite(layout)} FROM ${FEED}()) TO ${quoteText(path)} (${options})`,
      );
      if (feed.place === current.start) throw new Error("DuckDB asked for no rows");
      files.push({ path, layout, profile: profile.columns() });
    }
  }
  return files;
}

/** The columns with times finer than microseconds in any input that may have rows at these places of the order. */
function finerBetween(
  finer: readonly ReadonlySet<string>[],
  { spans: { first, last } }: RowOrder,
  start: number,
  end: number,
): ReadonlySet<string> {
  const isThere = (input: number): boolean => (first[input] as number) < end && (last[input] as number) >= start;
  return new Set(finer.flatMap((names, input) => (isThere(input) ? [...names] : [])));
}

type FilePlan = {
  path: string;
  profile: FileProfile;
  /** Places in the order: where the file starts, and where it ends at the latest. */
  start: number;
  end: number;
  rowGroupRows: number;
  targetBytes: number;
};

/** Feeds one file: it ends with the row group that reaches the size aimed for, or with the day. */
class FileFeed {
  readonly #duckdb: DuckDb;
  readonly #feed: Feed;
  readonly #plan: FilePlan;
  #isOver = false;

  constructor(duckdb: DuckDb, feed: Feed, plan: FilePlan) {
    this.#duckdb = duckdb;
    this.#feed = feed;
    this.#plan = plan;
  }

  get start(): number {
    return this.#plan.start;
  }

  fill(output: DataChunk): void {
    const rows = this.#rowsAhead();
    if (rows === 0) this.#duckdb.data_chunk_set_size(output, 0);
    else this.#feed.fill(output, rows, (batches) => this.#plan.profile.add(batches));
  }

  /** How many more rows are certain to be in this file. */
  #rowsAhead(): number {
    const { path, start, end, rowGroupRows, targetBytes } = this.#plan;
    const done = this.#feed.place - start;
    // A row group is in the file once the first row of the next one is asked for.
    if (done > 0 && done % rowGroupRows === 0 && statSync(path).size >= targetBytes) this.#isOver = true;
    return this.#isOver ? 0 : Math.min(rowGroupRows - (done % rowGroupRows), end - this.#feed.place);
  }
}

function registerFeed(
  duckdb: DuckDb,
  connection: Connection,
  { columns, rows }: MergeSource,
  fill: (output: DataChunk) => void,
): void {
  const table = duckdb.create_table_function();
  duckdb.table_function_set_name(table, FEED);
  duckdb.table_function_set_bind(table, (info) => {
    for (const { name, type } of columns) duckdb.bind_add_result_column(info, name, logicalTypeOf(duckdb, type));
    duckdb.bind_set_cardinality(info, rows, false);
  });
  duckdb.table_function_set_init(table, (info) => duckdb.init_set_max_threads(info, 1));
  duckdb.table_function_set_function(table, (info, output) => {
    try {
      fill(output);
    } catch (error) {
      // An exception must not cross into native code; DuckDB turns this into the query's error.
      duckdb.function_set_error(info, messageOf(error));
    }
  });
  duckdb.register_table_function(connection, table);
}
