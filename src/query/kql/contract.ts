import type { ColumnType } from "../../format/types.ts";

/** The types of KQL's columns. */
export type KqlType =
  | "bool"
  | "int"
  | "long"
  | "real"
  | "decimal"
  | "string"
  | "datetime"
  | "timespan"
  | "guid"
  | "dynamic";

export type KqlTable = { name: string; columns: readonly { name: string; type: ColumnType }[] };

/** What a text says about tables before anything is known of them. */
export type KqlNames = {
  tables: readonly string[];
  /** It has a wildcard over names of tables. */
  needsAllTables: boolean;
};

export type KqlRequest = {
  text: string;
  /** Of the query's database at its snapshot; those that the text names and that exist. */
  tables: readonly KqlTable[];
  /** All names of tables, for wildcards and suggestions. */
  tableNames: readonly string[];
  /** The moment that now() means, in nanoseconds since 1970. */
  nowNs: bigint;
  /** The keys that earlier rounds asked for (plugins whose columns depend on rows), in order. */
  keys: readonly (readonly string[])[];
  /** The text is `kqlCondition` of something: refused when that is no single expression. */
  isCondition?: true;
};

export type KqlTranslation =
  | {
      kind: "query";
      sql: string;
      columns: readonly { name: string; type: KqlType }[];
      /** Names of the helper macros that it calls. */
      macros: readonly string[];
      render?: { kind: string; properties: Record<string, unknown> };
      /** Whether the moment of the request is in it: another one makes another translation. */
      readsNow?: boolean;
    }
  /** One more round: the distinct values (one text column, at most 1,001 rows) of this query are the next `keys`. */
  | { kind: "keys"; sql: string; macros: readonly string[] };

export type KqlFailure = {
  code: "parse_error" | "invalid_query";
  message: string;
  line?: number;
  column?: number;
  /** Of what is meant from there on, in UTF-16 units, where the language service says so. */
  length?: number;
  suggestion?: string;
};

/** What a text is told whose brackets, operators or expressions are in each other more often than can be followed. */
export const TOO_DEEP = "the query is nested too deeply";

/** The text is refused: with the place in it, where there is one. */
export class KqlRefused extends Error {
  readonly failure: KqlFailure;

  constructor(failure: KqlFailure) {
    super(failure.message);
    this.failure = failure;
  }
}
