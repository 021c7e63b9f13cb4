import type { Caller } from "../../auth/caller.ts";
import type { QueryParameters } from "../parse/parameters.ts";
import type { QueryLanguage } from "./query.ts";

/** Says what a query would do, without running it: what is wrong with it, its columns, and what it would read. */
export interface QueryChecker {
  /**
   * Rejects with `EngineError` for what is not the text's fault: an unknown database, a budget that is passed, a server
   * that is full.
   */
  check(request: CheckRequest): Promise<QueryCheck>;
}

export type CheckRequest = {
  caller: Pick<Caller, "owner" | "subject" | "kind" | "databases" | "role">;
  database: string;
  text: string;
  language: QueryLanguage;
  parameters?: QueryParameters;
  requestId: string;
  signal: AbortSignal;
};

export type QueryCheck = {
  /** None where nothing is wrong. Parsers stop at the first mistake, so there is one at most for now. */
  diagnostics: readonly Diagnostic[];
  /** Of the answer; undefined where they depend on rows (a PIVOT without values), or the text is wrong. */
  columns: readonly { name: string; type: string }[] | undefined;
  /** What it would read, as far as it was planned. */
  tables: readonly CheckedTable[];
};

export type Diagnostic = {
  severity: "error";
  /** As the error of the query would have it. */
  code: string;
  message: string;
  from: Place;
  /** After the last character that is meant. */
  to: Place;
  suggestion?: string;
  hint?: string;
};

/** Lines and columns begin with 1, columns count characters; the offset counts UTF-16 units, as editors in browsers do. */
export type Place = { line: number; column: number; offset: number };

export type CheckedTable = {
  database: string;
  table: string;
  snapshot: number;
  extents: number;
  extentsTotal: number;
  rows: number;
  /** Size of those extents; of most only some columns are read. */
  bytes: number;
};
