import { classOf, the, type SyntaxExpression } from "../bind/library.ts";
import type { KqlType } from "../contract.ts";
import type { Column } from "../plan/expression.ts";
import { limited, type Rel } from "../plan/rel.ts";
import type { OperatorContext } from "../scope.ts";
import { KeysNeeded } from "./keys.ts";

/** A call of a plugin over rows. */
export type PluginCall = {
  node: Kusto.Language.Syntax.EvaluateOperator;
  call: Kusto.Language.Syntax.FunctionCallExpression;
  args: readonly SyntaxExpression[];
  input: Rel;
  context: OperatorContext;
};

/** How many columns the rows may decide. */
const MAX_KEYS = 1000;

/** What a plugin asked the rows for: the values of one column of texts. They are read first, in a query of their own. */
export function keysOf({ call, context: { translator } }: PluginCall, ask: () => Rel): readonly string[] {
  const keys = translator.keysFor(call);
  if (keys === undefined) throw new KeysNeeded(limited(ask(), [String(MAX_KEYS + 1)]));
  if (keys.length > MAX_KEYS) throw translator.refuse(`more than ${MAX_KEYS.toLocaleString("en")} columns`, call);
  return keys;
}

/** Tells the binder which columns the plugin makes, by a schema behind its call. */
export function tellColumns(
  { call, context: { translator } }: PluginCall,
  columns: readonly { name: string; type: KqlType }[],
): void {
  const nameless = columns.find(({ name }) => name === "");
  if (nameless !== undefined) throw translator.refuse("a column would have no name", call);
  const twice = columns.find(({ name }, i) => columns.findIndex((one) => one.name === name) !== i);
  if (twice !== undefined) throw translator.refuse(`there would be two columns ${twice.name}`, call);
  const list = columns.map(({ name, type }) => `${bracketedName(name)}:${type}`);
  translator.insert(call, ` : (${list.join(", ")})`, true);
}

/** A name as the language reads it, whatever is in it. */
export function bracketedName(name: string): string {
  const escaped = JSON.stringify(name).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'");
  return `['${escaped}']`;
}

/** The column that an argument names. */
export function columnOf({ input, context: { translator } }: PluginCall, node: SyntaxExpression | undefined): Column {
  const name =
    node !== undefined && classOf(node) === "NameReference"
      ? (node as Kusto.Language.Syntax.NameReference).SimpleName
      : null;
  const column = name === null ? undefined : input.column(name);
  if (column === undefined) throw translator.refuse("a column is expected here", node ?? null);
  return column;
}

/** The expression of an argument, and its name where it has one. */
export function argumentOf(node: SyntaxExpression): { name: string | undefined; value: SyntaxExpression } {
  if (classOf(node) !== "SimpleNamedExpression") return { name: undefined, value: node };
  const { Name, Expression } = node as Kusto.Language.Syntax.SimpleNamedExpression;
  return { name: Name?.SimpleName ?? undefined, value: the(Expression) };
}
