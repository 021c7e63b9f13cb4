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
      const rows = await allOf(translated.map(({ text, parameters }) => connection.query(text, parameters)));
      const failed = statements.findIndex((statement, i) => isUnmet(statement, rows[i]));
      return failed === -1 ? { value: { done: true, rows } } : { undo: { done: false, failed } };
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

/** All answers of what was sent at once; the first failure, when all are in: the others only follow from it. */
async function allOf<T>(answers: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(answers);
  return settled.map((answer) => {
    if (answer.status === "rejected") throw answer.reason;
    return answer.value;
  });
}
