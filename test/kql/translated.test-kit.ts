import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { Readable } from "node:stream";
import { TIME_MACROS } from "../../src/io/duckdb/macros.ts";
import { loadDuckDb, prepareOne, runSql, type Connection, type DuckDb } from "../../src/io/duckdb/duckdb.ts";
import { KqlRefused, type KqlTable, type KqlTranslation } from "../../src/query/kql/contract.ts";
import { MACROS } from "../../src/query/kql/macros.ts";
import { translate } from "../../src/query/kql/translate.ts";
import { bodyOf } from "../../src/query/stream/result-body.ts";
import { writeResult } from "../../src/query/stream/result-writer.ts";
import type { KqlCase, KqlValue } from "./cases.test-kit.ts";

export type Outcome =
  | { rows: Readonly<Record<string, KqlValue>>[]; types: Record<string, string>; sql: string }
  | { refused: KqlRefused["failure"] | { code: "execution_error"; message: string }; sql?: string };

const NOW_NS = 1_700_000_000_123_456_700n;

/** Translates texts and runs them in a DuckDB of their own, without a server: quick, and without its gate. */
export class Translated {
  readonly #duckdb: DuckDb;
  readonly #tables: readonly KqlTable[];

  private constructor(duckdb: DuckDb, tables: readonly KqlTable[]) {
    this.#duckdb = duckdb;
    this.#tables = tables;
  }

  static async open(tables: readonly KqlTable[] = []): Promise<Translated> {
    return new Translated(await loadDuckDb(), tables);
  }

  async run(query: string, setUp: readonly string[] = []): Promise<Outcome> {
    const database = await this.#duckdb.open(":memory:");
    const connection = await this.#duckdb.connect(database);
    let sql: string | undefined;
    try {
      for (const macro of TIME_MACROS) await runSql(this.#duckdb, connection, `CREATE MACRO ${macro}`);
      for (const statement of setUp) await runSql(this.#duckdb, connection, statement);
      const made = await this.#translated(connection, query);
      sql = made.sql;
      return { ...(await this.#rowsOf(connection, made)), sql };
    } catch (error) {
      const shown = sql === undefined ? {} : { sql };
      if (error instanceof KqlRefused) return { refused: error.failure, ...shown };
      return { refused: { code: "execution_error", message: String(error) }, ...shown };
    } finally {
      this.#duckdb.disconnect_sync(connection);
      this.#duckdb.close_sync(database);
    }
  }

  async #translated(connection: Connection, text: string): Promise<Extract<KqlTranslation, { kind: "query" }>> {
    const keys: string[][] = [];
    const known = new Set<string>();
    for (;;) {
      const tableNames = this.#tables.map(({ name }) => name);
      const made = translate({ text, tables: this.#tables, tableNames, nowNs: NOW_NS, keys });
      for (const macro of made.macros.filter((name) => !known.has(name))) {
        known.add(macro);
        await runSql(this.#duckdb, connection, MACROS.get(macro) ?? "");
      }
      if (made.kind === "query") return made;
      const { rows } = await this.#rowsOf(connection, { ...made, columns: [] });
      keys.push(rows.flatMap((row) => Object.values(row).filter((value) => typeof value === "string")));
    }
  }

  async #rowsOf(
    connection: Connection,
    { sql, columns: predicted }: Pick<Extract<KqlTranslation, { kind: "query" }>, "sql" | "columns">,
  ): Promise<Extract<Outcome, { rows: unknown }>> {
    const duckdb = this.#duckdb;
    const statement = await prepareOne(duckdb, connection, sql, "SELECT");
    const columns = Array.from({ length: duckdb.prepared_statement_column_count(statement) }, (_, i) => ({
      name: duckdb.prepared_statement_column_name(statement, i),
      type: duckdb.prepared_statement_column_logical_type(statement, i),
    }));
    duckdb.destroy_prepare_sync(statement);
    const file = join(tmpdir(), `kql-${randomUUID()}`);
    const { data } = await writeResult(duckdb, connection, { columns, sql, format: "ndjson" }, file);
    const lines = await text(Readable.from(await bodyOf(data, new AbortController().signal)));
    const rows = lines.split("\n").filter((line) => line !== "");
    return {
      rows: rows.map(parseExactly),
      types: Object.fromEntries(predicted.map(({ name, type }) => [name, type])),
      sql,
    };
  }
}

type Source = { source: string };

/** JSON whose whole numbers beyond 2^53 are bigints. */
export function parseExactly(line: string): Record<string, KqlValue> {
  const revive = (_: string, value: unknown, { source }: Source): unknown =>
    typeof value === "number" && /^-?\d+$/.test(source) && !Number.isSafeInteger(value) ? BigInt(source) : value;
  return JSON.parse(line, revive as (key: string, value: unknown) => unknown) as Record<string, KqlValue>;
}

/** What is wrong with an outcome; undefined if nothing is. */
export function differenceOf(wanted: KqlCase, outcome: Outcome): string | undefined {
  const show = (value: unknown): string =>
    JSON.stringify(value, (_, one: unknown) => (typeof one === "bigint" ? `${one}n` : one));
  if ("refused" in wanted) {
    if (!("refused" in outcome)) return `answered ${show(outcome.rows)} instead of ${show(wanted.refused)}`;
    const { code, message, ...place } = wanted.refused;
    const isIt =
      outcome.refused.code === code &&
      outcome.refused.message.includes(message) &&
      Object.entries(place).every(([key, value]) => (outcome.refused as Record<string, unknown>)[key] === value);
    return isIt ? undefined : `refused with ${show(outcome.refused)} instead of ${show(wanted.refused)}`;
  }
  if ("refused" in outcome) return `refused with ${show(outcome.refused)}; ${outcome.sql ?? ""}`;
  const sorted = (rows: readonly unknown[]): string[] => {
    const texts = rows.map(show);
    return wanted.unordered === true ? texts.toSorted() : texts;
  };
  const [want, have] = [sorted(wanted.rows), sorted(outcome.rows)];
  if (want.join("\n") !== have.join("\n")) return `${show(have)} instead of ${show(want)}; ${outcome.sql}`;
  if (wanted.types !== undefined && show(wanted.types) !== show(outcome.types)) {
    return `types ${show(outcome.types)} instead of ${show(wanted.types)}`;
  }
  return undefined;
}
