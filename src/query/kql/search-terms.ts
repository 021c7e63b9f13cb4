import { KqlRefused } from "./contract.ts";
import { BINARY } from "./functions/operators.ts";
import { columnExpr, expr, sql, type Expr } from "./plan/expression.ts";
import type { Scope } from "./scope.ts";
import { literal, toText } from "./values/coerce.ts";

/** A test of one value; undefined where it means nothing for values of its type. */
type ColumnTest = (value: Expr) => Expr | undefined;

/** Whether the test is true of any column of the rows. */
export function anyColumn({ rel }: Scope, test: ColumnTest): Expr {
  const tests = (rel?.columns ?? []).flatMap(({ column }) => test(columnExpr(column)) ?? []);
  const own = tests.flatMap((one, i) => [...(i === 0 ? [] : [" OR "]), ...sql`coalesce(${one}, false)`]);
  return tests.length === 0 ? literal("bool", false) : expr("bool", own, { nullable: false });
}

/** Operators that may have `*` on their left: what a negated one would mean of several columns is not said. */
const OF_TEXT: ReadonlySet<string> = new Set(
  ["Has", "HasPrefix", "HasSuffix", "Contains", "StartsWith", "EndsWith"].flatMap((name) => [name, `${name}Cs`]),
);

/** `* has "x"`, `* == 5`: whether it is true of any column. Undefined where the operator does not take `*`. */
export function starTest(
  operator: string,
  right: Expr,
  refuse: (message: string) => KqlRefused,
): ColumnTest | undefined {
  const rule = BINARY[operator];
  if (rule === undefined) return undefined;
  const call = { type: "bool", refuse } as const;
  if (OF_TEXT.has(operator) || operator === "MatchRegex") return (value) => rule(toText(value), right, call);
  if (operator !== "Equal" && operator !== "EqualTilde") return undefined;
  return (value) => (kindOf(value) === kindOf(right) ? rule(value, right, call) : undefined);
}

function kindOf({ type }: Expr): string {
  return ["int", "long", "real", "decimal"].includes(type) ? "number" : type;
}

/** What a term of `search` tests: a whole word, the beginning or end of one where a `*` stands, or any part. */
export function termTest(term: string, { isCased = false }: { isCased?: boolean | undefined }): (value: Expr) => Expr {
  const [first, last] = [term.startsWith("*"), term.length > 1 && term.endsWith("*")];
  const inner = term.slice(first ? 1 : 0, last ? -1 : undefined);
  if (inner === "" && first) return () => literal("bool", true);
  const suffix = isCased ? "Cs" : "";
  if (inner.includes("*")) {
    const parts = inner.split("*").map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, "\\$&"));
    return textTest(
      "MatchRegex",
      `${isCased ? "" : "(?i)"}${first ? "" : "\\b"}${parts.join(".*")}${last ? "" : "\\b"}`,
    );
  }
  if (first && last) return textTest(`Contains${suffix}`, inner);
  if (first) return textTest(`HasSuffix${suffix}`, inner);
  return textTest(last ? `HasPrefix${suffix}` : `Has${suffix}`, inner);
}

function textTest(operator: string, text: string): (value: Expr) => Expr {
  const rule = BINARY[operator];
  if (rule === undefined) throw new Error(`there is no operator ${operator}`);
  return (value) => rule(toText(value), literal("string", text), { type: "bool", refuse: refused });
}

function refused(message: string): KqlRefused {
  return new KqlRefused({ code: "invalid_query", message });
}

/** The operator that minds upper and lower case, where there is one. */
export function cased(operator: string): string {
  if (operator === "EqualTilde") return "Equal";
  if (operator === "BangTilde") return "NotEqual";
  return BINARY[`${operator}Cs`] === undefined ? operator : `${operator}Cs`;
}
