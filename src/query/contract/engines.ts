import type { Caller } from "../../auth/caller.ts";
import type { AskedBudget } from "../budgets/budget.ts";
import type { ResultFormat } from "../stream/formats.ts";
import type { QueryService } from "./query.ts";

/**
 * Queries that another program runs, a query engine that an admin has named. It reads what the engine there may, with
 * the engine's own credential: so only callers who may use every database send it anything.
 */
export interface QueryEngines {
  /** Names of those that there are. */
  names(): Promise<readonly string[]>;
  /**
   * Begins a text there, as it is, reading only. Rejects with `not_found` for a name that nobody has, `invalid_query` for
   * what is wrong with the text, `engine_failed` for everything else that goes wrong there.
   */
  begin(request: EngineRequest): Promise<EngineRun>;
  /** Ends a query there that another process began; nothing where it is over, or the engine is gone. */
  cancel(engine: string, queryId: string): Promise<void>;
}

export type EngineRequest = {
  engine: string;
  text: string;
  /** What names without a database are of. */
  database: string;
  caller: Pick<Caller, "subject" | "kind">;
  address: string;
  requestId: string;
  /** Aborted when nobody wants the answer any more: the query there is ended. */
  signal: AbortSignal;
};

export type EngineRun = {
  /** As the engine knows it. */
  queryId: string;
  /** What comes, a page at a time; whoever stops early has the query there ended. Rejects as `begin` does. */
  pages: AsyncIterable<EnginePage>;
};

export type EnginePage = {
  /** Of every page, once they are known. */
  columns: readonly EngineColumn[] | undefined;
  /** Values as texts that DuckDB casts to the types of the columns; undefined for NULL. */
  rows: readonly (readonly (string | undefined)[])[];
  progress: EngineProgress;
};

export type EngineColumn = {
  name: string;
  /** Of DuckDB; written by this program, whatever the engine calls it. */
  sqlType: string;
  /** Texts are JSON, in which values are texts. */
  isNested: boolean;
};

export type EngineProgress = {
  /** In the engine's words, such as `QUEUED` or `RUNNING`. */
  state: string;
  /** 0 to 100, where the engine knows it. */
  percent?: number | undefined;
  /** Rows that it has read so far. */
  rowsRead?: number | undefined;
};

/** Rows of an engine, in files of one text column per column of theirs. */
export type ForeignRows = {
  columns: readonly EngineColumn[];
  /** Of the format `tlm`, with the columns of `foreignColumn`. */
  paths: readonly string[];
  rows: number;
};

/** The column of text that holds column `i`. */
export const foreignColumn = (i: number): string => `c${i}`;

export type Conversion = {
  rows: ForeignRows;
  format: ResultFormat;
  /** See `QueryRequest`. */
  maxRows?: number | undefined;
  /** See `QueryRequest`. */
  saveTo?: string | undefined;
  caller: Pick<Caller, "subject">;
  database: string;
  budget: AskedBudget;
  signal: AbortSignal;
};

export type Converted = {
  rows: number;
  isTruncated: boolean;
  columns: readonly string[];
  body: AsyncIterable<Uint8Array>;
};

/** Turns rows of an engine into an answer, in a query process and under the budgets of a query. */
export interface RowConverter {
  /** Rejects with `execution_error` for a value that is not of its column's type, and as `QueryService.run` does. */
  convert(conversion: Conversion): Promise<Converted>;
}

/** All that query processes do. */
export type QueryProcesses = QueryService & RowConverter;
