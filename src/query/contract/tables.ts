import type { PlannedExtent } from "../../catalog/catalog.ts";
import type { ColumnSpec } from "../../format/types.ts";

/** The tables of a query as its steps hand them on: first their columns, then the files that hold their rows. */
export type TableShape = { name: string; columns: readonly ColumnSpec[] };

export type ResolvedTable = TableShape & {
  /** Columns that the query can touch, of the shape's; all when undefined. The others may come out as NULL. */
  needed: readonly string[] | undefined;
  extents: readonly LocalExtent[];
  /** Rows of which the query touches no column: their number is all that matters, so that no file is opened. */
  bareRows: number;
  /** Extents of the plan that were not read, for the budget was too small: those that were are a sample. */
  leftOut?: number;
  /** The view tells of each row which extent it is of (`EXTENT_COLUMN`). */
  namesExtents?: boolean;
  /** The view numbers the rows (`PLACE_COLUMN`), and has those from that place on: see `numbered-rows.ts`. */
  numberedFrom?: number;
  visible?: VisibleRows | undefined;
  /** Rows outside do not matter to the query, which drops them itself. */
  bounds?: readonly TimeBounds[];
};

/** The range of a `timestamp` column, inclusive; nanoseconds since the epoch. A row without a time is outside. */
export type TimeBounds = { column: string; minNs?: bigint | undefined; maxNs?: bigint | undefined };

/** What a table shows of its rows, when it keeps them for some days only: see `retention.ts`. */
export type VisibleRows = {
  /** Rows with an earlier `at` are not shown. */
  fromNs: bigint;
  /** The column `at`, as the table spells it. */
  column: string;
};

/**
 * An extent as a file; `columns` are those that it has, `unwidened` those that it has as `long` and the table as `real`,
 * `inNanoseconds` those that a file of `format/parquet-times.ts` has in nanoseconds as well.
 */
export type LocalExtent = Pick<PlannedExtent, "id" | "format" | "formatVersion" | "rows" | "columns" | "minAtNs"> & {
  path: string;
  unwidened?: readonly string[];
  inNanoseconds?: readonly string[];
};
