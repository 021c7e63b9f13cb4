import type { Caller } from "../../auth/caller.ts";
import type { PlannedExtent } from "../../catalog/catalog.ts";
import type { AskedBudget } from "../budgets/budget.ts";
import type { ResultFormat } from "../stream/formats.ts";
import type { QueryParameters } from "../parse/parameters.ts";
import type { DeletionSelection, ExploreSelection, TailSelection } from "../parse/row-condition.ts";
import type { TableShape } from "./tables.ts";

/**
 * Queries, as the routes see them. Each step has a folder; `attempt.ts` calls them in order, `service.ts` decides who
 * may run and whether there is another attempt.
 *
 *     translate KQL only, in a process of its own: to SQL, over the columns that its tables have
 *     parse     in a warm child process: SQL through DuckDB's own parser, as a tree
 *     resolve   in the child: what the tree may do, and which tables it needs; here: those tables at one snapshot
 *     prune     here: extents by time, column statistics, limits and filters
 *     fetch     here: the extents that are left, through a cache on local disk
 *     scan      in the same child: DuckDB over exactly those extents, rows counted
 *     stream    here: the answer in the format asked for, at the client's pace
 */
export interface QueryService {
  /** Runs one query. Rejects with `EngineError`. The caller must drain or close `body`. */
  run(request: QueryRequest): Promise<QueryResult>;
}

/** The languages of queries. */
export const QUERY_LANGUAGES = ["sql", "kql"] as const;
export type QueryLanguage = (typeof QUERY_LANGUAGES)[number];

export type QueryRequest = {
  /** Who asks; has the role, and is checked for the database here, whatever the protocol. */
  caller: Pick<Caller, "owner" | "subject" | "kind" | "databases" | "role">;
  /** Where the request came from, for the audit log. */
  address?: string;
  database: string;
  text: string;
  /** Of the text; SQL when not given. KQL takes no parameters. */
  language?: QueryLanguage;
  /** KQL only: the answer is the SQL that the text becomes, and its plan, as `EXPLAIN` gives it. */
  explain?: boolean;
  /** Values of `$name`, `$1` and `?` in the text. */
  parameters?: QueryParameters;
  /** Of the answer; NDJSON when not given. */
  format?: ResultFormat;
  /** Most rows of the answer, which says whether there were more. Plans (`EXPLAIN`) are whole in any case. */
  maxRows?: number | undefined;
  /** Lowers the server's budget for a query. */
  budget?: AskedBudget;
  /** For logs. */
  requestId: string;
  /** By which the caller finds and ends it: a UUID in lower case, of no other query of theirs that runs here. */
  queryId?: string | undefined;
  /** A path in the file system of the temporary folder, where nothing is: the answer becomes that file, the caller's. */
  saveTo?: string;
  /** The caller sees tables and their names, and no table of the schema `system`. */
  tablesOnly?: boolean;
  /** Only of this program: see `row-matcher.ts`. */
  matching?: MatchedRows;
  /** Only of this program: see `tail/`. */
  tailing?: TailedRows;
  /** Only of this program: see `explore/`. */
  exploring?: ExploredRows;
  /** How whoever asks can name a query engine for the text instead: a refusal for what it would read says so. */
  runOnBy?: "X-Engine-Run-On" | "run_on" | undefined;
  /** Aborted when the client leaves: the query is killed and everything it holds is freed. */
  signal: AbortSignal;
};

/** The text is a condition, and the query is about rows of these extents, past their retention or not. */
export type MatchedRows = DeletionSelection & { extentIds: ReadonlySet<string>; snapshot: number };

/**
 * The text is the first filter of tails, and the query is about rows of these extents, dead or alive, from a place on
 * (`numbered-rows.ts`).
 */
export type TailedRows = {
  selection: TailSelection;
  /** Who asked for the rows of another table of that name is told that there is none. */
  tableId: number;
  extents: readonly PlannedExtent[];
  from: number;
};

/**
 * The text is a condition, in SQL or as `kqlCondition` has it, and the query counts rows of one table, whose columns at
 * its snapshot are these. Of a table that is too large for the budget of bytes some extents are read: see `QuerySample`.
 */
export type ExploredRows = { selection: ExploreSelection; shape: TableShape };

/** Rows of the extents that were read, of those that could matter. */
export type QuerySample = { rowsRead: number; rowsTotal: number; extentsRead: number; extentsTotal: number };

export type QueryResult = {
  /** Rows in the result, known before the first byte. */
  rows: number;
  /** Whether there are more, which the request's `maxRows` left out. */
  isTruncated: boolean;
  /** Names of its columns. */
  columns: readonly string[];
  /** The newest that it could read: tables without a time of their own were read there. */
  snapshot: number;
  /** In the format asked for; empty when it is saved. */
  body: AsyncIterable<Uint8Array>;
  /** Where the budget was too small for all extents. */
  sample?: QuerySample;
  /** How a KQL query asks for its rows to be drawn. */
  render?: QueryRender;
};

/** What the operator `render` of a KQL query says. */
export type QueryRender = { kind: string; properties: Record<string, unknown> };
