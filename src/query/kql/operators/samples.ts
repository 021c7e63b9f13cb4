import { the } from "../bind/library.ts";
import { sumOf } from "../aggregates/sums.ts";
import { columnExpr, expr } from "../plan/expression.ts";
import { computed, distinct, grouped, limited } from "../plan/rel.ts";
import { boundColumns } from "./columns.ts";
import { rowLimit } from "./rows.ts";
import { key } from "./summarize.ts";
import { operator, type OperatorTable } from "./table.ts";

/** Operators that give some of the rows or values: any, or the most frequent. */
export const SAMPLES: OperatorTable = {
  SampleOperator: operator<Kusto.Language.Syntax.SampleOperator>((node, input, { translator, scope }) => {
    const by = expr("real", ["random()"], { nullable: false, isFixed: true });
    const shuffled = input.ordered([{ by, isDescending: false, nullsFirst: false }]);
    return limited(shuffled, [rowLimit(the(node.Expression), scope, translator)]).unordered();
  }),
  SampleDistinctOperator: operator<Kusto.Language.Syntax.SampleDistinctOperator>((node, input, context) => {
    const { translator, scope } = context;
    const { name } = the(boundColumns(node)[0]);
    const value = key(translator.scalar(the(node.OfExpression), scope));
    const { rel, columns } = computed(input.unordered(), [{ name, value }]);
    const values = distinct(rel, [{ name, column: the(columns[0]) }]);
    return limited(values, [rowLimit(the(node.Expression), scope, translator)]);
  }),
  TopHittersOperator: operator<Kusto.Language.Syntax.TopHittersOperator>((node, input, { translator, scope }) => {
    const [shown, weight] = boundColumns(node);
    const value = key(translator.scalar(the(node.OfExpression), scope));
    const by = node.ByClause?.Expression;
    const size =
      by === undefined || by === null
        ? expr("long", ["count(*)"], { nullable: false })
        : sumOf(translator.scalar(by, scope), the(weight).type);
    const made = grouped(input, [{ name: the(shown).name, value }], [{ name: the(weight).name, value: size }]);
    const named = made.rel.columns.map(({ column }, i) => ({ name: the([shown, weight][i]).name, column }));
    const order = { by: columnExpr(the(made.aggregates[0])), isDescending: true, nullsFirst: false };
    return limited(made.rel.showing(named).ordered([order]), [rowLimit(the(node.Expression), scope, translator)]);
  }),
};
