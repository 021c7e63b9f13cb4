/** What the process of `parquet-child.ts` is told. */
export type ParquetTask = {
  file: string;
  /** DuckDB's own limit. */
  memoryMib: number;
  /** Whether a line with the columns and their types comes in front of the rows. */
  isDescribed: boolean;
  /** Whether it dies when its standard input ends. */
  isWatched: boolean;
};
