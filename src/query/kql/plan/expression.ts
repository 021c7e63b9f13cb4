import type { KqlType } from "../contract.ts";

/** A column of a plan, by its identity: what it is called in SQL is for the renderer to say. */
export class Column {
  readonly hint: string;
  readonly type: KqlType;
  /** Whether it may be NULL in SQL; a string that is NULL there is empty in KQL. */
  readonly nullable: boolean;

  constructor(hint: string, type: KqlType, nullable = true) {
    this.hint = hint;
    this.type = type;
    this.nullable = nullable;
  }
}

/**
 * What a KQL text becomes before it is SQL: a tree of SELECTs whose columns are identities. A plan is rendered from the
 * outside in, for exactly the columns that somebody reads, so that a table is asked for no others.
 */
export interface Plan {
  /** A SELECT that gives these columns, under the names that the renderer has for them. */
  render(needed: ReadonlySet<Column>, renderer: Rendering): string;
  /** The plan with the condition inside it, where it must not stand behind it. */
  filtered?(condition: Expr): Plan | undefined;
  /** The same as something to select from; absent: only as a sub-query. */
  source?(): Source;
}

/** What stands after FROM, and the names that columns have inside of it, where those are not the renderer's. */
export type Source = { from: string; nameOf: (column: Column) => string | undefined };

/** How columns and shared plans of one query are named. */
export interface Rendering {
  nameOf(column: Column): string;
  /** SQL as text, with names of columns as `within` has them. */
  text(own: Sql, within?: (column: Column) => string | undefined): string;
  /** The name of a common table expression that holds these columns of the plan. */
  share(plan: Plan, needed: ReadonlySet<Column>): string;
  /** Whether it is rendered for each row around it, where DuckDB has not every kind of join. */
  readonly isLateral: boolean;
  /** Renders what is evaluated for each row around it. */
  lateral(plan: Plan, needed: ReadonlySet<Column>): string;
}

/** A query that gives one row with one column, evaluated once wherever it is mentioned. */
export class Scalar {
  readonly plan: Plan;
  readonly column: Column;

  constructor(plan: Plan, column: Column) {
    this.plan = plan;
    this.column = column;
  }
}

/** A query with one column, in place: what `IN (…)` takes. */
export class Subquery {
  readonly plan: Plan;
  readonly column: Column;

  constructor(plan: Plan, column: Column) {
    this.plan = plan;
    this.column = column;
  }
}

/** A column of the rows around a sub-query, which reads it there: it is none of its own source's. */
export class Outer {
  readonly column: Column;

  constructor(column: Column) {
    this.column = column;
  }
}

/** Says something of the SQL that it is in, also inside of other SQL. It is no text. */
export class Mark {
  readonly text = "";
}

/** Of SQL that has a window function or gives another value each time. */
const FIXED = new Mark();
/** Of SQL that has an aggregate. */
const AGGREGATE = new Mark();

/** SQL with its references still open. */
export type Part = string | Column | Scalar | Subquery | Outer | Mark;
export type Sql = readonly Part[];

/** A value known while translating. datetime: nanoseconds since 1970; timespan: ticks of 100 ns; dynamic: JSON text. */
export type Constant = string | number | bigint | boolean | null;

/** A scalar expression with its type: NULL where KQL has null, and, for strings, where it has the empty string. */
export type Expr = {
  readonly type: KqlType;
  readonly sql: Sql;
  /** Whether it may be NULL. */
  readonly nullable: boolean;
  /** Its value, where it is known. */
  readonly constant?: Constant;
  /** Of a bool: shorter SQL that is true in the same rows, for where only that matters. */
  readonly filter?: Sql;
  /** Of a part of a dynamic value: the whole, and the JSON path of the part in it. */
  readonly path?: { of: Expr; steps: string };
  /** Has a window function, or gives another value each time: it is not moved. */
  readonly isFixed?: boolean;
};

const ATOM = /^(?:\w+|"[^"]*"|'[^']*(?:''[^']*)*'|[\w.]*\([^()]*\))$/;

function isAtom(sql: Sql): boolean {
  if (sql.length !== 1) return false;
  const [only] = sql;
  return typeof only !== "string" || ATOM.test(only);
}

/** A part in parentheses, unless it needs none. */
function operand(sql: Sql): Sql {
  return isAtom(sql) ? sql : ["(", ...sql, ")"];
}

/** SQL that is put into other SQL as it stands, without parentheses. */
export type Raw = { readonly raw: Sql };

export function raw(own: Sql): Raw {
  return { raw: own };
}

/**
 * SQL of pieces: expressions and SQL come in parentheses where they need them, lists of expressions separated by
 * commas, `raw` pieces and texts as they stand: never put a text of the user's into one but by `quoteText` or
 * `quoteIdentifier`.
 */
export function sql(texts: TemplateStringsArray, ...values: readonly Piece[]): Sql {
  const parts: Part[] = [];
  for (const [i, text] of texts.entries()) {
    if (text !== "") parts.push(text);
    const value = values[i];
    if (value !== undefined) parts.push(...partsOf(value));
  }
  return joined(parts);
}

export type Piece = Expr | Column | Sql | Raw | string | number | readonly Expr[];

function partsOf(value: Piece): Sql {
  if (typeof value === "string") return [value];
  if (typeof value === "number") return [String(value)];
  if (value instanceof Column) return [value];
  if ("sql" in value) return operand(value.sql);
  if ("raw" in value) return value.raw;
  return isList(value) ? commaList(value.map(({ sql: own }) => own)).raw : operand(value);
}

function isList(value: Sql | readonly Expr[]): value is readonly Expr[] {
  const [first] = value;
  return typeof first === "object" && "sql" in first;
}

/** Separated by commas. */
export function commaList(items: readonly Sql[]): Raw {
  return separated(", ", items);
}

/** Pieces of SQL with an operator or a comma between them. */
export function separated(separator: string, items: readonly Sql[]): Raw {
  return raw(joined(items.flatMap((item, i) => (i === 0 ? item : [separator, ...item]))));
}

/** Neighbouring texts become one. */
function joined(parts: readonly Part[]): Sql {
  const out: Part[] = [];
  for (const part of parts) {
    const last = out.at(-1);
    if (typeof part === "string" && typeof last === "string") out[out.length - 1] = last + part;
    else out.push(part);
  }
  return out;
}

/** An expression; it may be NULL unless it is said that it is not. One of what is fixed is fixed itself. */
export function expr(type: KqlType, own: Sql, more: Omit<Partial<Expr>, "type" | "sql"> = {}): Expr {
  const isMarked = own.includes(FIXED);
  if (!isMarked && more.isFixed !== true) return { type, sql: own, nullable: true, ...more };
  return { type, sql: isMarked ? own : [FIXED, ...own], nullable: true, ...more, isFixed: true };
}

/** The value of an aggregate. */
export function aggregated(value: Expr): Expr {
  return { ...value, sql: [AGGREGATE, ...value.sql] };
}

/** The value of a column. */
export function columnExpr(column: Column): Expr {
  return { type: column.type, sql: [column], nullable: column.nullable };
}

/** DuckDB's TRY takes neither sub-queries nor aggregates. */
export function isRefusedByTry({ sql: own }: Expr): boolean {
  return own.includes(AGGREGATE) || own.some((part) => part instanceof Scalar || part instanceof Subquery);
}

/** The columns that SQL mentions; what a scalar sub-query reads is its own. */
export function columnsIn(own: Sql): Column[] {
  return own.filter((part) => part instanceof Column);
}

/** Whether the value is the same in every row: no column, no window, nothing random. */
export function isSameInAllRows(value: Expr): boolean {
  return value.isFixed !== true && !value.sql.some((part) => part instanceof Column);
}
