import { elementsOf, the } from "../bind/library.ts";
import { Column } from "../plan/expression.ts";
import { ApplyPlan, OuterRowPlan } from "../plan/unnest.ts";
import { Rel, type Named } from "../plan/rel.ts";
import type { OperatorContext } from "../scope.ts";
import { boundColumns, nameIn } from "./columns.ts";
import { ascending, expanded, itemsOf } from "./expand.ts";
import { parametersOf, rowLimit } from "./rows.ts";
import { follow, stepsOf } from "./sub-query.ts";
import { operator, type OperatorTable } from "./table.ts";

/** A sub-query over the elements of dynamic values of each row. */
export const APPLICATIONS: OperatorTable = {
  MvApplyOperator: operator<Kusto.Language.Syntax.MvApplyOperator>((node, input, context) => {
    if (node.ContextIdClause !== null) throw context.translator.refuse("mv-apply with id is not supported", node);
    const outer = rowOf(input);
    const elements = elementsOfRow(node, outer.rel, context);
    const made = context.translator.inPlace(() => {
      return follow(stepsOf(the(node.Subquery?.Expression)), () => elements, context.translator, context.variables);
    });
    const innerColumns = new Set(made.columns.map(({ column }) => column));
    const plan = new ApplyPlan(input.plan, outer.source, made.plan, innerColumns);
    const columns = boundColumns(node).map(({ name }): Named => {
      return { name, column: the(made.column(name) ?? input.column(name)) };
    });
    return new Rel(plan, columns, { order: input.order });
  }),
};

/** One row of the input as the sub-query sees it. */
function rowOf(input: Rel): { rel: Rel; source: OuterRowPlan } {
  const copies = new Map<Column, Column>();
  const columns = input.columns.map(({ name, column }): Named => {
    const copy = new Column(column.hint, column.type, column.nullable);
    copies.set(copy, column);
    return { name, column: copy };
  });
  const source = new OuterRowPlan(copies);
  return { rel: new Rel(source, columns), source };
}

/** The rows that the sub-query begins with, in the order of the elements. */
function elementsOfRow(
  node: Kusto.Language.Syntax.MvApplyOperator,
  row: Rel,
  { translator, variables }: OperatorContext,
): Rel {
  const scope = { variables, rel: row };
  const nodes = elementsOf<Kusto.Language.Syntax.MvApplyExpression>(node.Expressions);
  const items = itemsOf(
    nodes,
    nodes.map((_, i) => `Column${i + 1}`),
    { scope, translator },
  );
  const clause = node.RowLimitClause;
  const limit = clause === null ? undefined : rowLimit(the(clause.RowLimit), scope, translator);
  const made = expanded(row, items, { asPairs: false, limit });
  const index = parametersOf(node.Parameters).get("with_itemindex");
  const values = [...made.values, ...(index === undefined ? [] : [{ name: nameIn(index), column: made.index }])];
  if (index !== undefined && row.column(nameIn(index)) !== undefined) {
    throw translator.refuse(`with_itemindex: there is a column ${nameIn(index)} already`, index);
  }
  // As the binder has them: in the place of what they replace, or behind.
  const columns = new Map([...row.columns, ...values].map((one): [string, Named] => [one.name, one]));
  return new Rel(made.rel.plan, [...columns.values()], { order: [ascending(made.index)], isSerialized: true });
}
