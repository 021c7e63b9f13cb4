import {
  isUnmet,
  type RecordRow,
  type RecordStore,
  type RecordValue,
  type Statement,
  type TransactOutcome,
} from "../records.ts";
import type { Parameter } from "./connection.ts";
import type { Database } from "./database.ts";
import { isOfAborted, violatesConstraint } from "./errors.ts";

/** Records in the schema of the catalog. */
export class PostgresRecords implements RecordStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async rows(sql: string, values: readonly RecordValue[] = []): Promise<RecordRow[]> {
    const { text, parameters } = this.#translate({ sql, values });
    return await this.#database.rows(text, parameters);
  }

  async write(statement: Statement): Promise<RecordRow[]> {
    const { text, parameters } = this.#translate(statement);
    return await this.#database.write(text, parameters);
  }

  async transact(statements: readonly Statement[]): Promise<TransactOutcome> {
    const translated = statements.map((statement) => this.#translate(statement));
    return await this.#database.transaction<TransactOutcome>(async (connection) => {
      const sent = translated.map(({ text, parameters }) => connection.query(text, parameters));
      const answers = await Promise.allSettled(sent);
      const failed = statements.findIndex((statement, i) => isUnmetBy(statement, answers[i]));
      if (failed !== -1 && answers.slice(failed).every(followsFromUnmet)) return { undo: { done: false, failed } };
      return { value: { done: true, rows: valuesOf(answers) } };
    });
  }

  #translate(statement: Statement): { text: string; parameters: Parameter[] } {
    return translate(statement, this.#database.now);
  }
}

/** A statement in the words of PostgreSQL; `now` is the time where a test brings its own. */
export function translate(
  { sql, values = [] }: Statement,
  now: number | null,
): { text: string; parameters: Parameter[] } {
  const parameters: Parameter[] = [];
  const place = (value: Parameter) => `$${parameters.push(value)}`;
  let next = 0;
  const text = sql.replaceAll("?", () => {
    const value = values[next++];
    if (value === undefined) throw new Error(`a value is missing for: ${sql}`);
    if (typeof value !== "object" || value === null) return place(value);
    return `(engine.now_ms(${place(now)}::bigint) + ${place(Math.floor(value.nowPlusMs))}::bigint)`;
  });
  return { text, parameters };
}

type Answer = PromiseSettledResult<RecordRow[]>;

function isUnmetBy(statement: Statement, answer: Answer | undefined): boolean {
  return answer?.status === "fulfilled" && isUnmet(statement, answer.value);
}

/**
 * Whether an answer says nothing more where a guard before it was unmet: all statements are sent at once, so those behind
 * the guard have run as well, and may have violated a constraint for want of what it was to make sure of.
 */
function followsFromUnmet(answer: Answer): boolean {
  return answer.status === "fulfilled" || violatesConstraint(answer.reason) || isOfAborted(answer.reason);
}

/** All answers of what was sent at once; throws the first failure: the others only follow from it. */
function valuesOf(answers: readonly Answer[]): RecordRow[][] {
  return answers.map((answer) => {
    if (answer.status === "rejected") throw answer.reason;
    return answer.value;
  });
}
