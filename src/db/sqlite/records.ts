import type { RecordRow, RecordValue, Statement, TransactOutcome } from "../records.ts";
import { isUnmet } from "../records.ts";
import type { Connection } from "./connection.ts";

/** Records in the catalog's file; times are those of the caller's clock. */

export function readRecords(
  connection: Connection,
  nowMs: number,
  { sql, values = [] }: Pick<Statement, "sql" | "values">,
): RecordRow[] {
  return connection.all(sql.replaceAll(LOCKING, ""), ...values.map((value) => toParameter(value, nowMs)));
}

/** The same with rows as arrays, for answers of very many rows. A text is for one of the two. */
export function readRecordValues(
  connection: Connection,
  nowMs: number,
  { sql, values = [] }: Pick<Statement, "sql" | "values">,
): unknown[][] {
  const statement = connection.statement(sql.replaceAll(LOCKING, ""));
  statement.setReturnArrays(true);
  return statement.all(...values.map((value) => toParameter(value, nowMs))) as unknown as unknown[][];
}

/** In one file there is one writer, and no row that another statement is changing, or could change. */
const LOCKING = / FOR (?:UPDATE SKIP LOCKED|SHARE)/g;

/** Runs the statements in the caller's transaction; throws `Unmet` for it to be undone. */
export function runRecords(connection: Connection, nowMs: number, statements: readonly Statement[]): RecordRow[][] {
  return statements.map((statement, i) => {
    const rows = readRecords(connection, nowMs, statement);
    if (isUnmet(statement, rows)) throw new Unmet(i);
    return rows;
  });
}

export function outcomeOf(run: () => RecordRow[][]): TransactOutcome {
  try {
    return { done: true, rows: run() };
  } catch (error) {
    if (error instanceof Unmet) return { done: false, failed: error.statement };
    throw error;
  }
}

class Unmet extends Error {
  readonly statement: number;
  constructor(statement: number) {
    super(`statement ${statement} did not return what it must`);
    this.statement = statement;
  }
}

function toParameter(value: RecordValue, nowMs: number): string | number | null {
  return typeof value === "object" && value !== null ? Math.floor(nowMs + value.nowPlusMs) : value;
}
