/** A table as the schema of the page has it; the types of the page itself bring those of browsers with them. */
export type KqlTable = { name: string; columns: readonly { name: string; type: string }[] };

/** What the text of an editor is read against: tables that were told under a number, see `kql-schemas.ts`. */
export type KqlText = {
  text: string;
  /** The number of its tables. */
  schema: number;
  /** Blank lines end a query, each of which runs alone. */
  isScript: boolean;
};

/** The number of tables that are not known: nothing is said of names then. */
export const UNKNOWN_TABLES = 0;

/** To the worker. Each ask is answered under its number. */
export type KqlAsk =
  /** All names of a database. Their columns follow for those that a text names. */
  | { kind: "tables"; schema: number; names: readonly string[] }
  | { kind: "columns"; schema: number; tables: readonly KqlTable[] }
  | { kind: "forget"; schema: number }
  | ({ kind: "complete"; ask: number; at: number } & KqlText)
  | ({ kind: "problems"; ask: number } & KqlText)
  | ({ kind: "describe"; ask: number; at: number } & KqlText);

/** From the worker. */
export type KqlTold =
  /** The language service is loaded and has analysed a first text. */
  | { kind: "ready" }
  | { kind: "answer"; ask: number; value: unknown }
  | { kind: "failed"; ask: number; message: string };

/** A completion: `before` is written in the place of what was typed, the cursor goes behind it and before `after`. */
export type KqlCompletion = {
  /** What is typed to find it. */
  label: string;
  /** What the list shows, where it differs. */
  shown?: string;
  kind: KqlCompletionKind;
  before: string;
  after: string;
  /** Sorts it among others that are as near to what was typed. */
  order: string;
  /** Something is to be chosen behind it, too. */
  isContinued: boolean;
};

export type KqlCompletionKind =
  | "column"
  | "table"
  | "function"
  | "aggregate"
  | "variable"
  | "parameter"
  | "operator"
  | "keyword"
  | "type"
  | "chart";

export type KqlCompletions = {
  from: number;
  to: number;
  options: KqlCompletion[];
  /** Of large tables only columns are offered that fit this; undefined where all are. */
  typed?: string;
  /** Whether all that fit it are offered. */
  isWhole?: boolean;
};

/**
 * What is wrong with a part of the text: an error of its syntax, or a warning that its names and types do not fit the
 * tables. These may have changed since the page has read the schema.
 */
export type KqlProblem = { from: number; to: number; message: string; severity: "error" | "warning" };

export type KqlAnswers = {
  complete: KqlCompletions;
  problems: KqlProblem[];
  /** What the name at a place means; undefined where nothing is known of it. */
  describe: { from: number; to: number; text: string } | undefined;
};
