import type { ColumnType } from "../../../format/types.ts";
import { nearest } from "../../../core/nearest.ts";
import { KqlRefused, TOO_DEEP, type KqlNames, type KqlRequest, type KqlType } from "../contract.ts";
import {
  arrayOf,
  classOf,
  elementsOf,
  library,
  type LanguageSymbol,
  type SyntaxExpression,
  type SyntaxNode,
} from "./library.ts";
import { placeWithout, withInsertions, type Insertion } from "./insertions.ts";

/** A text whose names and types are known. */
export type BoundText = { text: string; insertions: readonly Insertion[]; root: SyntaxNode };

type Diagnostic = { Severity: string; Code: string; Message: string; Start: number; Length: number };

/** The names of tables that a text may mean, before anything is known of them: every name that stands alone. */
export function namesOf(text: string): KqlNames {
  refuseUnread(text);
  const code = library().KustoCode.Parse(text);
  const tables = new Set<string>();
  let needsAllTables = false;
  const visit = (node: SyntaxNode | null): void => {
    if (node === null) return;
    const kind = classOf(node);
    if (kind === "NameReference") tables.add((node as Kusto.Language.Syntax.NameReference).SimpleName ?? "");
    if (kind === "WildcardedName" || kind === "BracketedWildcardedName") needsAllTables = true;
    if (kind === "SearchOperator" || kind === "FindOperator") needsAllTables = true;
    for (let i = 0; i < node.ChildCount; i++) visit(node.GetChild(i) as SyntaxNode | null);
  };
  visit(code?.Syntax ?? null);
  tables.delete("");
  return { tables: [...tables], needsAllTables };
}

/** What needs no parser to be refused: the parser takes seconds for a command, and for brackets in thousands of others. */
function refuseUnread(text: string): void {
  const bare = text.replace(BLANK, "");
  const start = text.length - bare.length;
  if (bare === "") throw new KqlRefused({ code: "parse_error", message: "the query is empty" });
  if (bare.startsWith(".")) {
    throw refusal(text, { code: "invalid_query", message: "management commands are not supported" }, start);
  }
  let depth = 0;
  for (const [token] of text.matchAll(BRACKET_OR_QUOTED)) {
    if ("([{".includes(token)) depth++;
    else if (")]}".includes(token)) depth--;
    if (depth > MAX_DEPTH) throw new KqlRefused({ code: "invalid_query", message: TOO_DEEP });
  }
}

// Loops over single characters in one group would take a stack frame for each of a long literal's.
const BLANK = /^\s*(?:\/\/[^\n]*\s*)*/;
const BRACKET_OR_QUOTED = /[([{}\])]|\/\/[^\n]*|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'/g;
const MAX_DEPTH = 500;
/** The library's code for a text whose syntax is too deep to be analysed. */
const DEPTH_CODE = "KS245";

/**
 * Parses the text and binds its names to the tables; throws `KqlRefused` with the first thing that is wrong with it.
 * `reasonAgainst` says why a node is refused whatever it means: that comes before what the binder says of it.
 */
export function bind(
  request: KqlRequest,
  reasonAgainst: (node: SyntaxNode) => string | undefined,
  insertions: readonly Insertion[],
): BoundText {
  const { text } = request;
  const { GlobalState, Symbols } = library();
  refuseUnread(text);
  const tables = request.tables.map(({ name, columns }) => {
    return new Symbols.TableSymbol.$ctor4(
      name,
      columns.map(
        (column) => new Symbols.ColumnSymbol(column.name, symbolOf(kqlTypeOf(column.type)), null, null, null, null),
      ),
    );
  });
  const database = new Symbols.DatabaseSymbol.ctor("engine", tables);
  const globals = GlobalState.Default?.WithDatabase(database) ?? null;
  const code = analyzed(withInsertions(text, insertions), globals);
  const root = code?.Syntax ?? null;
  if (code === null || root === null)
    throw refusal(text, { code: "parse_error", message: "the query is not understood" });
  const bound = { text, insertions, root };
  refuseFirst(request, bound, arrayOf<Diagnostic>(code.GetSyntaxDiagnostics()), "parse_error");
  refuseNodes(text, root, reasonAgainst);
  const found = arrayOf<Diagnostic>(code.GetDiagnostics()).filter((one) => !isMistaken(one, root));
  refuseFirst(request, bound, found, "invalid_query");
  return bound;
}

/**
 * The library wants whole seconds of `make_timespan()`, where the reference has fractions, and knows two of the four
 * arguments of `bag_unpack()`.
 */
function isMistaken({ Code, Start }: Diagnostic, root: SyntaxNode): boolean {
  if (Code !== "KS134" && Code !== "KS119" && Code !== "KS107") return false;
  let node: Kusto.Language.Syntax.SyntaxElement | null = root.GetTokenAt(Start);
  while (node !== null && classOf(node) !== "FunctionCallExpression") node = node.Parent;
  if (node === null) return false;
  const { Name, ArgumentList } = node as Kusto.Language.Syntax.FunctionCallExpression;
  const args = elementsOf<SyntaxExpression>(ArgumentList?.Expressions);
  if (Name?.SimpleName === "bag_unpack") return Code !== "KS134" && args.length > 0 && args.length <= 4;
  return Code === "KS134" && Name?.SimpleName === "make_timespan" && args.at(-1)?.TextStart === Start;
}

/** The library throws for some texts: `datetime_add(1d, 1, now())`, where a word is expected and another value stands. */
function analyzed(text: string, globals: Kusto.Language.GlobalState | null): Kusto.Language.KustoCode | null {
  try {
    return library().KustoCode.ParseAndAnalyze(text, globals);
  } catch (error) {
    if (error instanceof RangeError) throw error;
    throw new KqlRefused({ code: "invalid_query", message: "the query cannot be analyzed" });
  }
}

function refuseNodes(text: string, node: SyntaxNode, reasonAgainst: (node: SyntaxNode) => string | undefined): void {
  const message = reasonAgainst(node);
  if (message !== undefined) throw refusal(text, { code: "invalid_query", message }, node.TextStart);
  for (let i = 0; i < node.ChildCount; i++) {
    const child = node.GetChild(i);
    if (child !== null && !child.IsToken) refuseNodes(text, child as SyntaxNode, reasonAgainst);
  }
}

function symbolOf(type: KqlType): Kusto.Language.Symbols.ScalarSymbol {
  const symbol = library().Symbols.ScalarTypes.GetSymbol(type);
  if (symbol === null) throw new Error(`KQL has no type ${type}`);
  return symbol;
}

export function kqlTypeOf({ kind }: ColumnType): KqlType {
  if (kind === "timestamp") return "datetime";
  return kind === "vector" ? "dynamic" : kind;
}

/** Recovery from an error makes further ones: only the first in the text is meant. */
function refuseFirst(
  request: KqlRequest,
  { insertions }: BoundText,
  found: readonly Diagnostic[],
  code: "parse_error" | "invalid_query",
): void {
  const errors = found.filter(({ Severity }) => Severity === "Error");
  const [first] = errors.toSorted((a, b) => a.Start - b.Start);
  if (first === undefined) return;
  const message = messageOf(first);
  const start = placeWithout(insertions, first.Start);
  const name = request.text.slice(start, start + first.Length);
  const suggestion = suggestionFor(request, name);
  const length = Math.max(0, Math.min(first.Length, request.text.length - start));
  throw refusal(request.text, { code, message, length, ...(suggestion !== undefined && { suggestion }) }, start);
}

const LONGEST = 300;

/** A message may quote a part of the text, of any length. */
function cut(message: string): string {
  return message.length > LONGEST ? `${message.slice(0, LONGEST)}…` : message;
}

/** The library's sentence, without its full stop. */
function messageOf({ Code: code, Message: message }: Diagnostic): string {
  if (code === DEPTH_CODE) return TOO_DEEP;
  const sentence = cut(message.replace(/\.$/, ""));
  return sentence.charAt(0).toLowerCase() + sentence.slice(1);
}

function suggestionFor({ tables, tableNames }: KqlRequest, name: string): string | undefined {
  if (!/^[\w-]+$/.test(name)) return undefined;
  const { Functions, Aggregates } = library();
  const names = [
    ...tableNames,
    ...tables.flatMap(({ columns }) => columns.map((column) => column.name)),
    ...[...arrayOf<LanguageSymbol>(Functions.All), ...arrayOf<LanguageSymbol>(Aggregates.All)].flatMap(
      ({ Name: own }) => own ?? [],
    ),
    ...OPERATOR_NAMES,
  ];
  return names.includes(name) ? undefined : nearest(name, names);
}

const OPERATOR_NAMES =
  "where filter project project-away project-keep project-rename project-reorder extend summarize count take limit top top-nested top-hitters sort order distinct join lookup union mv-expand mv-apply parse parse-where parse-kv make-series range print render sample sample-distinct serialize partition as invoke getschema search find evaluate".split(
    " ",
  );

/** Places a refusal in the text: lines and columns begin with 1; columns count code points. */
export function refusal(
  text: string,
  failure: Pick<KqlRefused["failure"], "code" | "message" | "length" | "suggestion">,
  start?: number,
): KqlRefused {
  const message = cut(failure.message);
  if (start === undefined) return new KqlRefused({ ...failure, message });
  const before = text.slice(0, start);
  const line = before.split("\n").length;
  const column = Array.from(before.slice(before.lastIndexOf("\n") + 1)).length + 1;
  return new KqlRefused({ ...failure, message, line, column });
}
