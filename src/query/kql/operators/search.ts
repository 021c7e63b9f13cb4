import { classOf, elementsOf, textOf, the, type SyntaxExpression, type SyntaxNode } from "../bind/library.ts";
import type { KqlType } from "../contract.ts";
import { Column, columnExpr, commaList, expr, sql, type Expr, type Sql } from "../plan/expression.ts";
import { UnionPlan } from "../plan/plans.ts";
import { computed, filtered, Rel, type Named } from "../plan/rel.ts";
import type { Translating, Variables } from "../scope.ts";
import { as, dyn, literal } from "../values/coerce.ts";
import { boundColumns, nameIn } from "./columns.ts";
import { parametersOf } from "./rows.ts";
import { operator, source, type OperatorTable, type SourceTable } from "./table.ts";
import { legsOf, nameOfInput, united, type Leg } from "./union.ts";

/** Operators that look for rows in several tables. */
export const SEARCHES: OperatorTable = {
  SearchOperator: operator<Kusto.Language.Syntax.SearchOperator>((node, input, { translator, variables }) => {
    return searched(node, [{ rel: input, name: nameOfInput(node) }], translator, variables);
  }),
};

export const SEARCH_SOURCES: SourceTable = {
  SearchOperator: source<Kusto.Language.Syntax.SearchOperator>((node, translator, variables) => {
    return searched(node, namedTables(node, translator, variables), translator, variables);
  }),
  FindOperator: source<Kusto.Language.Syntax.FindOperator>(found),
};

type Searching = Kusto.Language.Syntax.SearchOperator | Kusto.Language.Syntax.FindOperator;

function namedTables(node: Searching, translator: Translating, variables: Variables): Leg[] {
  const name = textOf(node.GetFirstToken());
  if (node.InClause === null) throw translator.refuse(`${name} looks in tables that are named: ${name} in (…)`, node);
  const legs = { translator, variables, isFuzzy: false };
  return elementsOf<SyntaxExpression>(node.InClause.Expressions).flatMap((one) => legsOf(one, legs));
}

function searched(
  node: Kusto.Language.Syntax.SearchOperator,
  legs: readonly Leg[],
  translator: Translating,
  variables: Variables,
): Rel {
  const isCased = textOf(parametersOf(node.Parameters).get("kind")) === "case_sensitive";
  const condition = the(node.Condition);
  const used = columnsIn(condition, legs, translator);
  const matching = legs.map(({ rel, name }): Leg => {
    const scope = { variables, rel: withMissing(rel, used), isCased };
    const found = filtered(scope.rel, as(translator.scalar(condition, scope), "bool"));
    return { rel: found.showing(rel.columns), name };
  });
  return united(node, matching, "$table");
}

/** The columns that a condition names, with their types: one type each. */
function columnsIn(condition: SyntaxNode, legs: readonly Leg[], translator: Translating): ReadonlyMap<string, KqlType> {
  const used = new Map<string, KqlType>();
  const visit = (node: SyntaxNode): void => {
    const { ReferencedSymbol, SimpleName } = node as Kusto.Language.Syntax.NameReference;
    if (classOf(node) === "NameReference" && isColumn(ReferencedSymbol)) {
      const name = SimpleName ?? "";
      const types = new Set(legs.flatMap(({ rel }) => rel.column(name)?.type ?? []));
      if (types.size > 1)
        throw translator.refuse(`${name} has several types in these tables: ${[...types].join(", ")}`, node);
      const [type] = types;
      if (type !== undefined) used.set(name, type);
    }
    for (let i = 0; i < node.ChildCount; i++) {
      const child = node.GetChild(i);
      if (child !== null && !child.IsToken) visit(child as SyntaxNode);
    }
  };
  visit(condition);
  return used;
}

function isColumn(symbol: Kusto.Language.Symbols.Symbol | null | undefined): boolean {
  return symbol !== null && symbol !== undefined && ["ColumnSymbol", "GroupSymbol"].includes(classOf(symbol));
}

/** The rows with a null for each column that is used and not there. */
function withMissing(rel: Rel, used: ReadonlyMap<string, KqlType>): Rel {
  const missing = [...used].filter(([name]) => rel.column(name) === undefined);
  const made = computed(
    rel,
    missing.map(([name, type]) => ({ name, value: literal(type, null) })),
  );
  return made.rel.showing([
    ...rel.columns,
    ...missing.map(([name], i): Named => ({ name, column: the(made.columns[i]) })),
  ]);
}

/** `find in (…) where …`: of tables that have none of the columns of the condition, nothing is found. */
function found(node: Kusto.Language.Syntax.FindOperator, translator: Translating, variables: Variables): Rel {
  if (node.ProjectAway !== null) throw translator.refuse("find with project-away is not supported", node.ProjectAway);
  const condition = the(node.Condition);
  const all = namedTables(node, translator, variables);
  const used = columnsIn(condition, all, translator);
  const legs = all.filter(
    ({ rel }) => used.size === 0 || [...used.keys()].some((name) => rel.column(name) !== undefined),
  );
  const origin = parametersOf(node.Parameters).get("withsource");
  const shape = shapeOf(node, origin === undefined ? "source_" : nameIn(origin), translator);
  const columns = shape.map(({ name, type }): Named => ({ name, column: new Column(name, type) }));
  const branches = legs.map(({ rel, name }, i) => {
    const scope = { variables, rel: withMissing(rel, used) };
    const { plan } = filtered(scope.rel, as(translator.scalar(condition, scope), "bool"));
    const leg = { rel, name: name ?? `union_arg${i}` };
    return {
      plan,
      values: new Map(shape.map((one, j): [Column, Expr] => [the(columns[j]).column, valueOf(one, leg, shape)])),
    };
  });
  return new Rel(new UnionPlan(branches), columns);
}

type Shape = { name: string; type: KqlType; from: "origin" | "rest" | "column" };

/** The columns of the result: where a row comes from, columns of the tables, and what else a row has. */
function shapeOf(node: Kusto.Language.Syntax.FindOperator, origin: string, translator: Translating): Shape[] {
  const projected = elementsOf<SyntaxExpression>(node.Project?.Columns);
  const packed = projected.find((one) => !["NameReference", "TypedColumnReference"].includes(classOf(one)));
  if (packed !== undefined) throw translator.refuse(`find does not support ${textOf(packed)} in project`, packed);
  const shape = boundColumns(node);
  return shape.map(({ name, type }, i) => {
    const isRest = projected.length === 0 && i === shape.length - 1 && type === "dynamic" && name.startsWith("pack_");
    return { name, type, from: i === 0 && name === origin ? "origin" : isRest ? "rest" : "column" };
  });
}

function valueOf(
  { name, type, from }: Shape,
  { rel, name: own }: { rel: Rel; name: string },
  shape: readonly Shape[],
): Expr {
  if (from === "origin") return literal("string", own);
  if (from === "rest") {
    const shown = new Set(shape.filter((one) => one.from === "column").map((one) => one.name));
    return packed(rel.columns.filter((one) => !shown.has(one.name)));
  }
  const column = rel.column(name);
  return column === undefined ? literal(type, null) : as(columnExpr(column), type);
}

/** Columns as a bag. */
function packed(columns: readonly Named[]): Expr {
  const items = columns.flatMap(({ name, column }): Sql[] => [
    literal("string", name).sql,
    dyn(columnExpr(column)).sql,
  ]);
  return expr("dynamic", sql`json_object(${commaList(items)})`, { nullable: false });
}
