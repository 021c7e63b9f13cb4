import type { ErrorRecord } from "../../core/errors.ts";
import type { ForeignRows } from "../contract/engines.ts";
import type { ResolvedTable } from "../contract/tables.ts";
import type { KqlType } from "../kql/contract.ts";
import type { QueryParameters } from "../parse/parameters.ts";
import type { RowSelection } from "../parse/row-condition.ts";
import type { Needs } from "../resolve/needs.ts";
import type { ResultFormat } from "../stream/formats.ts";
import type { Spooled } from "../stream/spool.ts";
import type { SystemTableFile, SystemTableName } from "../system-tables/system-tables.ts";
import type { QueryUsage } from "./usage.ts";

/**
 * The conversation between the server and one query process, one query at a time:
 *
 *     server                         child
 *     parse {text}             →
 *                              ←     needs {tables}          or failed
 *     run {tables} or drop     →
 *                              ←     progress, any number of times
 *                              ←     done {file, rows}       or failed;  dropped
 *
 *     parse {text}             →
 *                              ←     needs {tables}          or failed
 *     describe {tables}        →
 *                              ←     described {columns}     or failed
 *
 *     convert {rows}           →
 *                              ←     done {file, rows}       or failed
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
  /** Most rows that are wanted of the answer: extents that only later ones are in need not be read. */
  maxRows?: number | undefined;
  /** The text is what the translator made of a KQL query. */
  translated?: TranslatedText;
  /** The text is a condition on rows of one table: see `row-condition.ts`. */
  selection?: RowSelection | undefined;
};

export type TranslatedText = {
  /** The helper macros that it calls. */
  macros: readonly string[];
  /** The columns that its rows have; absent where that is not said. */
  columns?: readonly { name: string; type: KqlType }[];
};

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
  /** Most rows of the answer; see `writeResult`. */
  maxRows?: number | undefined;
};

/** The open query is bound over tables without rows, and forgotten. */
export type DescribeRequest = Pick<RunRequest, "tables" | "listed"> & {
  kind: "describe";
  system: readonly SystemTableName[];
};

/** Rows that another program has answered with become an answer of ours. */
export type ConvertRequest = {
  kind: "convert";
  rows: ForeignRows;
  format: ResultFormat;
  memoryBytes: number;
  maxRows?: number | undefined;
};

export type ServerMessage =
  | ParseRequest
  | RunRequest
  | DescribeRequest
  | ConvertRequest
  | { kind: "drop" }
  | { kind: "cancel" };

export type ChildMessage =
  | { kind: "ready" }
  | ({ kind: "progress" } & QueryProgress)
  | Parsed
  | Done
  | { kind: "dropped" }
  /** With their types as clients are told them; undefined where rows decide which there are. */
  | { kind: "described"; columns: readonly { name: string; type: string }[] | undefined }
  | {
      kind: "failed";
      error: ErrorRecord;
      /** The process is not to be used again. */
      broken: boolean;
      /** Resident memory of the child after the query. */
      rssBytes: number;
    };

/** How far a run is; sent seldom, and only when something has changed. */
export type QueryProgress = {
  /** 0 to 100, where DuckDB knows it: it does of files of Parquet. */
  percent?: number;
  /** The most that was spilled at one time. */
  spillBytes: number;
};

export type Parsed = Needs & { kind: "needs" };

export type Done = {
  kind: "done";
  rows: number;
  /** Whether there was a row more than `maxRows`. */
  isTruncated: boolean;
  /** Names. */
  columns: readonly string[];
  /** In the format asked for. */
  data: Spooled;
  /** Resident memory of the child after the query. */
  rssBytes: number;
  usage: QueryUsage;
};
