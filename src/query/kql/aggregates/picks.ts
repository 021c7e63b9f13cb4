import { classOf, elementsOf, type SyntaxExpression } from "../bind/library.ts";
import { columnExpr, expr, raw, sql, type Expr } from "../plan/expression.ts";
import type { Picked } from "../plan/plans.ts";
import type { Call } from "../scope.ts";
import { str } from "../values/coerce.ts";
import { aggregate, arg, where, type AggregateRule, type AggregateTable } from "./table.ts";

/** Aggregates that choose a row of the group. */
export const PICKS: AggregateTable = {
  arg_max: extremeRow("arg_max"),
  argmax: extremeRow("arg_max"),
  arg_min: extremeRow("arg_min"),
  argmin: extremeRow("arg_min"),
  take_any: { picked: anyRow },
  any: { picked: anyRow },
  take_anyif: aggregate((args) => anyValue(arg(args, 0), arg(args, 1))),
  anyif: aggregate((args) => anyValue(arg(args, 0), arg(args, 1))),
};

/** Where the first value is the greatest or least; where it is always null, any row. */
function extremeRow(name: "arg_max" | "arg_min"): AggregateRule {
  return {
    picked: (call) => {
      const values = chosen(call);
      const by = arg(values, 0);
      const place = by.type === "string" ? str(by) : by;
      return { values, choose: (row) => sql`coalesce(${name}(${raw(row)}, ${place}), any_value(${raw(row)}))` };
    },
  };
}

/** Any row of the group; a single value is one that is not empty, if there is any. */
function anyRow(call: Call): Picked {
  const values = chosen(call);
  const [only] = values;
  if (values.length === 1 && only !== undefined) return { values: [anyValue(only)], choose: (row) => row };
  return { values, choose: (row) => sql`any_value(${raw(row)})` };
}

function anyValue(value: Expr, condition?: Expr): Expr {
  const isThere = value.type === "string" ? sql`${value} <> ''` : undefined;
  return expr(value.type, sql`any_value(${value})${where(condition, isThere)}`);
}

/** The arguments' values; `*` is all columns that are neither arguments nor keys of the groups. */
function chosen(call: Call): Expr[] {
  const { argumentNodes, scope, translator } = call;
  const named = new Set([...argumentNodes, ...keysAround(call)].flatMap(nameOfColumn));
  return argumentNodes.flatMap((node) => {
    if (classOf(node) !== "StarExpression") return [translator.scalar(node, scope)];
    const rest = scope.rel?.columns.filter(({ name }) => !named.has(name)) ?? [];
    return rest.map(({ column }) => columnExpr(column));
  });
}

/** What `summarize` groups by. */
function keysAround({ node }: Call): SyntaxExpression[] {
  let around: Kusto.Language.Syntax.SyntaxElement | null = node.Parent;
  while (around !== null && classOf(around) !== "SummarizeOperator") around = around.Parent;
  return elementsOf((around as Kusto.Language.Syntax.SummarizeOperator | null)?.ByClause?.Expressions);
}

function nameOfColumn(node: SyntaxExpression): string[] {
  if (classOf(node) !== "NameReference") return [];
  return [(node as Kusto.Language.Syntax.NameReference).SimpleName ?? ""];
}
