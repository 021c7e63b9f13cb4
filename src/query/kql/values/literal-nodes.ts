import { textOf, the, classOf, type SyntaxExpression } from "../bind/library.ts";
import type { Expr } from "../plan/expression.ts";
import type { Translating } from "../scope.ts";
import type { KqlType } from "../contract.ts";
import {
  boolOf,
  datetimeOf,
  datetimeText,
  decimalOf,
  guidOf,
  integerOf,
  realOf,
  timespanOf,
  timespanText,
} from "../types/literals.ts";
import { typeOfSymbol } from "../types/types.ts";
import { literal } from "./coerce.ts";

/** The value of a literal of the text. */
export function literalExpr(node: SyntaxExpression, translator: Translating): Expr {
  const type = typeOfSymbol(node.ResultType) ?? "dynamic";
  const text = textOf(node);
  if (type === "string") return literal("string", String(node.LiteralValue));
  if (type === "dynamic") return literal("dynamic", null);
  if (type === "datetime" && /^\w+\(\s*\)$/.test(text)) return literal("datetime", translator.request.nowNs);
  const value = type === "int" || type === "long" ? integerOf(text, type, isNegated(node)) : VALUES[type](text);
  if (value === undefined) throw translator.refuse(`${shortened(text)} is not a ${type}`, node);
  if (value === "out") {
    throw translator.refuse(`${shortened(text)} is beyond what a ${type} reaches${REACH[type] ?? ""}`, node);
  }
  return literal(type, value);
}

const VALUES = {
  bool: boolOf,
  real: realOf,
  decimal: decimalOf,
  guid: guidOf,
  timespan: timespanOf,
  datetime: datetimeOf,
} as const;

const REACH: Partial<Record<KqlType, string>> = { datetime: ": 1677 to 2262" };

/** Whether a minus stands before it, which is no part of a literal. */
function isNegated(node: SyntaxExpression): boolean {
  const { Parent } = node;
  if (Parent === null || classOf(Parent) !== "PrefixUnaryExpression") return false;
  return textOf((Parent as Kusto.Language.Syntax.PrefixUnaryExpression).Operator) === "-";
}

const LONGEST = 60;

function shortened(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

/** `dynamic(…)`: JSON whose strings may stand in single quotes, and that may hold datetimes and timespans. */
export function dynamicLiteral(node: Kusto.Language.Syntax.DynamicExpression, translator: Translating): Expr {
  const json = jsonOf(the(node.Expression), translator);
  return literal("dynamic", json === "null" ? null : json);
}

function jsonOf(node: SyntaxExpression, translator: Translating): string {
  switch (classOf(node)) {
    case "JsonObjectExpression":
    case "JsonArrayExpression":
      return jsonText(node, translator);
    case "DynamicExpression":
      return jsonOf(the((node as Kusto.Language.Syntax.DynamicExpression).Expression), translator);
    case "PrefixUnaryExpression": {
      const json = jsonOf(the((node as Kusto.Language.Syntax.PrefixUnaryExpression).Expression), translator);
      return json === '"Infinity"' ? '"-Infinity"' : `-${json}`;
    }
    default: {
      const value = literalExpr(node, translator).constant ?? null;
      if (value === null) return "null";
      const type = typeOfSymbol(node.ResultType);
      if (type === "string" || type === "guid") return JSON.stringify(value);
      // JSON has no such numbers: they are texts, as what becomes dynamic while a query runs.
      if (type === "real" && !Number.isFinite(Number(value))) return JSON.stringify(String(value));
      if (type === "datetime") return JSON.stringify(datetimeText(BigInt(value)));
      if (type === "timespan") return JSON.stringify(timespanText(BigInt(value)));
      return String(value);
    }
  }
}

/** The value of a dynamic that is known while translating; undefined where that is no JSON. */
export function jsonIn(constant: Expr["constant"]): unknown {
  if (typeof constant !== "string") return undefined;
  try {
    return JSON.parse(constant) as unknown;
  } catch {
    return undefined;
  }
}

type Pair = { Name: Kusto.Language.Syntax.SyntaxToken | null; Value: SyntaxExpression | null };

function jsonText(node: SyntaxExpression, translator: Translating): string {
  const items: string[] = [];
  const list = node as unknown as { Pairs?: Listed<Pair>; Values?: Listed<SyntaxExpression> };
  for (let i = 0; i < (list.Pairs?.Count ?? 0); i++) {
    const { Name, Value } = the(list.Pairs?.getItem$1(i).Element$1);
    items.push(`${JSON.stringify(String(Name?.Value ?? ""))}:${jsonOf(the(Value), translator)}`);
  }
  for (let i = 0; i < (list.Values?.Count ?? 0); i++) {
    items.push(jsonOf(the(list.Values?.getItem$1(i).Element$1), translator));
  }
  return list.Pairs === undefined ? `[${items.join(",")}]` : `{${items.join(",")}}`;
}

type Listed<T> = { Count: number; getItem$1(index: number): { Element$1: T | null } };
