import { elementsOf, textOf, the, type SyntaxExpression } from "../bind/library.ts";
import { quoteText } from "../../../io/duckdb/duckdb.ts";
import { columnExpr, expr, sql, type Expr } from "../plan/expression.ts";
import { computed, type Named, type Rel } from "../plan/rel.ts";
import type { KqlRefused } from "../contract.ts";
import type { OperatorContext } from "../scope.ts";
import { literal, str } from "../values/coerce.ts";
import { readPattern, subject } from "../functions/patterns.ts";
import type { Pattern } from "../patterns/pattern.ts";
import { boundColumns } from "./columns.ts";
import { refuseTaken, valueOf } from "./parse.ts";
import { operator, type OperatorTable } from "./table.ts";

/** `parse-kv`: values of a text by the keys in front of them. */
export const KEY_PARSERS: OperatorTable = {
  ParseKvOperator: operator<Kusto.Language.Syntax.ParseKvOperator>((node, input, context) => {
    const { translator, scope } = context;
    const keys = boundColumns(node).slice(input.columns.length);
    refuseTaken(keys, input, (message) => translator.refuse(message, node));
    const text = computed(input, [{ name: "text", value: str(translator.scalar(the(node.Expression), scope)) }]);
    const { rel, valueFor } = pairsOf(text.rel, columnExpr(the(text.columns[0])), optionsOf(node, context));
    const values = keys.map(({ name, type }) => ({ name, value: valueOf(valueFor(name), type) }));
    const made = computed(rel, values);
    const added = keys.map(({ name }, i): Named => ({ name, column: the(made.columns[i]) }));
    return made.rel.showing([...input.columns, ...added]);
  }),
};

type Options =
  | { mode: "regex"; pattern: Pattern }
  | { mode: "words"; quotes: Quotes }
  | { mode: "pairs"; pair: string; kv: string; isGreedy: boolean; quotes: Quotes };

/** Of quoted texts: what one looks like, and what is escaped in it. */
type Quotes = { quoted: string | undefined; escaped: string };

function optionsOf(node: Kusto.Language.Syntax.ParseKvOperator, { translator, scope }: OperatorContext): Options {
  const given = new Map<string, string[]>();
  for (const { Name, Expression } of elementsOf<Kusto.Language.Syntax.NamedParameter>(node.WithClause?.Properties)) {
    const name = (Name?.SimpleName ?? textOf(Name)).toLowerCase();
    const value = String(translator.constant(the<SyntaxExpression>(Expression), scope) ?? "");
    given.set(name, [...(given.get(name) ?? []), value]);
  }
  const [regex, pair, kv] = ["regex", "pair_delimiter", "kv_delimiter"].map((name) => given.get(name)?.[0]);
  const refuse = (message: string): KqlRefused => translator.refuse(`parse-kv: ${message}`, node.WithClause);
  if (regex !== undefined) {
    const pattern = readPattern(regex, refuse);
    if (pattern.groups.length !== 2) throw refuse("the regular expression must have two groups");
    return { mode: "regex", pattern };
  }
  const quotes = quotesOf(given.get("quote") ?? [], given.get("escape") ?? [], refuse);
  const isGreedy = given.get("greedy")?.[0] === "true";
  if (pair === undefined && kv === undefined && !isGreedy) return { mode: "words", quotes };
  if (pair === undefined || kv === undefined || pair === "" || kv === "") {
    throw refuse("pair_delimiter and kv_delimiter go together");
  }
  return { mode: "pairs", pair: escapedText(pair), kv: escapedText(kv), isGreedy, quotes };
}

function quotesOf(quotes: readonly string[], escapes: readonly string[], refuse: (message: string) => Error): Quotes {
  for (const quote of quotes) {
    if (Array.from(quote).length < 1 || Array.from(quote).length > 2) throw refuse("a quote is one character, or two");
  }
  if (escapes.some((escape) => Array.from(escape).length !== 1)) throw refuse("an escape is one character");
  const escape = escapes.length === 0 ? NOTHING : `[${escapes.map(escapedText).join("")}]`;
  const inner = escapes.map(escapedText).join("");
  const forms = quotes.map((quote) => {
    const [open = "", close = open] = Array.from(quote, escapedText);
    return `${open}(?:${escape}[\\s\\S]|[^${close}${inner}])*${close}`;
  });
  return { quoted: forms.length === 0 ? undefined : forms.join("|"), escaped: `${escape}([\\s\\S])` };
}

/** Matches no text. */
const NOTHING = "[^\\x00-\\x{10FFFF}]";

function escapedText(text: string): string {
  return text.replace(/[\\^$.|?+*()[\]{}-]/g, "\\$&");
}

/** The rows with all pairs beside them, and how to find the value of a key there. */
function pairsOf(rel: Rel, text: Expr, options: Options): { rel: Rel; valueFor: (name: string) => Expr } {
  const { pairs, find } = listOf(rel, text, options);
  const made = computed(pairs.rel, [{ name: "pairs", value: pairs.value }]);
  const list = columnExpr(the(made.columns[0]));
  const valueFor = (name: string): Expr => expr("string", sql`${find}(${list}, ${literal("string", name)})`);
  return { rel: made.rel, valueFor };
}

type List = { pairs: { rel: Rel; value: Expr }; find: string };

function listOf(rel: Rel, text: Expr, options: Options): List {
  if (options.mode === "regex") {
    const value = expr(
      "dynamic",
      sql`kql_kv_matches(${subject(text, options.pattern)}, ${quoteText(options.pattern.re2)})`,
    );
    return { pairs: { rel, value }, find: "kql_kv_value" };
  }
  const { quoted = NOTHING, escaped } = options.quotes;
  const unquoting = `${quoteText(quoted)}, ${quoteText(escaped)}`;
  if (options.mode === "words") {
    const word = quoteText(`(?:${quoted})|[\\p{L}\\p{N}]+`);
    const value = expr("dynamic", sql`kql_kv_words(regexp_extract_all(${text}, ${word}), ${unquoting})`);
    return { pairs: { rel, value }, find: "kql_kv_next" };
  }
  const { pair, kv, isGreedy } = options;
  const any = options.quotes.quoted === undefined ? "[\\s\\S]" : `(?:${quoted}|[\\s\\S])`;
  const piece = quoteText(`(${any}*?)(?:${pair}|\\z)`);
  const both = quoteText(`\\A\\s*(${any}*?)\\s*${kv}\\s*([\\s\\S]*?)\\s*\\z`);
  const pieces = computed(rel, [
    { name: "pieces", value: expr("dynamic", sql`regexp_extract_all(${text}, ${piece}, 1)`) },
  ]);
  const list = columnExpr(the(pieces.columns[0]));
  const delimiter = quoteText(pair.replace(/\\(.)/gs, "$1"));
  const merged = isGreedy ? sql`kql_kv_merged(${list}, ${both}, ${delimiter})` : list.sql;
  const value = expr("dynamic", sql`kql_kv_pairs(${merged}, ${both}, ${unquoting})`);
  return { pairs: { rel: pieces.rel, value }, find: "kql_kv_value" };
}
