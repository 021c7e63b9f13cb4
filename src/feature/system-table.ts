import type { Caller } from "../auth/caller.ts";
import type { RecordStore } from "../db/records.ts";
import type { ColumnSpec } from "../format/types.ts";

/** A table of the schema `system`, whose rows the server makes for each query that names it. */
export type SystemTable = {
  /** Lower case, without the schema: `toys` for `system.toys`. */
  name: string;
  /** Of the types bool, int, long, real, string and timestamp. */
  columns: readonly ColumnSpec[];
  /** Those that the caller may see. Times are in nanoseconds. */
  rows(context: SystemTableContext): AsyncIterable<SystemRow>;
};

export type SystemTableContext = {
  records: Pick<RecordStore, "rows">;
  /** Who asks. */
  caller: Pick<Caller, "owner" | "subject" | "kind" | "role" | "databases">;
  /** The database of the query. */
  database: string;
  /** Aborted when the query is. */
  signal: AbortSignal;
};

/** A row of a system table, by the names of its columns; undefined for NULL. */
export type SystemRow = Readonly<Record<string, SystemValue>>;
export type SystemValue = string | number | bigint | boolean | undefined;
