import { classOf, the, type SyntaxExpression } from "../bind/library.ts";
import type { Rel } from "../plan/rel.ts";
import type { Translating, Variables } from "../scope.ts";

/** The operators of a sub-query without a source, in order. */
export function stepsOf(node: SyntaxExpression): Kusto.Language.Syntax.QueryOperator[] {
  if (classOf(node) !== "PipeExpression") return [node];
  const { Expression, Operator } = node as Kusto.Language.Syntax.PipeExpression;
  return [...stepsOf(the(Expression)), the(Operator)];
}

/** What the operators make of the source. `as` names the rows up to it for those after it. */
export function follow(
  steps: readonly Kusto.Language.Syntax.QueryOperator[],
  source: () => Rel,
  translator: Translating,
  variables: Variables,
): Rel {
  let [rel, names] = [source(), variables];
  for (const [i, step] of steps.entries()) {
    rel = translator.apply(step, rel, names);
    if (classOf(step) !== "AsOperator") continue;
    const name = (step as Kusto.Language.Syntax.AsOperator).Name?.SimpleName ?? "";
    const make = (): Rel => follow(steps.slice(0, i), source, translator, variables);
    names = new Map(names).set(name, { kind: "rows", make });
  }
  return rel;
}
