import { elementsOf, classOf, the, type SyntaxExpression } from "../bind/library.ts";
import { AGGREGATES } from "../aggregates/aggregates.ts";
import { valuesPicked } from "../aggregates/table.ts";
import type { Picked } from "../plan/plans.ts";
import { columnExpr, expr, type Expr } from "../plan/expression.ts";
import { computed, distinct, grouped, type Named, type Rel } from "../plan/rel.ts";
import type { Call, OperatorContext } from "../scope.ts";
import { str } from "../values/coerce.ts";
import { boundColumns, showing, unnamed, valuesOf } from "./columns.ts";
import { isStar } from "./projections.ts";
import { operator, type OperatorTable } from "./table.ts";

/** Operators that make one row of many. */
export const SUMMARIES: OperatorTable = {
  SummarizeOperator: operator<Kusto.Language.Syntax.SummarizeOperator>((node, input, context) => {
    const keys = elementsOf<SyntaxExpression>(node.ByClause?.Expressions);
    return summarized(input, node, { keys, aggregates: elementsOf<SyntaxExpression>(node.Aggregates) }, context);
  }),
  CountOperator: operator<Kusto.Language.Syntax.CountOperator>((node, input) => {
    const [shape] = boundColumns(node);
    const value = expr("long", ["count(*)"], { nullable: false });
    const made = grouped(input, [], [{ name: the(shape).name, value }]);
    return made.rel;
  }),
  DistinctOperator: operator<Kusto.Language.Syntax.DistinctOperator>((node, input, { translator, scope }) => {
    const nodes = elementsOf<SyntaxExpression>(node.Expressions);
    const values = nodes.flatMap((one) =>
      isStar(one) ? input.columns.map(({ column }) => columnExpr(column)) : [translator.scalar(one, scope)],
    );
    const items = boundColumns(node).map(({ name }, i) => ({ name, value: key(the(values[i])) }));
    const { rel, columns } = computed(input, items);
    return distinct(
      rel,
      items.map(({ name }, i): Named => ({ name, column: the(columns[i]) })),
    );
  }),
};

/** A string that is NULL is the empty one, also as a key. */
export function key(value: Expr): Expr {
  return value.type === "string" ? str(value) : value;
}

export type Summary = { keys: readonly SyntaxExpression[]; aggregates: readonly SyntaxExpression[] };

/** `summarize`: keys first, then aggregates, under the binder's names. */
export function summarized(
  input: Rel,
  node: SyntaxExpression,
  { keys, aggregates }: Summary,
  context: OperatorContext,
): Rel {
  const { translator, scope } = context;
  const shape = boundColumns(node);
  const keyItems = valuesOf(keys, scope, translator).map((value, i) => ({
    name: the(shape[i]).name,
    value: key(value),
  }));
  const made = aggregates.map((one) => aggregatesOf(one, context));
  if (made.length === 0) {
    const { rel, columns } = computed(input, keyItems);
    return distinct(
      rel,
      keyItems.map(({ name }, i): Named => ({ name, column: the(columns[i]) })),
    );
  }
  const items = made.flatMap((one) => ("values" in one ? one.values : []));
  const picked = made.flatMap((one) => ("picked" in one ? [one.picked] : []));
  const group = grouped(
    input,
    keyItems,
    items.map((value, i) => ({ name: shape[keys.length + i]?.name ?? "", value })),
    picked,
  );
  const [plain, picks] = [[...group.aggregates], [...group.picks]];
  const columns = made.flatMap((one) => {
    return "values" in one ? plain.splice(0, one.values.length) : (picks.shift() ?? []);
  });
  const shown = [...group.keys, ...columns].map(columnExpr);
  if (shown.length !== shape.length) {
    throw translator.refuse(
      "a function that makes several columns of aggregates belongs into an extend behind it",
      node,
    );
  }
  return showing(group.rel, shown, shape);
}

/** The columns of one expression over aggregates: values, or those of a row that is picked. */
export function aggregatesOf(
  node: SyntaxExpression,
  { translator, scope }: OperatorContext,
): { values: readonly Expr[] } | { picked: Picked } {
  const inner = unnamed(node);
  const call =
    classOf(inner) === "CompoundNamedExpression"
      ? the((inner as Kusto.Language.Syntax.CompoundNamedExpression).Expression)
      : inner;
  if (classOf(call) === "FunctionCallExpression") {
    const own = call as Kusto.Language.Syntax.FunctionCallExpression;
    const name = own.Name?.SimpleName ?? "";
    const rule = AGGREGATES[name];
    const made: Call = {
      name,
      node: own,
      type: "dynamic",
      scope,
      translator,
      argumentNodes: elementsOf<SyntaxExpression>(own.ArgumentList?.Expressions),
      refuse: (message) => translator.refuse(message, own),
    };
    if (rule !== undefined && "tuple" in rule) return { values: rule.tuple(made) };
    if (rule !== undefined && "picked" in rule) return { picked: rule.picked(made) };
  }
  return { values: [translator.scalar(call, { ...scope, aggregates: true })] };
}

/** An expression over aggregates that has one column; undefined where it has several. */
export function aggregateOf(node: SyntaxExpression, context: OperatorContext): Expr | undefined {
  const made = aggregatesOf(node, context);
  const [only, ...more] = "values" in made ? made.values : valuesPicked(made.picked);
  return more.length === 0 ? only : undefined;
}
