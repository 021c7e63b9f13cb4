import { elementsOf, classOf, textOf, the, type SyntaxExpression } from "./bind/library.ts";
import { elementOf, memberOf } from "./functions/access.ts";
import { BINARY } from "./functions/operators.ts";
import { hasListOf, isIn, isInRange } from "./functions/lists.ts";
import { Column, expr, sql, type Expr } from "./plan/expression.ts";
import type { Scope, Translating, Variables } from "./scope.ts";
import { anyColumn, cased, starTest, termTest } from "./search-terms.ts";
import { isTabular } from "./bind/tabular.ts";
import { typeOfSymbol } from "./types/types.ts";
import { inTry } from "./values/bound.ts";
import { literal } from "./values/coerce.ts";
import { dynamicLiteral, literalExpr } from "./values/literal-nodes.ts";

type ScalarRule = (node: SyntaxExpression, scope: Scope, translator: Translating) => Expr;

/** A rule for nodes of one class. */
// oxlint-disable-next-line no-unnecessary-type-parameters -- whoever calls it says the class of the node
function rule<T extends SyntaxExpression>(own: (node: T, scope: Scope, translator: Translating) => Expr): ScalarRule {
  return (node, scope, translator) => own(node as T, scope, translator);
}

/** Scalar expressions by the class of their node; names and calls are for the translator itself. */
export const SCALARS: Readonly<Record<string, ScalarRule | undefined>> = {
  LiteralExpression: (node, scope, translator) => {
    // A text where a condition is expected: a term of search and find.
    const isTerm = typeof node.LiteralValue === "string" && typeOfSymbol(node.ResultType) === "bool";
    return isTerm ? anyColumn(scope, termTest(String(node.LiteralValue), scope)) : literalExpr(node, translator);
  },
  StarExpression: (node, _, translator) => {
    if (typeOfSymbol(node.ResultType) === "bool") return literal("bool", true);
    throw translator.refuse("* is not supported here", node);
  },
  CompoundStringLiteralExpression: (node) => literal("string", String(node.LiteralValue)),
  DynamicExpression: rule<Kusto.Language.Syntax.DynamicExpression>((node, _, translator) => {
    return dynamicLiteral(node, translator);
  }),
  ParenthesizedExpression: rule<Kusto.Language.Syntax.ParenthesizedExpression>((node, scope, translator) => {
    return translator.scalar(the(node.Expression), scope);
  }),
  SimpleNamedExpression: rule<Kusto.Language.Syntax.SimpleNamedExpression>((node, scope, translator) => {
    return translator.scalar(the(node.Expression), scope);
  }),
  BinaryExpression: rule<Kusto.Language.Syntax.BinaryExpression>(binary),
  PrefixUnaryExpression: rule<Kusto.Language.Syntax.PrefixUnaryExpression>(unary),
  InExpression: rule<Kusto.Language.Syntax.InExpression>(inList),
  HasAnyExpression: rule<Kusto.Language.Syntax.HasAnyExpression>(hasList),
  HasAllExpression: rule<Kusto.Language.Syntax.HasAllExpression>(hasList),
  BetweenExpression: rule<Kusto.Language.Syntax.BetweenExpression>(between),
  PathExpression: rule<Kusto.Language.Syntax.PathExpression>(path),
  ElementExpression: rule<Kusto.Language.Syntax.ElementExpression>(element),
  ToScalarExpression: rule<Kusto.Language.Syntax.ToScalarExpression>((node, scope, translator) => {
    const inner = the(node.Expression);
    if (!isTabular(inner))
      return translator.once(translator.scalar(inner, { variables: withoutRows(scope.variables) }));
    const rel = translator.rows(inner, withoutRows(scope.variables));
    return translator.toScalar(rel, typeOfSymbol(node.ResultType) ?? "dynamic");
  }),
};

function binary(node: Kusto.Language.Syntax.BinaryExpression, scope: Scope, translator: Translating): Expr {
  const name = node.ReferencedSymbol?.Name ?? "";
  const operator = scope.isCased === true ? cased(name) : name;
  if (operator === "Search") {
    const term = translator.constant(the(node.Right), scope);
    return termTest(String(term), scope)(translator.scalar(the(node.Left), scope));
  }
  if (classOf(the(node.Left)) === "StarExpression") return ofAnyColumn(node, operator, scope, translator);
  const own = BINARY[operator];
  if (own === undefined) throw translator.refuse(`operator ${textOf(node.Operator)} is not supported`, node);
  const [left, right] = [translator.scalar(the(node.Left), scope), translator.scalar(the(node.Right), scope)];
  if (operator === "Equal" || operator === "NotEqual") refuseUnlike(left, right, node, translator);
  const type = typeOfSymbol(node.ResultType) ?? "dynamic";
  return own(left, right, { type, refuse: (message) => translator.refuse(message, node) });
}

/** The binder lets values of any two types be equal, or not; the language compares those of one kind. */
function refuseUnlike(left: Expr, right: Expr, node: SyntaxExpression, translator: Translating): void {
  const isNull = left.constant === null || right.constant === null;
  if (isNull || left.type === "dynamic" || right.type === "dynamic" || kindOf(left) === kindOf(right)) return;
  throw translator.refuse(`values of types ${left.type} and ${right.type} are not compared: convert one of them`, node);
}

function kindOf({ type }: Expr): string {
  return ["bool", "int", "long", "real", "decimal"].includes(type) ? "number" : type;
}

function ofAnyColumn(
  node: Kusto.Language.Syntax.BinaryExpression,
  operator: string,
  scope: Scope,
  translator: Translating,
): Expr {
  const right = translator.scalar(the(node.Right), scope);
  const test = starTest(operator, right, (message) => translator.refuse(message, node));
  if (test === undefined) throw translator.refuse(`* is not supported with ${textOf(node.Operator)}`, node);
  return anyColumn(scope, test);
}

function unary(node: Kusto.Language.Syntax.PrefixUnaryExpression, scope: Scope, translator: Translating): Expr {
  const value = translator.scalar(the(node.Expression), scope);
  if (textOf(node.Operator) === "+") return value;
  const { constant, type } = value;
  if (typeof constant === "bigint" || typeof constant === "number") {
    if (type === "int" || type === "long" || type === "timespan")
      return literal(type, BigInt.asIntN(64, -BigInt(constant)));
    if (type === "real") return literal(type, -Number(constant));
  }
  if (type === "dynamic") throw translator.refuse("a dynamic value has no negative: convert it first", node);
  if (type === "datetime") throw translator.refuse("a datetime has no negative", node);
  if (type === "int" || type === "long" || type === "timespan") {
    const own = inTry([value], (one) => sql`kql_negate(${one})`);
    return expr(type, own, { nullable: value.nullable });
  }
  return expr(type, sql`-${value}`, { nullable: value.nullable });
}

function inList(node: Kusto.Language.Syntax.InExpression, scope: Scope, translator: Translating): Expr {
  const left = translator.scalar(the(node.Left), scope);
  const operator = node.ReferencedSymbol?.Name ?? "";
  const items = elementsOf<SyntaxExpression>(node.Right?.Expressions);
  const [only] = items;
  if (only !== undefined && items.length === 1 && isTabular(only)) {
    return isIn(operator, left, { rows: translator.rows(only, withoutRows(scope.variables)) });
  }
  return isIn(operator, left, { values: items.map((item) => translator.scalar(item, scope)) });
}

function hasList(
  node: Kusto.Language.Syntax.HasAnyExpression | Kusto.Language.Syntax.HasAllExpression,
  scope: Scope,
  translator: Translating,
): Expr {
  const left = translator.scalar(the(node.Left), scope);
  const operator = classOf(node) === "HasAnyExpression" ? "HasAny" : "HasAll";
  const items = elementsOf<SyntaxExpression>(node.Right?.Expressions);
  const [only] = items;
  if (only !== undefined && items.length === 1 && isTabular(only)) {
    return hasListOf(operator, left, { rows: translator.rows(only, withoutRows(scope.variables)) });
  }
  return hasListOf(operator, left, { values: items.map((item) => translator.scalar(item, scope)) });
}

function between(node: Kusto.Language.Syntax.BetweenExpression, scope: Scope, translator: Translating): Expr {
  const operator = node.ReferencedSymbol?.Name ?? "";
  const { First, Second } = the(node.Right);
  const [value, low, high] = [node.Left, First, Second].map((part) => translator.scalar(the(part), scope));
  const within = isInRange(the(value), the(low), the(high));
  return operator === "NotBetween" ? expr("bool", sql`NOT ${within}`, { nullable: within.nullable }) : within;
}

function path(node: Kusto.Language.Syntax.PathExpression, scope: Scope, translator: Translating): Expr {
  const selector = the(node.Selector);
  const side = node.Expression !== null && classOf(node.Expression) === "NameReference" ? textOf(node.Expression) : "";
  const sides = scope.sides;
  if (sides !== undefined && (side === "$left" || side === "$right")) {
    const rel = side === "$left" ? sides.left : sides.right;
    return translator.scalar(selector, { variables: scope.variables, rel });
  }
  const value = translator.scalar(the(node.Expression), scope);
  if (classOf(selector) === "NameReference") {
    return memberOf(value, (selector as Kusto.Language.Syntax.NameReference).SimpleName ?? "");
  }
  if (classOf(selector) === "BracketedExpression") {
    const inner = the((selector as Kusto.Language.Syntax.BracketedExpression).Expression);
    return elementOf(value, translator.scalar(inner, scope));
  }
  throw translator.refuse("a name is expected after the dot", selector);
}

function element(node: Kusto.Language.Syntax.ElementExpression, scope: Scope, translator: Translating): Expr {
  const value = translator.scalar(the(node.Expression), scope);
  const { Expression } = the(node.Selector) as Kusto.Language.Syntax.BracketedExpression;
  return elementOf(value, translator.scalar(the(Expression), scope));
}

/** A query in an expression is evaluated once: what a function was given of a row is not known there. */
function withoutRows(variables: Variables): Variables {
  return new Map(
    [...variables].map(([name, value]) => [
      name,
      value.kind === "scalar" && isOfRow(value.value) ? { kind: "ofRow" as const } : value,
    ]),
  );
}

function isOfRow(value: Expr): boolean {
  return value.sql.some((part) => part instanceof Column);
}
