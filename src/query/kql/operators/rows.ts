import { arrayOf, classOf, elementsOf, textOf, the, type SyntaxExpression } from "../bind/library.ts";
import { Column, expr, sql, type Expr, type Sql } from "../plan/expression.ts";
import type { OrderKey } from "../plan/plan.ts";
import { ONE_ROW, ValuesPlan } from "../plan/plans.ts";
import { filtered, limited, Rel, type Named } from "../plan/rel.ts";
import type { Scope, Translating } from "../scope.ts";
import { as, str } from "../values/coerce.ts";
import { boundColumns, showing } from "./columns.ts";
import { operator, source, type OperatorTable, type SourceTable } from "./table.ts";
import { tupleValues } from "./tuples.ts";
import { windowed } from "./windowed.ts";

/** Operators that choose and order rows. */
export const ROWS: OperatorTable = {
  FilterOperator: operator<Kusto.Language.Syntax.FilterOperator>((node, _, { translator, scope }) => {
    const condition = the(node.Condition);
    const own = windowed([condition], scope, translator);
    return filtered(own.rel, as(translator.scalar(condition, own), "bool"));
  }),
  TakeOperator: operator<Kusto.Language.Syntax.TakeOperator>((node, input, { translator, scope }) => {
    return limited(input, [rowLimit(the(node.Expression), scope, translator)]);
  }),
  SortOperator: operator<Kusto.Language.Syntax.SortOperator>((node, input, { translator, scope }) => {
    const nodes = elementsOf<SyntaxExpression>(node.Expressions);
    return input.ordered(nodes.flatMap((one) => orderKeys(one, scope, translator)));
  }),
  TopOperator: operator<Kusto.Language.Syntax.TopOperator>((node, input, { translator, scope }) => {
    const ordered = input.ordered(orderKeys(the(node.ByExpression), scope, translator));
    return limited(ordered, [rowLimit(the(node.Expression), scope, translator)]);
  }),
  // The translator keeps the name: see `#piped`.
  AsOperator: operator((_, input) => input),
  // How it is shown travels beside the rows: see `translate.ts`.
  RenderOperator: operator((_, input) => input),
};

/** How many rows; less than none is none. */
export function rowCount(node: SyntaxExpression, scope: Scope, translator: Translating): Sql {
  const value = translator.scalar(node, { variables: scope.variables });
  const { constant } = value;
  if (typeof constant === "bigint") return [String(constant < 0n ? 0n : constant)];
  if (constant !== undefined || (value.type !== "long" && value.type !== "int")) {
    throw translator.refuse("a number of rows is expected here", node);
  }
  return sql`greatest(0, ${value})`;
}

/** The same for a limit of the query itself, which is known before it runs: no sub-query. */
export function rowLimit(node: SyntaxExpression, scope: Scope, translator: Translating): string {
  const [count, ...others] = rowCount(node, scope, translator);
  if (typeof count === "string" && others.length === 0) return count;
  throw translator.refuse("a number of rows that does not depend on rows is expected here", node);
}

/** `x`, `x asc`, `x desc nulls first`: descending by default; nulls come first ascending, last descending. */
export function orderKeys(node: SyntaxExpression, scope: Scope, translator: Translating): OrderKey[] {
  const { value, ...ordering } = orderingOf(node);
  return keysBy(translator.scalar(value, scope), ordering);
}

export type Ordering = { isDescending: boolean; nullsFirst: boolean };

/** What is ordered by, and how. */
export function orderingOf(node: SyntaxExpression): Ordering & { value: SyntaxExpression } {
  if (classOf(node) !== "OrderedExpression") return { value: node, isDescending: true, nullsFirst: false };
  const { Expression, Ordering: own } = node as Kusto.Language.Syntax.OrderedExpression;
  const isDescending = textOf(own?.AscOrDescKeyword) !== "asc";
  const nulls = textOf(own?.NullsClause?.FirstOrLastKeyword);
  return { value: the(Expression), isDescending, nullsFirst: nulls === "" ? !isDescending : nulls === "first" };
}

/** NaN goes with the nulls, on the side of the numbers. DuckDB has it for the greatest number. */
export function keysBy(value: Expr, { isDescending, nullsFirst }: Ordering): OrderKey[] {
  const by = value.type === "string" ? str(value) : value;
  const key = { by, isDescending, nullsFirst };
  if (by.type !== "real" || isDescending === nullsFirst) return [key];
  return [{ ...key, by: expr("real", sql`nullif(${by}, CAST('nan' AS DOUBLE))`) }, key];
}

/** Rows that are written in the query. */
export const ROW_SOURCES: SourceTable = {
  PrintOperator: source<Kusto.Language.Syntax.PrintOperator>((node, translator, variables) => {
    const nodes = elementsOf<SyntaxExpression>(node.Expressions);
    return showing(new Rel(ONE_ROW, []), tupleValues(nodes, { variables }, translator), boundColumns(node));
  }),
  DataTableExpression: source<Kusto.Language.Syntax.DataTableExpression>((node, translator, variables) => {
    const shape = boundColumns(node);
    const columns = shape.map(({ name, type }): Named => ({ name, column: new Column(name, type) }));
    const values = elementsOf<SyntaxExpression>(node.Values).map((one) => translator.scalar(one, { variables }));
    if (values.length % Math.max(1, columns.length) !== 0) {
      throw translator.refuse("the number of values is no multiple of the number of columns", node);
    }
    const rows: Expr[][] = [];
    for (let i = 0; i < values.length; i += columns.length) {
      rows.push(columns.map(({ column }, j) => as(the(values[i + j]), column.type)));
    }
    return new Rel(
      new ValuesPlan(
        columns.map(({ column }) => column),
        rows,
      ),
      columns,
    );
  }),
};

/** The values of `name = value` after an operator, by lower-case name. */
export function parametersOf(list: { Count: number } | null): ReadonlyMap<string, SyntaxExpression> {
  const found = new Map<string, SyntaxExpression>();
  for (const { Name, Expression } of arrayOf<Kusto.Language.Syntax.NamedParameter>(list)) {
    if (Expression !== null) found.set((Name?.SimpleName ?? "").toLowerCase(), Expression);
  }
  return found;
}
