import { textOf, the, classOf, type SyntaxExpression } from "../bind/library.ts";
import type { Expr } from "../plan/expression.ts";
import type { Translating } from "../scope.ts";
import { boolOf, datetimeOf, insideOf, integerOf, realOf, timespanOf } from "../types/literals.ts";
import { typeOfSymbol } from "../types/types.ts";
import { literal } from "./coerce.ts";

/** The value of a literal of the text. */
export function literalExpr(node: SyntaxExpression, translator: Translating): Expr {
  const type = typeOfSymbol(node.ResultType) ?? "dynamic";
  const text = textOf(node);
  switch (type) {
    case "string":
      return literal("string", String(node.LiteralValue));
    case "bool":
      return literal("bool", boolOf(text));
    case "int":
    case "long":
      return literal(type, integerOf(text));
    case "real":
      return literal("real", realOf(text));
    case "timespan": {
      const ticks = timespanOf(text);
      if (ticks === undefined) throw translator.refuse(`${text} is not a timespan`, node);
      return literal("timespan", ticks);
    }
    case "datetime": {
      const ns = datetimeOf(text);
      if (ns === undefined) throw translator.refuse(`${text} is not a datetime`, node);
      if (ns === "out") throw translator.refuse(`${text} is beyond what a datetime reaches: 1677 to 2262`, node);
      return literal("datetime", ns);
    }
    case "decimal":
    case "guid": {
      const inner = insideOf(text);
      return literal(type, inner === "null" ? null : inner);
    }
    case "dynamic":
      return literal("dynamic", null);
  }
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
    case "PrefixUnaryExpression":
      return `-${jsonOf(the((node as Kusto.Language.Syntax.PrefixUnaryExpression).Expression), translator)}`;
    default: {
      const value = literalExpr(node, translator).constant ?? null;
      if (value === null) return "null";
      const type = typeOfSymbol(node.ResultType);
      if (type === "string" || type === "guid") return JSON.stringify(value);
      if (type === "datetime" || type === "timespan") return JSON.stringify(insideOf(textOf(node)));
      return String(value);
    }
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
