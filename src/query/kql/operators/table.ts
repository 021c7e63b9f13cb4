import type { SyntaxExpression } from "../bind/library.ts";
import type { Rel } from "../plan/rel.ts";
import type { OperatorContext, Translating, Variables } from "../scope.ts";

/** What becomes of an operator of a pipe: its translation, or the reason why not. By the class of its node. */
export type OperatorRule =
  | { apply: (node: Kusto.Language.Syntax.QueryOperator, input: Rel, context: OperatorContext) => Rel }
  | { refused: string };

export type OperatorTable = Readonly<Record<string, OperatorRule | undefined>>;

/** What stands at the beginning of a pipe. By the class of its node. */
export type SourceRule = (node: SyntaxExpression, translator: Translating, variables: Variables) => Rel;
export type SourceTable = Readonly<Record<string, SourceRule | undefined>>;

/** An operator with nodes of one class. */
// oxlint-disable-next-line no-unnecessary-type-parameters -- whoever calls it says the class of the node
export function operator<T extends Kusto.Language.Syntax.QueryOperator>(
  apply: (node: T, input: Rel, context: OperatorContext) => Rel,
): OperatorRule {
  return { apply: (node, input, context) => apply(node as T, input, context) };
}

/** A source with nodes of one class. */
// oxlint-disable-next-line no-unnecessary-type-parameters -- whoever calls it says the class of the node
export function source<T extends SyntaxExpression>(
  rows: (node: T, translator: Translating, variables: Variables) => Rel,
): SourceRule {
  return (node, translator, variables) => rows(node as T, translator, variables);
}
