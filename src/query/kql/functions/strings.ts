import { commaList, expr, sql, type Expr, type Sql } from "../plan/expression.ts";
import type { Call } from "../scope.ts";
import { bound } from "../values/bound.ts";
import { dyn, literal, num, str } from "../values/coerce.ts";
import { countOfRegex } from "./patterns.ts";
import { arg, fn, type FunctionRule, type FunctionTable } from "./table.ts";

/** Functions over strings. */
export const STRINGS: FunctionTable = {
  strlen: fn((args) => expr("long", sql`length(${str(arg(args, 0))})`, { nullable: false })),
  string_size: fn((args) => expr("long", sql`strlen(${str(arg(args, 0))})`, { nullable: false })),
  tolower: text((value) => sql`lower(${value})`),
  toupper: text((value) => sql`upper(${value})`),
  reverse: text((value) => sql`reverse(${value})`),
  strcat: fn((args) => {
    const parts = args.flatMap((value, i) => [...(i === 0 ? [] : [" || "]), ...sql`${str(value)}`]);
    return expr("string", parts, { nullable: false });
  }),
  strcat_delim: fn((args) => {
    return expr("string", sql`concat_ws(${commaList(args.map((value) => str(value).sql))})`, { nullable: false });
  }),
  strcat_array: fn(strcatArray),
  array_strcat: fn(strcatArray),
  strcmp: fn((args) => {
    return expr(
      "long",
      bound(args.map(str), (both) => sql`kql_strcmp(${both})`),
      { nullable: false },
    );
  }),
  strrep: fn((args) => {
    const delimiter = args[2] === undefined ? literal("string", "") : str(args[2]);
    const values = [str(arg(args, 0)), num(arg(args, 1), "long"), delimiter];
    return expr(
      "string",
      bound(values, (all) => sql`kql_strrep(${all})`),
    );
  }),
  substring: fn(substring),
  split: fn(split),
  replace_string: fn((args) => {
    return expr("string", sql`replace(${args.map(str)})`, { nullable: false });
  }),
  replace_strings: fn((args) => {
    const [value, lookups, rewrites] = [str(arg(args, 0)), dyn(arg(args, 1)), dyn(arg(args, 2))];
    return expr("string", sql`kql_replace_strings(${value}, ${lookups}, ${rewrites})`);
  }),
  translate: fn((args) => {
    return expr(
      "string",
      bound(args.map(str), (all) => sql`kql_translate(${all})`),
      { nullable: false },
    );
  }),
  indexof: fn(indexOf),
  countof: fn(countOf),
  has_any_index: fn((args) => {
    const terms = sql`kql_lower_list(${dyn(arg(args, 1))})`;
    return expr("long", sql`kql_has_any_index(lower(${str(arg(args, 0))}), ${terms})`, { nullable: false });
  }),
  isascii: fn((args) =>
    expr("bool", sql`NOT regexp_matches(${str(arg(args, 0))}, '[^\\x00-\\x7F]')`, { nullable: false }),
  ),
  // A string is always UTF-8 here.
  isutf8: fn(() => literal("bool", true)),
  unicode_codepoints_from_string: fn(codePoints),
  to_utf8: fn(codePoints),
  unicode_codepoints_to_string: fn(textOfCodePoints),
  make_string: fn(textOfCodePoints),
};

/** A string of a string. */
function text(own: (value: Expr) => Sql): FunctionRule {
  return fn((args) => expr("string", own(str(arg(args, 0))), { nullable: false }));
}

function strcatArray(args: readonly Expr[]): Expr {
  const [list, delimiter] = [sql`kql_texts_or_empty(${dyn(arg(args, 0))})`, str(arg(args, 1))];
  // DuckDB's own function wants a constant.
  const isConstant = delimiter.constant !== undefined;
  return expr(
    "string",
    isConstant ? sql`array_to_string(${list}, ${delimiter})` : sql`kql_joined(${list}, ${delimiter})`,
  );
}

function substring(args: readonly Expr[]): Expr {
  const [value, first, size] = [str(arg(args, 0)), num(arg(args, 1), "long"), args[2]];
  if (typeof first.constant === "bigint" && first.constant >= 0n && size === undefined) {
    return expr("string", sql`substring(${value}, ${String(first.constant + 1n)})`, { nullable: false });
  }
  const most = size === undefined ? literal("long", 2_147_483_647n) : num(size, "long");
  return expr(
    "string",
    bound([value, first, most], (all) => sql`kql_substring(${all})`),
  );
}

function split(args: readonly Expr[], { refuse }: Call): Expr {
  const delimiter = str(arg(args, 1));
  if (delimiter.constant === "") throw refuse("the delimiter of split() is empty");
  const parts = sql`string_split(${str(arg(args, 0))}, ${delimiter})`;
  const index = args[2];
  if (index === undefined) return expr("dynamic", sql`to_json(${parts})`, { nullable: false });
  return expr("dynamic", sql`to_json(kql_split_at(${parts}, ${num(index, "long")}))`);
}

function indexOf(args: readonly Expr[]): Expr {
  const [value, wanted] = [str(arg(args, 0)), str(arg(args, 1))];
  if (args.length === 2) return expr("long", sql`instr(${value}, ${wanted}) - 1`, { nullable: false });
  const [first, most, n] = [
    args[2] ?? literal("long", 0n),
    args[3] ?? literal("long", -1n),
    args[4] ?? literal("long", 1n),
  ];
  const values = [value, wanted, num(first, "long"), num(most, "long"), num(n, "long")];
  return expr(
    "long",
    bound(values, (all) => sql`kql_indexof(${all})`),
  );
}

function countOf(args: readonly Expr[], { refuse }: Call): Expr {
  const [value, wanted, kind] = [str(arg(args, 0)), str(arg(args, 1)), args[2]?.constant ?? "normal"];
  if (kind === "regex") return countOfRegex(value, wanted, refuse);
  if (kind !== "normal") throw refuse('the kind of countof() is "normal" or "regex"');
  const overlaps = typeof wanted.constant !== "string" || canOverlap(wanted.constant);
  const macro = overlaps ? "kql_countof_overlapping" : "kql_countof";
  const count = bound([value, wanted], (both) => sql`${macro}(${both})`);
  return expr("long", count, { nullable: false });
}

/** Whether a text may begin inside of itself. */
function canOverlap(wanted: string): boolean {
  return Array.from({ length: wanted.length - 1 }, (_, i) => i + 1).some((i) => wanted.startsWith(wanted.slice(i)));
}

function codePoints(args: readonly Expr[]): Expr {
  return expr("dynamic", sql`to_json(kql_codepoints(${str(arg(args, 0))}))`, { nullable: false });
}

function textOfCodePoints(args: readonly Expr[]): Expr {
  const lists = args.map((value) =>
    value.type === "dynamic" ? sql`kql_longs(${value})` : sql`[${num(value, "long")}]`,
  );
  return expr("string", sql`kql_text_of_codepoints(list_concat(${commaList(lists)}))`);
}
