import type { KqlRefused } from "../contract.ts";
import { commaList, expr, raw, sql, type Expr, type Sql } from "../plan/expression.ts";
import { patternOf, type Pattern } from "../patterns/pattern.ts";
import { PatternError } from "../patterns/reader.ts";
import { bound } from "../values/bound.ts";
import { literal, num, str } from "../values/coerce.ts";
import { jsonIn } from "../values/literal-nodes.ts";
import { fromText } from "./conversions.ts";
import type { Call } from "../scope.ts";
import { typeOfSymbol } from "../types/types.ts";
import { arg, fn, type FunctionTable } from "./table.ts";

type Refuse = (message: string) => KqlRefused;

/** The regular expression of an argument; one that is not known while translating cannot be put into RE2's dialect. */
export function patternIn({ constant }: Expr, refuse: Refuse): Pattern {
  if (typeof constant !== "string") throw refuse("a regular expression is expected to be a constant");
  return readPattern(constant, refuse);
}

/** A text as a regular expression; refuses what is none. */
export function readPattern(text: string, refuse: Refuse): Pattern {
  try {
    return patternOf(text);
  } catch (error) {
    if (error instanceof PatternError) throw refuse(error.message);
    throw error;
  }
}

/** A text in which the pattern is looked for. */
export function subject(value: Expr, { hasWordBoundary }: Pick<Pattern, "hasWordBoundary">): Sql {
  return hasWordBoundary ? bound([str(value)], (one) => sql`kql_ascii_words(${one})`) : sql`${str(value)}`;
}

function quoted(re2: string): Expr {
  return literal("string", re2);
}

/** `matches regex`. */
export function matchesRegex(text: Expr, regex: Expr, refuse: Refuse): Expr {
  const pattern = patternIn(regex, refuse);
  return expr("bool", sql`regexp_matches(${raw(subject(text, pattern))}, ${quoted(searched(pattern))})`, {
    nullable: false,
  });
}

/** DuckDB reads `a^` and `$$` as plain texts with an anchor; in a group it leaves them to RE2. */
function searched({ re2 }: Pattern): string {
  const inner = re2.replace(/^(?:\^|\\A)/u, "").replace(/(?:\$|\\z)$/u, "");
  return /[\^$]|\\[Az]/u.test(inner) ? `(${re2})` : re2;
}

/** Functions over strings that take regular expressions. */
export const PATTERNS: FunctionTable = {
  extract: { special: extract },
  extract_all: fn(extractAll),
  extractall: fn(extractAll),
  replace_regex: fn(replaceRegex),
  replace: fn((args, call) => replaceRegex([arg(args, 2), arg(args, 0), arg(args, 1)], call)),
  trim: fn((args, { refuse }) => {
    const pattern = patternIn(arg(args, 0), refuse);
    const text = sql`regexp_replace(${raw(subject(arg(args, 1), pattern))}, ${quoted(`\\A(?:${pattern.re2})+`)}, '')`;
    return expr("string", sql`regexp_replace(${text}, ${quoted(`(?:${pattern.re2})+\\z`)}, '')`, { nullable: false });
  }),
  trim_start: fn((args, { refuse }) => trimmed(args, refuse, (re2) => `\\A(?:${re2})`)),
  trim_end: fn((args, { refuse }) => trimmed(args, refuse, (re2) => `(?:${re2})\\z`)),
  indexof_regex: fn(indexOfRegex),
  regex_quote: fn((args) => {
    const special = quoted("[\\\\.+*?()|\\[\\]{}^$#&~-]");
    return expr("string", sql`regexp_replace(${str(arg(args, 0))}, ${special}, '\\\\\\0', 'g')`, { nullable: false });
  }),
};

/** How often a pattern is found, for `countof()`. */
export function countOfRegex(text: Expr, regex: Expr, refuse: Refuse): Expr {
  const pattern = patternIn(regex, refuse);
  const found = sql`regexp_extract_all(${raw(subject(text, pattern))}, ${quoted(pattern.re2)})`;
  return expr("long", sql`len(${found})`, { nullable: false });
}

function trimmed(args: readonly Expr[], refuse: Refuse, anchored: (re2: string) => string): Expr {
  const pattern = patternIn(arg(args, 0), refuse);
  const own = sql`regexp_replace(${raw(subject(arg(args, 1), pattern))}, ${quoted(anchored(pattern.re2))}, '')`;
  return expr("string", own, { nullable: false });
}

function extract({ argumentNodes, scope, translator, refuse, node }: Call): Expr {
  const [regex, group, source] = argumentNodes.slice(0, 3).map((one) => translator.scalar(one, scope));
  if (regex === undefined || group === undefined || source === undefined)
    throw refuse("extract() takes three arguments");
  const pattern = patternIn(regex, refuse);
  const number = groupNumber(group, pattern, refuse);
  // Only this of DuckDB's functions knows more than nine groups.
  const all = sql`regexp_extract_all(${raw(subject(source, pattern))}, ${quoted(pattern.re2)}, ${number})`;
  const one = sql`regexp_extract(${raw(subject(source, pattern))}, ${quoted(pattern.re2)}, ${number})`;
  const text = expr("string", number > 9 ? sql`coalesce(${all}[1], '')` : one, { nullable: false });
  const type = argumentNodes.length > 3 ? typeOfSymbol(node.ResultType) : "string";
  if (type === undefined) throw refuse("the type of extract() is not known");
  return fromText(text, type);
}

function groupNumber({ constant }: Expr, pattern: Pattern, refuse: Refuse): number {
  const number = Number(constant);
  if (typeof constant !== "bigint") throw refuse("the number of a group is expected to be a constant");
  if (number < 0 || number > pattern.groups.length) throw refuse(`the regular expression has no group ${number}`);
  return number;
}

function extractAll(args: readonly Expr[], { refuse }: Call): Expr {
  const pattern = patternIn(arg(args, 0), refuse);
  if (pattern.groups.length === 0) throw refuse("the regular expression of extract_all() needs a group in parentheses");
  const numbers = args.length > 2 ? groupsOf(arg(args, 1), pattern, refuse) : pattern.groups.map((_, i) => i + 1);
  const text = subject(arg(args, args.length - 1), pattern);
  const lists = numbers.map((number) => {
    const found = sql`regexp_extract_all(${raw(text)}, ${quoted(pattern.re2)}, ${number})`;
    return sql`list_transform(${found}, lambda part: coalesce(part, ''))`;
  });
  const [first] = lists;
  if (first === undefined) throw refuse("extract_all() is given no groups");
  if (lists.length === 1) return expr("dynamic", sql`kql_found(${first})`);
  const rows = sql`list_transform(list_zip(${commaList(lists)}), lambda found: ${rowOf(lists.length)})`;
  return expr("dynamic", sql`kql_found(${rows})`);
}

/** The members of a struct without names as a list. */
function rowOf(size: number): string {
  return `[${Array.from({ length: size }, (_, i) => `found[${i + 1}]`).join(", ")}]`;
}

function groupsOf({ constant }: Expr, pattern: Pattern, refuse: Refuse): number[] {
  const members = jsonIn(constant);
  if (!Array.isArray(members)) throw refuse("the groups of extract_all() are expected to be a constant array");
  return members.map((member: unknown) => {
    const number = typeof member === "string" ? pattern.groups.indexOf(member) + 1 : Number(member);
    if (number >= 1 && number <= pattern.groups.length && Number.isInteger(number)) return number;
    if (typeof member !== "string" && !Number.isInteger(member)) {
      throw refuse("the groups of extract_all() are numbers and names");
    }
    throw refuse(`the regular expression has no group ${String(member)}`);
  });
}

function replaceRegex(args: readonly Expr[], { refuse }: Call): Expr {
  const pattern = patternIn(arg(args, 1), refuse);
  const own = sql`regexp_replace(${raw(subject(arg(args, 0), pattern))}, ${quoted(pattern.re2)}, ${rewriteOf(arg(args, 2), pattern, refuse)}, 'g')`;
  return expr("string", own, { nullable: false });
}

/** A backslash means something before a digit only; RE2 has nine groups in a rewrite. */
function rewriteOf(value: Expr, { groups }: Pattern, refuse: Refuse): Expr {
  const { constant } = value;
  if (typeof constant !== "string") return expr("string", sql`kql_rewrite(${str(value)})`, { nullable: false });
  const rewrite = constant.replaceAll(/\\(\d+)?/gu, (_, digits: string | undefined) => {
    if (digits === undefined) return "\\\\";
    if (Number(digits) > Math.min(groups.length, 9)) throw refuse(`the rewrite has no group ${digits}`);
    return `\\${digits}`;
  });
  return quoted(rewrite);
}

function indexOfRegex(args: readonly Expr[], { refuse }: Call): Expr {
  const pattern = patternIn(arg(args, 1), refuse);
  const text = expr("string", subject(arg(args, 0), pattern), { nullable: false });
  const numbers = [args[2] ?? literal("long", 0n), args[3] ?? literal("long", -1n), args[4] ?? literal("long", 1n)];
  const own = bound([text, ...numbers.map((one) => num(one, "long"))], ([value, ...bounds]) => {
    const window = sql`kql_window(${arg(value === undefined ? [] : [value], 0)}, ${bounds.slice(0, 2)})`;
    const parts = sql`regexp_split_to_array(${window}, ${quoted(pattern.re2)})`;
    const found = sql`regexp_extract_all(${window}, ${quoted(pattern.re2)})`;
    const before = sql`regexp_extract(${window}, ${quoted(`\\A((?s:.*?))(?:${pattern.re2})`)}, 1)`;
    return sql`kql_indexof_regex(${parts}, ${found}, ${before}, ${bounds})`;
  });
  return expr("long", own);
}
