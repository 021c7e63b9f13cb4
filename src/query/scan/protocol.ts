import type { ErrorRecord } from "../../core/errors.ts";
import type { PlannedExtent } from "../../catalog/catalog.ts";
import type { ColumnSpec } from "../../format/types.ts";
import type { ResultFormat } from "../stream/formats.ts";
import type { Listing } from "../resolve/listings.ts";
import type { QueryParameters } from "../parse/parameters.ts";
import type { Predicate } from "../resolve/predicates.ts";
import type { Spooled } from "../stream/spool.ts";
import type { Top } from "../resolve/top.ts";
import type { SystemTableFile, SystemTableName } from "../system-tables/system-tables.ts";
import type { QueryUsage } from "./usage.ts";

/**
 * The conversation between the server and one query process, one query at a time:
 *
 *     server                         child
 *     parse {text}             →
 *                              ←     needs {tables}          or failed
 *     run {tables} or drop     →
 *                              ←     done {file, rows}       or failed;  dropped
 *
 * `cancel` may come at any time, and has no answer of its own: what is under way ends early, with its answer or as failed.
 * Messages travel by structured clone; nanoseconds are bigints.
 */
export type ParseRequest = {
  kind: "parse";
  text: string;
  database: string;
  parameters?: QueryParameters;
  /** What DuckDB may take for this query before it spills. */
  memoryBytes: number;
  /** The text is the condition of a deletion of rows: see `row-condition.ts`. */
  selection?: RowSelection | undefined;
};

/** Rows of one table by a condition: how many match in each extent, or all that do not. */
export type RowSelection = { table: string; rows: "matching" | "others" };

export type RunRequest = {
  kind: "run";
  /** One per needed table, in order. */
  tables: readonly ResolvedTable[];
  /** The names of each listing, in order. */
  listed: readonly (readonly string[])[];
  format: ResultFormat;
  /** One per needed system table. */
  system: readonly SystemTableFile[];
  /** What `EXPLAIN` says about the planning of each table. */
  pruning: readonly string[];
};

export type ServerMessage = ParseRequest | RunRequest | { kind: "drop" } | { kind: "cancel" };

export type ChildMessage =
  | { kind: "ready" }
  | Needs
  | Done
  | { kind: "dropped" }
  | {
      kind: "failed";
      error: ErrorRecord;
      /** The process is not to be used again. */
      broken: boolean;
      /** Resident memory of the child after the query. */
      rssBytes: number;
    };

export type Needs = {
  kind: "needs";
  tables: readonly NeededTable[];
  listings: readonly Listing[];
  system: readonly SystemTableName[];
};

export type NeededTable = {
  name: string;
  /** Where it is another one than the query's own. */
  database?: string;
  /** What `AT (VERSION => n)` or `AT (TIMESTAMP => moment)` asks for; the newest snapshot without. */
  travel?: Travel;
  /** A row matters when it matters to one of them. */
  mentions: readonly Mention[];
  /** Names of columns that the query can touch, folded (and other names); absent when it can touch all. */
  columns?: readonly string[];
  /** A common table expression that may have been meant, where there is no such table. */
  cte?: string;
  /** Where the query first mentions it. */
  line?: number;
  column?: number;
};

export type Travel = { version: bigint } | { atNs: bigint };

/** What every row satisfies that matters to one mention of a table. */
export type Mention = {
  range: { minNs?: bigint; maxNs?: bigint };
  predicates: readonly Predicate[];
  /** So many rows of the range matter, those with the newest or oldest `at`. */
  top?: Top;
};

export type TableShape = { name: string; columns: readonly ColumnSpec[] };

export type ResolvedTable = TableShape & {
  /** Columns that the query can touch, of the shape's; all when undefined. The others may come out as NULL. */
  needed: readonly string[] | undefined;
  extents: readonly LocalExtent[];
  /** Rows of which the query touches no column: their number is all that matters, so that no file is opened. */
  bareRows: number;
  /** The view tells of each row which extent it is of (`EXTENT_COLUMN`). */
  namesExtents?: boolean;
  visible?: VisibleRows | undefined;
};

/** What a table shows of its rows, when it keeps them for some days only: see `retention.ts`. */
export type VisibleRows = {
  /** Rows with an earlier `at` are not shown. */
  fromNs: bigint;
  /** The column `at`, as the table spells it. */
  column: string;
};

/** An extent as a file; `columns` are those that it has. */
export type LocalExtent = Pick<PlannedExtent, "id" | "format" | "rows" | "columns" | "minAtNs"> & { path: string };

export type Done = {
  kind: "done";
  rows: number;
  /** Names. */
  columns: readonly string[];
  /** In the format asked for. */
  data: Spooled;
  /** Resident memory of the child after the query. */
  rssBytes: number;
  usage: QueryUsage;
};
