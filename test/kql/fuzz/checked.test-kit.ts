import { loadDuckDb, prepareOne, runSql, sqlTypeOf, quoteIdentifier } from "../../../src/io/duckdb/duckdb.ts";
import type { Connection, DuckDb, PreparedStatement } from "../../../src/io/duckdb/duckdb.ts";
import type { OutputColumn } from "../../../src/io/duckdb/projection.ts";
import { KqlRefused, type KqlTable, type KqlTranslation } from "../../../src/query/kql/contract.ts";
import { MACROS, macrosOf } from "../../../src/query/kql/macros.ts";
import { namesOf, translate } from "../../../src/query/kql/translate.ts";
import { checkColumns } from "../../../src/query/scan/translated.ts";

/** What became of a text. `wrong`: none of the two that may be: a statement that binds, or a refusal with its place. */
export type Checked =
  | { kind: "translated"; sql: string }
  | { kind: "refused"; message: string }
  | { kind: "wrong"; what: string; sql?: string };

/** Of a text below 10 kB: so much processor time is a hang. */
const MOST_MICROS = 2_000_000;

const NOW_NS = 1_700_000_000_123_456_700n;

/** Refusals of the whole text, which have no place in it. */
const WITHOUT_PLACE: ReadonlySet<string> = new Set([
  "the query is empty",
  "the query has no tabular statement",
  "the query is nested too deeply",
  "the query is too large",
  "the query cannot be analyzed",
]);

/** What macros say of values that are beyond their limits. */
const LIMITS = [...MACROS.values()].flatMap((sql) =>
  Array.from(sql.matchAll(/ error\('([^']+)'\)/g), ([, limit = ""]) => limit),
);

/** What no message may say, unless the text says it. */
const LEAKS = /undefined|\[object|\bNaN\b|\bat \S+ \(|\bSELECT\b|kql_\w+|TypeError|\$\$|Symbol\b|Expression\b/g;

/** Translates texts and binds what comes of them in a DuckDB that holds the tables empty. Runs none. */
export class Checker {
  readonly #duckdb: DuckDb;
  readonly #connection: Connection;
  readonly #tables: readonly KqlTable[];

  private constructor(duckdb: DuckDb, connection: Connection, tables: readonly KqlTable[]) {
    this.#duckdb = duckdb;
    this.#connection = connection;
    this.#tables = tables;
  }

  static async open(tables: readonly KqlTable[]): Promise<Checker> {
    const duckdb = await loadDuckDb();
    const connection = await duckdb.connect(await duckdb.open(":memory:"));
    for (const { name, columns } of tables) {
      const list = columns.map((column) => `${quoteIdentifier(column.name)} ${sqlTypeOf(column.type)}`);
      await runSql(duckdb, connection, `CREATE TABLE ${quoteIdentifier(name)} (${list.join(", ")})`);
    }
    for (const name of macrosOf([...MACROS.keys()].join(" "))) {
      await runSql(duckdb, connection, MACROS.get(name) ?? "");
    }
    // The optimizer works out what is constant, which would run a part of the query.
    await runSql(duckdb, connection, "PRAGMA disable_optimizer");
    const checker = new Checker(duckdb, connection, tables);
    // The library prepares itself with the first text, which takes seconds on a slow machine and is no fault of the text.
    checker.#translated("print x = 1");
    return checker;
  }

  async check(text: string): Promise<Checked> {
    const before = process.cpuUsage();
    const outcome = this.#translated(text);
    const { user } = process.cpuUsage(before);
    if (user > MOST_MICROS) return { kind: "wrong", what: `it took ${user / 1_000} ms to translate` };
    return "translation" in outcome ? this.#bound(outcome.translation) : outcome;
  }

  /** The statement, as DuckDB's own parser reads it: JSON. */
  async treeOf(sql: string): Promise<unknown> {
    const tree = "SELECT CAST(json_serialize_sql($1::VARCHAR) AS VARCHAR)";
    const [[text] = []] = await runSql(this.#duckdb, this.#connection, tree, sql);
    return JSON.parse(text ?? "null");
  }

  #translated(text: string): Checked | { translation: KqlTranslation } {
    try {
      namesOf(text);
      const tableNames = this.#tables.map(({ name }) => name);
      return { translation: translate({ text, tables: this.#tables, tableNames, nowNs: NOW_NS, keys: [] }) };
    } catch (error) {
      if (error instanceof KqlRefused) return refusalOf(text, error.failure);
      return { kind: "wrong", what: `it throws ${String(error)}: ${placeOf(error)}` };
    }
  }

  async #bound(translation: KqlTranslation): Promise<Checked> {
    const { sql } = translation;
    const unknown = sql.match(/\bkql_\w+(?=\()/g)?.find((name) => !MACROS.has(name));
    if (unknown !== undefined) return { kind: "wrong", what: `there is no macro ${unknown}`, sql };
    try {
      const statement = await prepareOne(this.#duckdb, this.#connection, sql, "SELECT");
      try {
        if (translation.kind === "query") {
          checkColumns(this.#duckdb, this.#columnsOf(statement), translation.columns);
        }
      } finally {
        this.#duckdb.destroy_prepare_sync(statement);
      }
      return { kind: "translated", sql };
    } catch (error) {
      // Binding works out what is constant: here it has run into a limit of a macro, which answers with its own words.
      if (LIMITS.some((limit) => String(error).includes(limit))) return { kind: "translated", sql };
      return { kind: "wrong", what: `it does not bind: ${String(error).split("\n\nLINE")[0]}`, sql };
    }
  }

  #columnsOf(statement: PreparedStatement): OutputColumn[] {
    return Array.from({ length: this.#duckdb.prepared_statement_column_count(statement) }, (_, i) => ({
      name: this.#duckdb.prepared_statement_column_name(statement, i),
      type: this.#duckdb.prepared_statement_column_logical_type(statement, i),
    }));
  }
}

/** A refusal is in order where it has a code, a message of ours, and a place inside the text. */
function refusalOf(text: string, { code, message, line, column }: KqlRefused["failure"]): Checked {
  const wrong = (what: string): Checked => ({ kind: "wrong", what: `${what}: ${message}` });
  if (code !== "parse_error" && code !== "invalid_query") return wrong(`its code is ${String(code)}`);
  if (message.trim() === "" || message.length > 1_000) return wrong("its message is empty or long");
  const leak = message.match(LEAKS)?.find((one) => !text.includes(one));
  if (leak !== undefined) return wrong(`its message says ${leak}`);
  if (line === undefined || column === undefined) {
    return WITHOUT_PLACE.has(message) ? { kind: "refused", message } : wrong("it has no place");
  }
  const found = text.split("\n")[line - 1];
  const isInside = found !== undefined && column >= 1 && column <= Array.from(found).length + 1;
  return isInside ? { kind: "refused", message } : wrong(`its place ${line}:${column} is outside of the text`);
}

/** Where an error comes from: the first place in our sources. */
function placeOf(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  return /src\/query\/[^)\s]+/.exec(stack)?.[0] ?? "";
}
