import { classOf, elementsOf, the, type SyntaxExpression } from "../bind/library.ts";
import { SCALAR_FUNCTIONS } from "../functions/functions.ts";
import type { Expr } from "../plan/expression.ts";
import type { Call, Scope, Translating } from "../scope.ts";
import { nameOf, unnamed, widthOf } from "./columns.ts";

/** The values of expressions over the rows that come in: one each, but for functions that make several columns. */
export function tupleValues(nodes: readonly SyntaxExpression[], scope: Scope, translator: Translating): Expr[] {
  return nodes.flatMap((node) => tupleOf(node, scope, translator) ?? [translator.scalar(node, scope)]);
}

/** The names that the text gives to those values, in their order. */
export function namesOf(node: SyntaxExpression): (string | undefined)[] {
  const inner = ofCompound(node);
  const width = widthOf(inner);
  const given =
    classOf(node) === "CompoundNamedExpression"
      ? elementsOf<Kusto.Language.Syntax.NameDeclaration>(
          (node as Kusto.Language.Syntax.CompoundNamedExpression).Names?.Names,
        ).map((one) => one.SimpleName ?? undefined)
      : [node === inner && width > 1 ? undefined : nameOf(node)];
  return Array.from({ length: Math.max(width, given.length) }, (_, i) => given[i]);
}

function ofCompound(node: SyntaxExpression): SyntaxExpression {
  if (classOf(node) !== "CompoundNamedExpression") return unnamed(node);
  return the((node as Kusto.Language.Syntax.CompoundNamedExpression).Expression);
}

function tupleOf(node: SyntaxExpression, scope: Scope, translator: Translating): readonly Expr[] | undefined {
  const inner = ofCompound(node);
  if (classOf(inner) !== "FunctionCallExpression") return undefined;
  const call = inner as Kusto.Language.Syntax.FunctionCallExpression;
  const name = call.Name?.SimpleName ?? "";
  const rule = scope.variables.has(name) ? undefined : SCALAR_FUNCTIONS[name];
  if (rule === undefined || !("translate" in rule) || rule.tuple === undefined) return undefined;
  const argumentNodes = elementsOf<SyntaxExpression>(call.ArgumentList?.Expressions);
  const own: Call = {
    name,
    node: call,
    type: "dynamic",
    scope,
    translator,
    argumentNodes,
    refuse: (message) => translator.refuse(message, call),
  };
  return rule.tuple(
    argumentNodes.map((argument) => translator.scalar(argument, scope)),
    own,
  );
}
