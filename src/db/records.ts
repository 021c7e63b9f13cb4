/**
 * Records: what the program keeps in rows and what is no extent: users, tokens, credentials, jobs, and so on. They live
 * in the database of the catalog, so a cluster has them once, and a backup of the catalog is a backup of them.
 *
 * Modules above the catalog own their tables and statements (`tables.ts` of a folder has the migrations that make them)
 * and write them in the vocabulary that SQLite and PostgreSQL share: `?` for a value, `ON CONFLICT`, `RETURNING`, common
 * table expressions that read. Integers are times in ms, counts and flags (0 or 1), all within 2^53; everything else is
 * text.
 */
export interface RecordStore {
  /** One statement that only reads, as of now; bounded by its own LIMIT, for SQLite answers on the caller's thread. */
  rows(sql: string, values?: readonly RecordValue[], options?: ReadOptions): Promise<RecordRow[]>;
  /**
   * One statement that changes rows, in a transaction of its own. It sees what was committed when it began, and what it
   * changes as it is by then; ` FOR UPDATE SKIP LOCKED` at the end of a SELECT passes over rows that another statement
   * is changing. It is repeated when its answer was lost, so twice must do what once does. Errors are those of
   * `Catalog`.
   */
  write(statement: Omit<Statement, "mustReturn">): Promise<RecordRow[]>;
  /**
   * All statements in one serializable transaction, or none. A statement that says how many rows it must return, and
   * returns another number, undoes the transaction: that is how a change makes sure of what it rests on. Conflicts are
   * repeated. ` FOR SHARE` at the end of a SELECT keeps its rows as they are until the end. Errors are those of
   * `Catalog`: one that is no `EngineError` leaves open whether the change happened.
   */
  transact(statements: readonly Statement[], options?: TransactOptions): Promise<TransactOutcome>;
}

export type ReadOptions = {
  /** Also what was written early and is not durable yet: to prepare what is written next, and never to be shown. */
  early?: true;
};

export type TransactOptions = {
  /**
   * Somebody waits for it: a few rows, written where that takes least, and told before they are durable. What follows
   * may be prepared then; it may be acknowledged when `durable()` has resolved, which begins to make it so at once; that
   * begins a moment later in any case. Nobody is shown them before. A process that dies loses none of it; a computer
   * that loses its power at that moment does. PostgreSQL waits all the same: those who have seen the change may outlive
   * it.
   */
  early?: true;
};

/** `{ nowPlusMs }` is the time of the database, in ms since 1970, plus so many ms: nodes' clocks may differ. */
export type RecordValue = string | number | null | { readonly nowPlusMs: number };

export const NOW: RecordValue = { nowPlusMs: 0 };

/** A row by column name. Read numbers with `Number(…)`: PostgreSQL gives them as text. */
export type RecordRow = Record<string, unknown>;

export type Statement = {
  sql: string;
  values?: readonly RecordValue[];
  /** How many rows it must return (a statement that changes returns rows by `RETURNING`). */
  mustReturn?: number;
};

/**
 * What each statement returned; or which one did not return what it must, and then nothing has happened. Without
 * `durable` it is.
 */
export type TransactOutcome =
  | { done: true; rows: RecordRow[][]; durable?: () => Promise<void> }
  | { done: false; failed: number };

/** The same records, read early: see `ReadOptions`. */
export function readEarly(records: Pick<RecordStore, "rows">): Pick<RecordStore, "rows"> {
  return { rows: (sql, values) => records.rows(sql, values, { early: true }) };
}

/** Where the guard of a transaction fails. */
export function isUnmet({ mustReturn }: Statement, rows: readonly RecordRow[] | undefined): boolean {
  return mustReturn !== undefined && rows?.length !== mustReturn;
}
