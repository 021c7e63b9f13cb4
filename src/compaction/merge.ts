import type { ColumnFilter } from "../format/filter/filter.ts";
import type { ColumnStats, ExtentFormat } from "../format/types.ts";
import type { IdentifiedColumn } from "../io/duckdb/parquet.ts";
import type { ParquetEncodings } from "../io/duckdb/parquet-encodings.ts";

/**
 * Merging: files of extents in, Parquet files with the same rows out. It runs in a process of its own
 * (`merge-process.ts`), because DuckDB's memory cannot be bounded inside ours, and does this:
 *
 *     check     the bytes of every input against its checksum: what has decayed must not get a new, valid one
 *     sort      all rows by `at`, then by the table's cluster columns, then by arrival
 *     write     files of about the size aimed for, none of which spans midnight
 *     describe  each file: statistics of all its columns, then filters of those that are worth one
 *
 * Fresh extents, which are most of what is merged, are sorted by us, and described while they go by (`merge-fed.ts`).
 * Everything else is sorted by one COPY of DuckDB's, which spills what does not fit into its memory, cut at midnight by
 * one more for each day, and described by reading the files again (`merge-files.ts`).
 *
 * Inputs may be of different formats and schema versions. A column that some of them lack is NULL in their rows; one
 * that all of them lack is not in the output.
 */
export type MergeTask = {
  /** The table's columns with their ids, which become the files' field ids; at least those that the inputs have. */
  columns: readonly MergeColumn[];
  /** In the order of their commits, by which rows of one time are ordered. */
  inputs: readonly MergeInput[];
  /** Names of columns by which rows of one time are ordered. */
  clusterBy: readonly string[];
  /** An empty folder: outputs go to it, and what DuckDB spills. */
  folder: string;
  /** A file ends once it is that large. */
  targetBytes: number;
  /** See `ParquetFromOptions`. */
  encodings?: ParquetEncodings | undefined;
  limits: MergeLimits;
};

export type MergeColumn = IdentifiedColumn;

export type MergeInput = { id: string; path: string; format: ExtentFormat; rows: number; checksum: string };

export type MergeLimits = {
  /** Of DuckDB; the process takes some 200 MiB besides. */
  memoryBytes: number;
  /** Of disk, for what does not fit. */
  spillBytes: number;
  threads: number;
};

/** A Parquet file of sorted rows, all of one UTC day (or, when there are a great many days, of some that follow each other). */
export type MergedFile = {
  path: string;
  rows: number;
  sizeBytes: number;
  checksum: string;
  minAtNs: bigint;
  maxAtNs: bigint;
  /** Of every column of the file. */
  stats: ColumnStats[];
  /** See `NewExtent.nanosecondColumns`. */
  nanosecondColumns?: readonly string[];
  filters: ColumnFilter[];
};

/** Inputs whose bytes are not what was committed. */
export class DamagedInputs extends Error {
  readonly extentIds: readonly string[];

  constructor(extentIds: readonly string[]) {
    super(`the bytes of ${extentIds.join(", ")} are not those that were committed`);
    this.name = "DamagedInputs";
    this.extentIds = extentIds;
  }
}
