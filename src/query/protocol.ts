import type { ErrorRecord } from "../core/errors.ts";
import type { ColumnSpec, ExtentFormat } from "../format/types.ts";

/**
 * The conversation between the server and one query process, one query at a time:
 *
 *     server                         child
 *     parse {text}             →
 *                              ←     needs {tables}          or failed
 *     run {tables} or drop     →
 *                              ←     done {file, rows}       or failed;  dropped
 *
 * Messages travel by structured clone; nanoseconds are bigints.
 */
export type ParseRequest = {
  kind: "parse";
  text: string;
  database: string;
  /** Folders in which extents are opened in place. The first query of a child decides. */
  roots: readonly string[];
};

export type RunRequest = {
  kind: "run";
  /** One per needed table, in order. */
  tables: readonly ResolvedTable[];
  /** All tables of the database, when the query lists them. */
  listed: readonly TableShape[];
};

export type ServerMessage = ParseRequest | RunRequest | { kind: "drop" };

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
    };

export type Needs = { kind: "needs"; tables: readonly NeededTable[]; listsTables: boolean };

export type NeededTable = {
  name: string;
  /** The snapshot asked for by `AT (VERSION => n)`. */
  version?: bigint;
  /** Rows outside of it cannot matter. */
  range: { minNs?: bigint; maxNs?: bigint };
  /** Where the query first mentions it. */
  line?: number;
  column?: number;
};

export type TableShape = { name: string; columns: readonly ColumnSpec[] };

export type ResolvedTable = TableShape & { extents: readonly LocalExtent[] };

export type LocalExtent = { id: string; path: string; format: ExtentFormat; rows: number };

export type Done = {
  kind: "done";
  rows: number;
  /** NDJSON; the reader deletes it. */
  file: string;
  /** Resident memory of the child after the query. */
  rssBytes: number;
};
