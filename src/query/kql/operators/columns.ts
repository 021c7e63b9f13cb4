import { arrayOf, classOf, library, textOf, the, type SyntaxExpression } from "../bind/library.ts";
import type { Expr } from "../plan/expression.ts";
import { computed, type Named, type Rel } from "../plan/rel.ts";
import type { Scope, Translating } from "../scope.ts";
import type { KqlType } from "../contract.ts";
import { typeOfSymbol } from "../types/types.ts";
import { as } from "../values/coerce.ts";

/** The columns that the binder gives the result of an operator or source, in order. */
export function boundColumns(node: SyntaxExpression): { name: string; type: KqlType }[] {
  const symbol = node.ResultType as Kusto.Language.Symbols.TableSymbol | null;
  return arrayOf<Kusto.Language.Symbols.ColumnSymbol>(symbol?.Columns).map((column) => ({
    name: column.Name ?? "",
    type: typeOfSymbol(column.Type) ?? "dynamic",
  }));
}

/** How many columns an expression makes: aggregates such as `arg_max(x, *)` make several. */
export function widthOf(node: SyntaxExpression): number {
  const type = node.ResultType;
  if (type === null || classOf(type) !== "TupleSymbol") return 1;
  return (type as Kusto.Language.Symbols.TupleSymbol).Columns?.Count ?? 1;
}

/** The expression of `name = expression`, or the expression itself. */
export function unnamed(node: SyntaxExpression): SyntaxExpression {
  return classOf(node) === "SimpleNamedExpression"
    ? the((node as Kusto.Language.Syntax.SimpleNamedExpression).Expression)
    : node;
}

/** The name that the binder gives the column of an expression; undefined where it makes one up. */
export function nameOf(node: SyntaxExpression): string | undefined {
  return library().KustoFacts.GetExpressionResultName(node, null, null) ?? undefined;
}

/** Computes the values and shows them alone, under these names and as these types. */
export function showing(rel: Rel, values: readonly Expr[], columns: readonly { name: string; type: KqlType }[]): Rel {
  const items = columns.map(({ name, type }, i) => ({ name, value: as(the(values[i]), type) }));
  const { rel: made, columns: own } = computed(rel, items);
  return made.showing(items.map(({ name }, i): Named => ({ name, column: the(own[i]) })));
}

/** The values of expressions over the rows that come in. */
export function valuesOf(nodes: readonly SyntaxExpression[], scope: Scope, translator: Translating): Expr[] {
  return nodes.map((node) => translator.scalar(node, scope));
}

/** The name that a parameter or a declaration gives, without the brackets of `['a name']`. */
export function nameIn(node: SyntaxExpression): string {
  const { SimpleName, Name } = node as unknown as {
    SimpleName?: string | null;
    Name?: { SimpleName: string | null } | null;
  };
  return SimpleName ?? Name?.SimpleName ?? textOf(node);
}
