import { classOf, the, type SyntaxExpression, type SyntaxNode } from "../bind/library.ts";
import type { KqlType } from "../contract.ts";
import { columnExpr, expr, sql, type Column, type Expr } from "../plan/expression.ts";
import { computed, distinct, grouped, type Named, type Rel } from "../plan/rel.ts";
import { as, literal, toText } from "../values/coerce.ts";
import { boundColumns } from "./columns.ts";
import { columnOf, keysOf, tellColumns, type PluginCall } from "./plugin.ts";
import { key } from "./summarize.ts";

/** `pivot`: a column for each value of a column, and an aggregate in each cell. */
export function pivoted(call: PluginCall): Rel {
  const { node, args, input, context } = call;
  const pivot = columnOf(call, args[0]);
  const aggregate = args[1];
  const groups = groupsOf(call, pivot);
  const before = computed(input, [{ name: "key", value: toText(columnExpr(pivot)) }]);
  const keyColumn = the(before.columns[0]);
  const cell = cellOf(call, before.rel);
  if (node.Schema === null || context.translator.isInserted(node.Schema)) {
    const keys = keysOf(call, () => distinct(before.rel.unordered(), [{ name: "key", column: keyColumn }]));
    const shown = keys.toSorted((a, b) => (a < b ? -1 : 1)).map((name) => ({ name, type: cell.type }));
    tellColumns(call, [...groups.map(({ name, column: { type } }) => ({ name, type })), ...shown]);
  }
  const items = groups.map(({ name, column }) => ({ name, value: key(columnExpr(column)) }));
  const cells = grouped(
    before.rel,
    [...items, { name: "key", value: columnExpr(keyColumn) }],
    [{ name: "cell", value: cell }],
  );
  const own = new Map(groups.map(({ name }, i) => [name, the(cells.keys[i])]));
  const [cellKey, value] = [the(cells.keys.at(-1)), the(cells.aggregates[0])];
  const shape = boundColumns(node);
  const missing = groups.find(({ name }) => !shape.some((one) => one.name === name));
  if (missing !== undefined)
    throw context.translator.refuse(`pivot groups by ${missing.name}, and its schema lacks it`, node);
  const pivots = shape.filter(({ name }) => !own.has(name));
  const values = pivots.map(({ name, type }) => {
    const found = sql`any_value(${value}) FILTER (WHERE ${cellKey} = ${literal("string", name)})`;
    return { name, value: as(orNothing(expr(cell.type, found), nameOfAggregate(aggregate)), type) };
  });
  const keys = groups.map(({ name }) => ({ name, value: columnExpr(the(own.get(name))) }));
  return shownAs(
    shape,
    grouped(cells.rel, keys, values),
    pivots.map(({ name }) => name),
    groups,
  );
}

function shownAs(
  shape: readonly { name: string }[],
  made: ReturnType<typeof grouped>,
  pivots: readonly string[],
  groups: readonly Named[],
): Rel {
  const columns = new Map<string, Column>([
    ...groups.map(({ name }, i): [string, Column] => [name, the(made.keys[i])]),
    ...pivots.map((name, i): [string, Column] => [name, the(made.aggregates[i])]),
  ]);
  return made.rel.showing(shape.map(({ name }): Named => ({ name, column: the(columns.get(name)) })));
}

/** The columns that say which row a cell is in: those given, or all but the pivot's and the aggregate's. */
function groupsOf(call: PluginCall, pivot: Column): Named[] {
  const [, aggregate, ...given] = call.args;
  if (given.length > 0) {
    return given.map((node) => {
      const column = columnOf(call, node);
      return the(call.input.columns.find((one) => one.column === column));
    });
  }
  const used = aggregate === undefined ? new Set<string>() : namesIn(aggregate);
  return call.input.columns.filter(({ name, column }) => column !== pivot && !used.has(name));
}

function namesIn(node: SyntaxNode, names = new Set<string>()): Set<string> {
  if (classOf(node) === "NameReference") names.add((node as Kusto.Language.Syntax.NameReference).SimpleName ?? "");
  for (let i = 0; i < node.ChildCount; i++) {
    const child = node.GetChild(i);
    if (child !== null && !child.IsToken) namesIn(child as SyntaxNode, names);
  }
  return names;
}

/** What `pivot` may aggregate with, and what a cell without rows holds. */
const EMPTY: ReadonlyMap<string, "0" | "[]" | "{}" | "null"> = new Map([
  ...["count", "sum", "dcount", "stdev", "variance"].map((name): [string, "0"] => [name, "0"]),
  ...["make_list", "make_set"].map((name): [string, "[]"] => [name, "[]"]),
  ...["min", "max", "take_any", "avg"].map((name): [string, "null"] => [name, "null"]),
  ["make_bag", "{}"],
]);

function nameOfAggregate(node: SyntaxExpression | undefined): string {
  return node === undefined ? "count" : ((node as Kusto.Language.Syntax.FunctionCallExpression).Name?.SimpleName ?? "");
}

function cellOf({ args, context: { translator, scope } }: PluginCall, rel: Rel): Expr {
  const [, aggregate] = args;
  if (aggregate === undefined) return expr("long", ["count(*)"], { nullable: false });
  const name = nameOfAggregate(aggregate);
  if (classOf(aggregate) !== "FunctionCallExpression" || !EMPTY.has(name)) {
    throw translator.refuse(`pivot aggregates with one of: ${[...EMPTY.keys()].join(", ")}`, aggregate);
  }
  return translator.scalar(aggregate, { ...scope, rel, aggregates: true });
}

function orNothing(value: Expr, name: string): Expr {
  const empty = EMPTY.get(name) ?? "null";
  if (empty === "null") return value;
  const constant = empty === "0" ? zeroOf(value.type) : literal("dynamic", empty);
  return expr(value.type, sql`coalesce(${value}, ${constant})`, { nullable: false });
}

function zeroOf(type: KqlType): Expr {
  return as(literal("long", 0n), type);
}
