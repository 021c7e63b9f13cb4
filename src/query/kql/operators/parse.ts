import { arrayOf, classOf, textOf, the, type SyntaxExpression, type SyntaxNode } from "../bind/library.ts";
import { quoteText } from "../../../io/duckdb/duckdb.ts";
import type { KqlRefused, KqlType } from "../contract.ts";
import { columnExpr, expr, raw, sql, type Expr } from "../plan/expression.ts";
import { computed, filtered, type Named, type Rel } from "../plan/rel.ts";
import type { OperatorContext } from "../scope.ts";
import { SQL_TYPES, typeOfSymbol } from "../types/types.ts";
import { readPattern, subject } from "../functions/patterns.ts";
import { boundColumns } from "./columns.ts";
import { patternOf, type PatternKind, type PatternPart } from "./parse-pattern.ts";
import { parametersOf } from "./rows.ts";
import { operator, type OperatorTable } from "./table.ts";

/** Operators that take texts apart by a pattern. */
export const PARSERS: OperatorTable = {
  ParseOperator: operator<Kusto.Language.Syntax.ParseOperator>((node, input, context) => {
    return parsed(node, input, context).rel;
  }),
  ParseWhereOperator: operator<Kusto.Language.Syntax.ParseWhereOperator>((node, input, context) => {
    const { rel, isParsed } = parsed(node, input, context);
    return filtered(rel, isParsed);
  }),
};

type ParseNode = Kusto.Language.Syntax.ParseOperator | Kusto.Language.Syntax.ParseWhereOperator;

function parsed(node: ParseNode, input: Rel, { translator, scope }: OperatorContext): { rel: Rel; isParsed: Expr } {
  const parameters = parametersOf(node.Parameters);
  const kind = textOf(parameters.get("kind")) || "simple";
  if (classOf(node) === "ParseWhereOperator" && kind === "relaxed") {
    throw translator.refuse("parse-where does not support kind=relaxed", parameters.get("kind"));
  }
  const refuse = (message: string) => translator.refuse(message, node);
  const parts = arrayOf<SyntaxNode>(node.Patterns).map((part) => partOf(part, kind, refuse));
  const columns = parts.flatMap((part) => ("name" in part ? [part] : []));
  refuseTaken(columns, input, refuse);
  const { pattern, groups } = patternOf(parts, kind as PatternKind, textOf(parameters.get("flags")));
  const hasWordBoundary = parts.some((part) => "regex" in part && part.regex.hasWordBoundary);
  const subjectText = subject(translator.scalar(the(node.Expression), scope), { hasWordBoundary });
  const textColumn = computed(input, [{ name: "text", value: expr("string", subjectText, { nullable: false }) }]);
  const text = columnExpr(the(textColumn.columns[0]));
  // Twice, because what does not match gives empty groups, and so may what does.
  const found = sql`CASE WHEN regexp_matches(${text}, ${quoteText(pattern)})
    THEN regexp_extract(${text}, ${quoteText(pattern)}, [${groups.map(({ group }) => quoteText(group)).join(", ")}]) END`;
  const isMatch = expr("bool", sql`regexp_matches(${text}, ${quoteText(pattern)})`, { nullable: false });
  const first = computed(textColumn.rel, [
    { name: "found", value: columns.length === 0 ? isMatch : expr("dynamic", found) },
  ]);
  const match = columnExpr(the(first.columns[0]));
  const captured = columns.map(({ name, type }) => {
    const group = the(groups.find((one) => one.column === name)).group;
    return { name, value: valueOf(expr("string", sql`struct_extract(${match}, ${quoteText(group)})`), type) };
  });
  return columns.length === 0
    ? { rel: first.rel, isParsed: match }
    : withValues(node, first.rel, { match, captured, isStrict: kind !== "relaxed" });
}

type Found = { match: Expr; captured: readonly { name: string; value: Expr }[]; isStrict: boolean };

/** If not relaxed, one value that is not of its type makes all of them null. */
function withValues(node: ParseNode, rel: Rel, { match, captured, isStrict }: Found): { rel: Rel; isParsed: Expr } {
  const second = computed(rel, captured);
  const conditions = [
    sql`${match} IS NOT NULL`,
    ...second.columns.filter(({ type }) => type !== "string").map((column) => sql`${column} IS NOT NULL`),
  ];
  const isParsed = expr("bool", joinedBy(" AND ", conditions), { nullable: false });
  const values = second.columns.map((column): Expr => {
    const value = columnExpr(column);
    return isStrict && conditions.length > 1 ? expr(value.type, sql`CASE WHEN ${isParsed} THEN ${value} END`) : value;
  });
  const made = computed(
    second.rel,
    captured.map(({ name }, i) => ({ name, value: the(values[i]) })),
  );
  const own = new Map(captured.map(({ name }, i) => [name, the(made.columns[i])]));
  const columns = boundColumns(node).map(({ name }): Named => ({
    name,
    column: the(own.get(name) ?? rel.column(name)),
  }));
  return { rel: made.rel.showing(columns), isParsed };
}

/** The binder gives the result two columns of one name: no one could say which is meant. */
export function refuseTaken(
  columns: readonly { name: string }[],
  input: Rel,
  refuse: (message: string) => Error,
): void {
  const taken = columns.find(({ name }) => input.column(name) !== undefined);
  if (taken !== undefined) throw refuse(`there is a column ${taken.name} already: rename one of them`);
}

function joinedBy(word: string, items: readonly ReturnType<typeof sql>[]): ReturnType<typeof sql> {
  return items.flatMap((item, i) => [...(i === 0 ? [] : [word]), ...item]);
}

function partOf(node: SyntaxNode, kind: string, refuse: (message: string) => KqlRefused): PatternPart {
  const nodeKind = classOf(node);
  if (nodeKind === "StarExpression") return { skip: true };
  if (nodeKind === "NameDeclaration") {
    return { name: (node as Kusto.Language.Syntax.NameDeclaration).SimpleName ?? "", type: "string" };
  }
  if (nodeKind === "NameAndTypeDeclaration") {
    const { Name } = node as Kusto.Language.Syntax.NameAndTypeDeclaration;
    return { name: Name?.SimpleName ?? "", type: typeOfSymbol(Name?.ResultType ?? null) ?? "string" };
  }
  const text = String((node as SyntaxExpression).LiteralValue);
  return kind === "regex" ? { regex: readPattern(text, refuse) } : { text };
}

/** A part of a text as a value of the type; null where it is none. */
export function valueOf(text: Expr, type: KqlType): Expr {
  switch (type) {
    case "string":
      return text;
    case "long":
    case "real":
    case "bool":
      return expr(type, sql`kql_parsed_${raw([type])}(${text})`);
    case "int":
      return expr(type, sql`TRY_CAST(kql_parsed_long(${text}) AS INTEGER)`);
    case "datetime":
    case "timespan":
      return expr(type, sql`kql_${raw([type])}_of(trim(${text}))`);
    case "guid":
    case "decimal":
    case "dynamic":
      return expr(type, sql`TRY_CAST(trim(${text}) AS ${SQL_TYPES[type]})`);
  }
}
