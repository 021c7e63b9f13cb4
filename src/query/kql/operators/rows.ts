import { arrayOf, classOf, elementsOf, textOf, the, type SyntaxExpression } from "../bind/library.ts";
import { Column, expr, sql, type Expr } from "../plan/expression.ts";
import type { OrderKey } from "../plan/plan.ts";
import { LateralPlan, ONE_ROW, ValuesPlan } from "../plan/plans.ts";
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
    return limited(input, rowCount(the(node.Expression), scope, translator));
  }),
  SortOperator: operator<Kusto.Language.Syntax.SortOperator>((node, input, { translator, scope }) => {
    const nodes = elementsOf<SyntaxExpression>(node.Expressions);
    return input.ordered(nodes.map((one) => orderKey(one, scope, translator)));
  }),
  TopOperator: operator<Kusto.Language.Syntax.TopOperator>((node, input, { translator, scope }) => {
    const ordered = input.ordered([orderKey(the(node.ByExpression), scope, translator)]);
    return limited(ordered, rowCount(the(node.Expression), scope, translator));
  }),
  AsOperator: operator((_, input) => input),
  // How it is shown travels beside the rows: see `translate.ts`.
  RenderOperator: operator((_, input) => input),
};

/** How many rows; less than none is none. */
export function rowCount(node: SyntaxExpression, scope: Scope, translator: Translating) {
  const value = translator.constant(node, { variables: scope.variables });
  if (value === null || typeof value === "string") throw translator.refuse("a number of rows is expected here", node);
  const count = BigInt(Math.trunc(Number(value)));
  return [String(count < 0n ? 0n : count)];
}

/** `x`, `x asc`, `x desc nulls first`: descending by default; nulls come first ascending, last descending. */
export function orderKey(node: SyntaxExpression, scope: Scope, translator: Translating): OrderKey {
  const isOrdered = classOf(node) === "OrderedExpression";
  const { Expression, Ordering } = node as Kusto.Language.Syntax.OrderedExpression;
  const value = translator.scalar(isOrdered ? the(Expression) : node, scope);
  const isDescending = !isOrdered || textOf(Ordering?.AscOrDescKeyword) !== "asc";
  const nulls = isOrdered ? textOf(Ordering?.NullsClause?.FirstOrLastKeyword) : "";
  return {
    by: value.type === "string" ? str(value) : value,
    isDescending,
    nullsFirst: nulls === "" ? !isDescending : nulls === "first",
  };
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
  RangeOperator: source<Kusto.Language.Syntax.RangeOperator>(rangeOf),
};

function rangeOf(
  node: Kusto.Language.Syntax.RangeOperator,
  translator: Translating,
  variables: Scope["variables"],
): Rel {
  const [shape] = boundColumns(node);
  const { name, type } = the(shape);
  const [from, to, step] = [node.From, node.To, node.Step].map((one) => translator.scalar(the(one), { variables }));
  const own = type === "datetime" ? "datetime" : type;
  const list = sql`kql_range_${[own === "int" ? "long" : own]}(${as(the(from), own)}, ${as(the(to), own)}, ${as(
    the(step),
    own === "datetime" ? "timespan" : own,
  )})`;
  const column = new Column(name, type, false);
  const values = expr(type, type === "int" ? sql`CAST(${list} AS INTEGER[])` : list);
  const plan = new LateralPlan(ONE_ROW, [column], [values], (textOf, nameOf) => {
    return `unnest(${textOf(values.sql)}) AS r(${nameOf(column)})`;
  });
  return new Rel(plan, [{ name, column }]);
}

/** The values of `name = value` after an operator, by lower-case name. */
export function parametersOf(list: { Count: number } | null): ReadonlyMap<string, SyntaxExpression> {
  const found = new Map<string, SyntaxExpression>();
  for (const { Name, Expression } of arrayOf<Kusto.Language.Syntax.NamedParameter>(list)) {
    if (Expression !== null) found.set((Name?.SimpleName ?? "").toLowerCase(), Expression);
  }
  return found;
}

/** The rows as they are, and a column beside them. */
export function withColumn(rel: Rel, named: Named): Rel {
  return rel.showing([...rel.columns.filter(({ name }) => name !== named.name), named]);
}
