import { elementsOf, textOf, the } from "../bind/library.ts";
import { Column, columnExpr, expr, sql, type Expr } from "../plan/expression.ts";
import type { KqlType } from "../contract.ts";
import { UnnestPlan } from "../plan/unnest.ts";
import { computed, Rel, type Named } from "../plan/rel.ts";
import type { OperatorContext, Scope, Translating } from "../scope.ts";
import { SQL_TYPES, typeOfSymbol } from "../types/types.ts";
import { boundColumns, nameOf, unnamed } from "./columns.ts";
import { parametersOf, rowLimit } from "./rows.ts";
import { operator, type OperatorTable } from "./table.ts";

/** A row for each element of dynamic values. */
export const EXPANSIONS: OperatorTable = {
  MvExpandOperator: operator<Kusto.Language.Syntax.MvExpandOperator>((node, input, context) => {
    const parameters = parametersOf(node.Parameters);
    const kind = textOf(parameters.get("kind") ?? parameters.get("bagexpansion")) || "bag";
    const shape = boundColumns(node);
    const hasIndex = parameters.has("with_itemindex");
    const nodes = elementsOf<Kusto.Language.Syntax.MvExpandExpression>(node.Expressions);
    const items = itemsOf(nodes, madeUpNames(nodes, hasIndex ? shape.slice(0, -1) : shape, input), context);
    const limit = limitOf(node, context);
    const made = expanded(input, items, { asPairs: kind === "array", limit });
    const own = new Map(made.values.map(({ name, column }) => [name, column]));
    const columns = shape.map(({ name }, i): Named => {
      const isIndex = hasIndex && i === shape.length - 1;
      return { name, column: isIndex ? made.index : the(own.get(name) ?? input.column(name)) };
    });
    const order = input.order.length === 0 ? [] : [...input.order, ascending(made.index)];
    return new Rel(made.rel.plan, columns, { order });
  }),
};

/** The old spelling `mvexpand` makes at most 128 rows of one unless it says more. */
function limitOf(
  node: Kusto.Language.Syntax.MvExpandOperator,
  { scope, translator }: OperatorContext,
): string | undefined {
  const clause = node.RowLimitClause;
  if (clause !== null) return rowLimit(the(clause.RowLimit), scope, translator);
  return textOf(node.MvExpandKeyword) === "mvexpand" ? "128" : undefined;
}

export function ascending(column: Column): Rel["order"][number] {
  return { by: columnExpr(column), isDescending: false, nullsFirst: true };
}

/** A dynamic value whose elements become rows, and what they are called and cast to. */
export type Item = { name: string; type: KqlType; value: Expr };

type ItemNode = Kusto.Language.Syntax.MvExpandExpression | Kusto.Language.Syntax.MvApplyExpression;

/** The values that are expanded. Those without a name are called by the binder, in order `madeUp`. */
export function itemsOf(
  nodes: readonly ItemNode[],
  madeUp: readonly string[],
  { scope, translator }: ItemContext,
): Item[] {
  const names = [...madeUp];
  return nodes.map(({ Expression, ToTypeOf }) => {
    const node = the(Expression);
    const name = nameOf(node) ?? the(names.shift());
    const type = typeOfSymbol(ToTypeOf?.TypeOf?.ReferencedSymbol ?? null);
    return { name, type: type ?? "dynamic", value: translator.scalar(unnamed(node), scope) };
  });
}

type ItemContext = { scope: Scope; translator: Translating };

/** The names of a result that are neither there before nor given. */
function madeUpNames(nodes: readonly ItemNode[], shape: readonly { name: string }[], input: Rel): string[] {
  const known = new Set([
    ...input.columns.map(({ name }) => name),
    ...nodes.map(({ Expression }) => nameOf(the(Expression))),
  ]);
  return shape.map(({ name }) => name).filter((name) => !known.has(name));
}

type Expansion = { rel: Rel; values: Named[]; index: Column };

/** All values side by side: those with fewer elements are null in the last rows. */
export function expanded(
  input: Rel,
  items: readonly Item[],
  how: { asPairs: boolean; limit: string | undefined },
): Expansion {
  const members = how.asPairs ? "kql_pair_members" : "kql_bag_members";
  const lists = items.map(({ name, value }) => {
    const list = sql`${members}(${value})`;
    return { name, value: expr("dynamic", how.limit === undefined ? list : sql`list_slice(${list}, 1, ${how.limit})`) };
  });
  const { rel, columns } = computed(input, lists);
  const elements = columns.map((list, i): [Column, Expr] => [
    new Column(the(items[i]).name, "dynamic"),
    columnExpr(list),
  ]);
  const index = new Column("index", "long", false);
  const opened = rel.over(new UnnestPlan(rel.plan, new Map(elements), index));
  const values = items.map(({ name, type }, i) => ({ name, value: elementAs(columnExpr(the(elements[i])[0]), type) }));
  const made = computed(opened, values);
  return { rel: made.rel, values: items.map(({ name }, i) => ({ name, column: the(made.columns[i]) })), index };
}

/** An element as the type that `to typeof()` says: null where it is of another. */
export function elementAs(element: Expr, type: KqlType): Expr {
  switch (type) {
    case "dynamic":
      return expr(type, sql`kql_not_null(${element})`);
    case "string":
      return expr(type, sql`kql_dynamic_text(${element})`);
    case "long":
    case "real":
    case "bool":
      return expr(type, sql`kql_element_${[type]}(${element})`);
    case "int":
      return expr(type, sql`TRY_CAST(kql_element_long(${element}) AS INTEGER)`);
    case "decimal":
      return expr(type, sql`TRY_CAST(kql_element_real(${element}) AS ${SQL_TYPES.decimal})`);
    case "guid":
      return expr(type, sql`TRY_CAST(kql_element_text(${element}) AS UUID)`);
    case "datetime":
    case "timespan":
      return expr(type, sql`kql_${[type]}_of(kql_element_text(${element}))`);
  }
}
