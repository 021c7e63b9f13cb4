import { runOne, runSql } from "../../io/duckdb/duckdb.ts";
import { isConstant } from "../parse/constant-expression.ts";
import { isOutOfMemory, readDuckDbError } from "../errors/duckdb-error.ts";
import { literalMoment, plainMoment } from "../parse/literal-moment.ts";
import type { Constant, Operand } from "./predicates.ts";
import { printTree } from "../parse/print-tree.ts";
import { rewriteQuery } from "../parse/rewrite.ts";
import { selectOf, type SqlContext } from "../parse/sql-tree.ts";
import { QueryRefused, type JsonObject } from "../parse/tree.ts";

/**
 * Evaluates constant expressions (`isConstant`) in the query's own transaction, so that `now()` is the query's. What
 * DuckDB cannot evaluate has no value here; the query itself will say why.
 */
export class Evaluator {
  readonly #context: SqlContext;
  #left: number;
  #hasFailed = false;

  constructor(context: SqlContext, maxEvaluations: number) {
    this.#context = context;
    this.#left = maxEvaluations;
  }

  /** Whether an expression failed, which took the transaction with it: `now()` has moved on since. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  async bigint(expression: JsonObject): Promise<bigint | undefined> {
    const text = await this.#textOf(expression);
    if (text === undefined) return undefined;
    const [value] = (await this.#row(`SELECT TRY_CAST(v AS BIGINT) FROM (${text}) AS constant(v)`)) ?? [];
    return value === undefined || value === null ? undefined : BigInt(value);
  }

  /** As nanoseconds; undefined for what is no moment, and for NULL. */
  async moment(expression: JsonObject): Promise<bigint | undefined> {
    const literal = literalMoment(expression);
    if (literal !== undefined) return literal;
    const text = await this.#textOf(expression);
    if (text === undefined) return undefined;
    const [ns, type] = (await this.#row(momentQuery(text))) ?? [];
    // A text that is not a plain constant may be compared as text.
    const isMoment = MOMENT.test(type ?? "") || (expression["class"] === "CONSTANT" && type === "VARCHAR");
    return isMoment && ns !== null && ns !== undefined ? BigInt(ns) : undefined;
  }

  /** The value of an operand that is not one already, and what moment a text is that looks like one. */
  async constant(operand: Operand): Promise<Constant | undefined> {
    if (operand.kind === "text") return await this.#withMoment(operand);
    if (operand.kind !== "expression") return operand;
    const text = await this.#textOf(operand.node);
    if (text === undefined) return undefined;
    const [type, value] = (await this.#row(`SELECT typeof(v), CAST(v AS VARCHAR) FROM (${text}) AS constant(v)`)) ?? [];
    if (type === undefined || type === null || value === undefined || value === null) return undefined;
    if (!MOMENT.test(type)) return constantOf(type, value);
    const [ns] = (await this.#row(momentQuery(text))) ?? [];
    return ns === undefined || ns === null ? undefined : { kind: "instant", ns: BigInt(ns) };
  }

  async #withMoment(text: Extract<Constant, { kind: "text" }>): Promise<Constant> {
    if (!text.isLiteral || !DATE.test(text.value)) return text;
    const plain = plainMoment(text.value);
    if (plain !== undefined) return { ...text, ns: plain };
    if (this.#left <= 0) return text;
    this.#left--;
    const sql = "SELECT epoch_ns(TRY_CAST(?::VARCHAR AS TIMESTAMP_NS))";
    const [row] = await runSql(this.#context.duckdb, this.#context.connection, sql, text.value);
    const ns = row?.[0];
    return ns === undefined || ns === null ? text : { ...text, ns: BigInt(ns) };
  }

  /** The text of a query that yields the value; undefined when the expression is none to evaluate. */
  async #textOf(expression: JsonObject): Promise<string | undefined> {
    if (this.#left <= 0 || !isConstant(expression)) return undefined;
    this.#left--;
    const rewritten = rewriteQuery(expression, { timestampColumns: new Set() }) ?? expression;
    try {
      return (await printTree(this.#context.parser, selectOf(rewritten))).sql;
    } catch (error) {
      if (error instanceof QueryRefused) return undefined;
      throw error;
    }
  }

  async #row(sql: string): Promise<(string | null)[] | undefined> {
    const { duckdb, connection } = this.#context;
    try {
      const [row] = await runOne(duckdb, connection, sql, "SELECT");
      return row;
    } catch (error) {
      if (isOutOfMemory(readDuckDbError(error))) throw error;
      this.#hasFailed = true;
      await duckdb.query(connection, "ROLLBACK");
      await duckdb.query(connection, "BEGIN TRANSACTION");
      return undefined;
    }
  }
}

const MOMENT = /^(?:TIMESTAMP|DATE)/;
const DATE = /^\s*\d{4,6}-\d{1,2}-\d{1,2}/;

function momentQuery(text: string): string {
  return `SELECT epoch_ns(TRY_CAST(v AS TIMESTAMP_NS)), typeof(v) FROM (${text}) AS bound(v)`;
}

const INTEGER = /^U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?$/;

function constantOf(type: string, text: string): Constant | undefined {
  if (INTEGER.test(type)) return { kind: "integer", value: BigInt(text) };
  if (type.startsWith("DECIMAL")) return decimalOf(text);
  if (type === "DOUBLE") return { kind: "double", value: realOf(text) };
  if (type === "FLOAT") return { kind: "float", value: Math.fround(realOf(text)) };
  if (type === "VARCHAR") return { kind: "text", value: text, isLiteral: false };
  return type === "BOOLEAN" ? { kind: "bool", value: text === "true" } : undefined;
}

function decimalOf(text: string): Constant {
  const [, fraction = ""] = text.split(".");
  return { kind: "decimal", digits: BigInt(text.replace(".", "")), scale: fraction.length };
}

/** DuckDB writes doubles so that they read back the same, but for these names. */
function realOf(text: string): number {
  const names: Readonly<Record<string, number>> = { inf: Infinity, "-inf": -Infinity, nan: NaN, "-nan": NaN };
  return names[text] ?? Number(text);
}
