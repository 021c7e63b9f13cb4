import { arrayOf, classOf, elementsOf, textOf, the, type SyntaxExpression } from "../bind/library.ts";
import type { KqlType } from "../contract.ts";
import { Column, columnExpr, expr, raw, sql, type Expr } from "../plan/expression.ts";
import { orderBy } from "../plan/plan.ts";
import { UnionPlan } from "../plan/plans.ts";
import { Rel, type Named } from "../plan/rel.ts";
import type { Translating, Variables } from "../scope.ts";
import { typeOfSymbol } from "../types/types.ts";
import { literal } from "../values/coerce.ts";
import { boundColumns, nameIn } from "./columns.ts";
import { ascending } from "./expand.ts";
import { bracketedName } from "./plugin.ts";
import { parametersOf } from "./rows.ts";
import { operator, source, type OperatorTable, type SourceTable } from "./table.ts";

/** The rows of several tables. */
export const UNIONS: OperatorTable = {
  UnionOperator: operator<Kusto.Language.Syntax.UnionOperator>((node, input, { translator, variables }) => {
    return unionOf(node, [{ rel: input, name: nameOfInput(node) }], translator, variables);
  }),
};

export const UNION_SOURCES: SourceTable = {
  UnionOperator: source<Kusto.Language.Syntax.UnionOperator>((node, translator, variables) => {
    return unionOf(node, [], translator, variables);
  }),
};

/** Rows with the name of the table that they come from; undefined where none has one. */
export type Leg = { rel: Rel; name: string | undefined };

function unionOf(
  node: Kusto.Language.Syntax.UnionOperator,
  first: readonly Leg[],
  translator: Translating,
  variables: Variables,
): Rel {
  const parameters = parametersOf(node.Parameters);
  const isFuzzy = textOf(parameters.get("isfuzzy")).toLowerCase() === "true";
  const nodes = elementsOf<SyntaxExpression>(node.Expressions);
  const legs = [...first, ...nodes.flatMap((one) => legsOf(one, { translator, variables, isFuzzy }))];
  if (legs.length === 0) {
    throw translator.refuse(`none of the tables of the union exists: ${nodes.map(textOf).join(", ")}`, node);
  }
  const named = parameters.get("withsource");
  const origin = named === undefined ? undefined : nameIn(named);
  if (textOf(parameters.get("kind")) === "inner") keepCommon(node, legs, translator, origin);
  return united(node, legs, origin);
}

type Legs = { translator: Translating; variables: Variables; isFuzzy: boolean };

/** The tables of one expression of a union: a wildcard may name several, and a fuzzy name none. */
export function legsOf(node: SyntaxExpression, legs: Legs): Leg[] {
  const { translator, variables, isFuzzy } = legs;
  const pattern = wildcardOf(node);
  if (pattern !== undefined) return matching(node, pattern, legs);
  if (isFuzzy && isMissing(node, legs)) return [];
  return [{ rel: translator.rows(node, variables), name: nameOfRows(node) }];
}

/** The pattern of `T*`. */
function wildcardOf(node: SyntaxExpression): RegExp | undefined {
  if (classOf(node) !== "NameReference") return undefined;
  const { Name } = node as Kusto.Language.Syntax.NameReference;
  if (Name === null || !classOf(Name).includes("Wildcarded")) return undefined;
  const parts = (Name.SimpleName ?? textOf(Name)).split("*");
  return new RegExp(`^${parts.map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, "\\$&")).join(".*")}$`, "su");
}

function matching(node: SyntaxExpression, pattern: RegExp, { translator, variables }: Legs): Leg[] {
  for (const [name, value] of variables) {
    if (value.kind === "function" && value.declaration.ViewKeyword !== null && pattern.test(name)) {
      throw translator.refuse(`a wildcard does not reach views: name ${name}`, node);
    }
  }
  const tables = translator.request.tables.filter(({ name }) => pattern.test(name));
  return tables.map((table) => ({ rel: translator.table(table), name: table.name }));
}

/** Whether the table at the beginning of the expression does not exist. */
function isMissing(node: SyntaxExpression, { translator, variables }: Legs): boolean {
  const first = firstOf(node);
  if (classOf(first) !== "NameReference") return false;
  const name = (first as Kusto.Language.Syntax.NameReference).SimpleName ?? "";
  return !variables.has(name) && !translator.request.tables.some((table) => table.name === name);
}

/** The source at the beginning of a pipe. */
function firstOf(node: SyntaxExpression): SyntaxExpression {
  const kind = classOf(node);
  if (kind !== "PipeExpression" && kind !== "ParenthesizedExpression") return node;
  return firstOf(the((node as Kusto.Language.Syntax.PipeExpression).Expression));
}

/** What rows are called where they are joined to others: by `as`, or like the table at the beginning. */
export function nameOfRows(node: SyntaxExpression): string | undefined {
  const kind = classOf(node);
  if (kind === "ParenthesizedExpression") {
    return nameOfRows(the((node as Kusto.Language.Syntax.ParenthesizedExpression).Expression));
  }
  if (kind === "PipeExpression") {
    const { Expression, Operator } = node as Kusto.Language.Syntax.PipeExpression;
    if (classOf(the(Operator)) === "AsOperator")
      return (Operator as Kusto.Language.Syntax.AsOperator).Name?.SimpleName ?? "";
    return nameOfRows(the(Expression));
  }
  if (kind === "NameReference") return (node as Kusto.Language.Syntax.NameReference).SimpleName ?? undefined;
  if (kind === "FunctionCallExpression")
    return (node as Kusto.Language.Syntax.FunctionCallExpression).Name?.SimpleName ?? undefined;
  return undefined;
}

/** The same of the rows that come into an operator. */
export function nameOfInput(node: Kusto.Language.Syntax.QueryOperator): string | undefined {
  const parent = node.Parent;
  if (parent === null || classOf(parent) !== "PipeExpression") return undefined;
  return nameOfRows(the((parent as Kusto.Language.Syntax.PipeExpression).Expression));
}

/**
 * All rows of the legs, in the columns that the binder gives the node: it unifies columns by name and type, and says
 * of each which it comes from.
 */
export function united(node: SyntaxExpression, legs: readonly Leg[], origin?: string): Rel {
  const symbol = node.ResultType as Kusto.Language.Symbols.TableSymbol | null;
  const sources = new Map<string, ReadonlySet<string>>();
  for (const column of arrayOf<Kusto.Language.Symbols.ColumnSymbol>(symbol?.Columns)) {
    const originals = arrayOf<Kusto.Language.Symbols.ColumnSymbol>(column.OriginalColumns);
    sources.set(column.Name ?? "", new Set((originals.length === 0 ? [column] : originals).map(signature)));
  }
  const columns = boundColumns(node).map(({ name, type }): Named => ({ name, column: new Column(name, type) }));
  const branches = legs.map(({ rel, name: own }, i) => {
    const values = columns.map(({ name, column }): [Column, Expr] => {
      if (name === origin) return [column, literal("string", own ?? `union_arg${i}`)];
      const found = ownColumn(rel, name, column) ?? renamed(rel, columns, sources.get(name));
      return [column, found === undefined ? literal(column.type, null) : columnExpr(found.column)];
    });
    return { rel, values };
  });
  return inOrderOfLegs(branches, columns);
}

/** The leg's column of that name and type. */
function ownColumn(rel: Rel, name: string, { type }: Column): Named | undefined {
  return rel.columns.find((one) => one.name === name && one.column.type === type);
}

/** The leg's column that the union calls otherwise: not one that has its own place there. */
function renamed(rel: Rel, columns: readonly Named[], sources: ReadonlySet<string> | undefined): Named | undefined {
  return rel.columns.find(({ name, column }) => {
    const isPlaced = columns.some((one) => one.name === name && one.column.type === column.type);
    return !isPlaced && sources?.has(`${name}:${column.type}`) === true;
  });
}

type RelBranch = { rel: Rel; values: readonly (readonly [Column, Expr])[] };

/** The rows of each leg stay in their order, if it has one; legs follow each other then. */
function inOrderOfLegs(branches: readonly RelBranch[], columns: readonly Named[]): Rel {
  if (branches.every(({ rel }) => rel.order.length === 0)) {
    const plain = branches.map(({ rel, values }) => ({ plan: rel.plan, values: new Map(values) }));
    return new Rel(new UnionPlan(plain), columns);
  }
  const [leg, place] = [new Column("leg", "long", false), new Column("place", "long", false)];
  const placed = branches.map(({ rel, values }, i) => {
    const number = expr("long", sql`row_number() OVER (${raw(orderBy(rel.order))})`, {
      nullable: false,
      isFixed: true,
    });
    const own: (readonly [Column, Expr])[] = [...values, [leg, literal("long", BigInt(i))], [place, number]];
    return { plan: rel.plan, values: new Map(own) };
  });
  return new Rel(new UnionPlan(placed), columns, { order: [ascending(leg), ascending(place)] });
}

function signature({ Name, Type }: Kusto.Language.Symbols.ColumnSymbol): string {
  return `${Name ?? ""}:${typeOfSymbol(Type) ?? "dynamic"}`;
}

/** The binder shows all columns of a union of kind `inner`: what not all tables have is dropped behind it. */
function keepCommon(
  node: SyntaxExpression,
  legs: readonly Leg[],
  translator: Translating,
  origin: string | undefined,
): void {
  const shape = boundColumns(node);
  const isCommon = (name: string, type: KqlType): boolean =>
    legs.every(({ rel }) => rel.columns.some((one) => one.name === name && one.column.type === type));
  const kept = shape.filter(({ name, type }) => name === origin || isCommon(name, type));
  if (kept.length === shape.length) return;
  translator.insert(node, ` | project-keep ${kept.map(({ name }) => bracketedName(name)).join(", ")}`);
}
