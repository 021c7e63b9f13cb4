import { classOf, textOf, the } from "../bind/library.ts";
import { Column, expr, Outer, sql, type Plan } from "../plan/expression.ts";
import { ForEachPlan } from "../plan/plans.ts";
import { computed, distinct, filtered, Rel } from "../plan/rel.ts";
import type { OperatorContext, Translating, Variables } from "../scope.ts";
import { parametersOf } from "./rows.ts";
import { follow, stepsOf } from "./sub-query.ts";
import { key } from "./summarize.ts";
import { operator, type OperatorTable } from "./table.ts";

type Partition = Kusto.Language.Syntax.PartitionOperator;

/** How many partitions there may be where no strategy is named. */
const MAX_PARTITIONS = 64;

/** `partition`: a sub-query for each value of a column. */
export const PARTITIONS: OperatorTable = { PartitionOperator: operator<Partition>(partitioned) };

function partitioned(node: Partition, input: Rel, { translator, variables }: OperatorContext): Rel {
  const shared = translator.shared(input.unordered());
  const name = textOf(node.ByExpression);
  const each = partitionKeys(shared(), node, translator, variables);
  const current = expr(each.key.type, [new Outer(each.key)], { nullable: each.key.nullable });
  const rows = translator.inPlace(() => {
    const operand = the(node.Operand);
    if (classOf(operand) === "PartitionQuery") {
      const inner = new Map(variables).set(name, { kind: "scalar", value: current });
      return translator.rows(the((operand as Kusto.Language.Syntax.PartitionQuery).Query), inner);
    }
    const source = (): Rel => {
      const rel = shared();
      const own = key(translator.scalar(the(node.ByExpression), { variables, rel }));
      return filtered(rel, expr("bool", sql`${own} IS NOT DISTINCT FROM ${current}`, { nullable: false }));
    };
    const steps = stepsOf(the((operand as Kusto.Language.Syntax.PartitionSubquery).Subquery));
    return follow(steps, source, translator, variables);
  });
  return new Rel(new ForEachPlan({ keys: each.plan, key: each.key, rows: rows.plan }), rows.columns);
}

/** The values of the key, once each, in a column of their own. */
function partitionKeys(
  rel: Rel,
  node: Partition,
  translator: Translating,
  variables: Variables,
): { plan: Plan; key: Column } {
  const value = key(translator.scalar(the(node.ByExpression), { variables, rel }));
  const { rel: made, columns } = computed(rel, [{ name: "key", value }]);
  const own = the(columns[0]);
  const values = distinct(made, [{ name: "key", column: own }]);
  const strategy = textOf(parametersOf(node.Parameters).get("hint.strategy"));
  const few = strategy === "" || strategy === "legacy" ? atMost(values, MAX_PARTITIONS) : values;
  // Under a name that no column of the sub-query has: it reads the same source.
  const outer = new Column("partition", own.type, own.nullable);
  return { plan: renamed(few, own, outer), key: outer };
}

function renamed(rel: Rel, from: Column, to: Column): Plan {
  return {
    render: (_, renderer) => {
      const inner = rel.plan.render(new Set([from]), renderer);
      return `SELECT ${renderer.nameOf(from)} AS ${renderer.nameOf(to)} FROM (${inner})`;
    },
  };
}

/** Fails where there are more rows. */
function atMost(rel: Rel, count: number): Rel {
  const number = expr("long", ["count(*) OVER ()"], { nullable: false, isFixed: true });
  const { rel: counted, columns } = computed(rel, [{ name: "partitions", value: number }]);
  const tooMany = `partition without hint.strategy=native takes at most ${count} values of its column`;
  const isFine = sql`CASE WHEN ${the(columns[0])} > ${count} THEN error('${tooMany}') ELSE true END`;
  return filtered(counted, expr("bool", isFine, { nullable: false }));
}
