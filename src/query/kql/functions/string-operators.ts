import { expr, sql, type Expr, type Sql } from "../plan/expression.ts";
import { bound } from "../values/bound.ts";
import { str } from "../values/coerce.ts";
import type { BinaryRule } from "./table.ts";
import { matchesRegex } from "./patterns.ts";

/** Tests of strings, with their negations: `has`, `contains`, `startswith`, …; a `Cs` minds upper and lower case. */
export const STRING_OPERATORS: Readonly<Record<string, BinaryRule | undefined>> = {
  EqualTilde: (left, right) => test(sql`lower(${str(left)}) = lower(${str(right)})`),
  BangTilde: (left, right) => test(sql`lower(${str(left)}) <> lower(${str(right)})`),
  ...both("Contains", "Cs", (text, part) => sql`contains(${text}, ${part})`),
  ...both("StartsWith", "Cs", (text, part) => sql`starts_with(${text}, ${part})`),
  ...both("EndsWith", "Cs", (text, part) => sql`ends_with(${text}, ${part})`),
  ...both("Has", "Cs", hasSql),
  ...both("HasPrefix", "Cs", (text, part) => twice(text, part, "kql_hasprefix")),
  ...both("HasSuffix", "Cs", (text, part) => twice(text, part, "kql_hassuffix")),
  MatchRegex: (left, right, { refuse }) => matchesRegex(left, right, refuse),
};

function hasSql(text: Expr, part: Expr): Sql {
  return twice(text, part, "kql_has");
}

/** A macro that mentions both of its arguments more than once. */
function twice(text: Expr, part: Expr, macro: string): Sql {
  return bound([text, part], (both) => sql`${macro}(${both})`);
}

/** `has`, without regard to case. */
export function hasTerm(value: Expr, term: Expr): Expr {
  return test(hasSql(folded(value), folded(term)));
}

function folded(value: Expr): Expr {
  return expr("string", sql`lower(${str(value)})`, { nullable: false });
}

type Test = (text: Expr, part: Expr) => Sql;

function test(own: Sql): Expr {
  return expr("bool", own, { nullable: false });
}

function not(rule: BinaryRule): BinaryRule {
  return (left, right, call) => test(sql`NOT ${rule(left, right, call)}`);
}

/** The four forms: as it is and negated, with and without regard to case. */
function both(name: string, suffix: "Cs", own: Test): Record<string, BinaryRule> {
  const plain: BinaryRule = (left, right) => searched(left, right, own(folded(left), folded(right)), isCaseless);
  const cased: BinaryRule = (left, right) => searched(left, right, own(str(left), str(right)), isAny);
  return {
    [name]: plain,
    [`${name}${suffix}`]: cased,
    [`Not${name}`]: not(plain),
    [`Not${name}${suffix}`]: not(cased),
  };
}

/** A text that is known is somewhere in every value that is found: that, of the bare column, is what pruning reads. */
function searched(value: Expr, part: Expr, own: Sql, isExact: (text: string) => boolean): Expr {
  const { constant } = part;
  if (typeof constant !== "string" || constant === "" || value.type !== "string" || !isExact(constant))
    return test(own);
  const filter = sql`contains(${value}, ${part}) AND ${own}`;
  return expr("bool", own, { nullable: false, filter });
}

function isAny(): boolean {
  return true;
}

/** Whether the text is the same in upper and lower case. */
function isCaseless(text: string): boolean {
  return text.toLowerCase() === text.toUpperCase();
}
