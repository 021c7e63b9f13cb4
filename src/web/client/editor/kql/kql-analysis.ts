import { kqlLibrary, listed } from "./kql-library.ts";
import { narrow, type Narrowing } from "./kql-narrowing.ts";
import { partAt, partsOf } from "./kql-parts.ts";
import {
  UNKNOWN_TABLES,
  type KqlAnswers,
  type KqlCompletion,
  type KqlCompletionKind,
  type KqlCompletions,
  type KqlProblem,
  type KqlTable,
  type KqlText,
} from "./kql-protocol.ts";
import { kqlColumnType } from "./kql-types.ts";
import {
  REFUSED_AGGREGATES,
  REFUSED_FUNCTIONS,
  REFUSED_OPERATORS,
  REFUSED_PLUGINS,
  REFUSED_SOURCES,
} from "./refused-names.ts";

type Globals = Kusto.Language.GlobalState;
type Diagnostic = Kusto.Language.Diagnostic;
type Node = Kusto.Language.Syntax.SyntaxElement;
type Analysis = { code: Kusto.Language.KustoCode; service: Kusto.Language.Editor.KustoCodeService };
type TableSymbol = Kusto.Language.Symbols.TableSymbol;
type Schema = {
  names: readonly string[];
  columns: Map<string, KqlTable>;
  tables: Map<string, TableSymbol>;
  globals?: Globals;
};

/** Of texts that were analysed: a completion, the marks and what is under the pointer are asked of the same. */
const KEPT_ANALYSES = 8;
const LONGEST_DESCRIPTION = 400;
/** As the server: the parser takes seconds for more. */
const MAX_DEPTH = 500;

/** Texts in KQL, read by the language service against the tables of their databases. One for a worker. */
export class KqlAnalysis {
  readonly #schemas = new Map<number, Schema>([[UNKNOWN_TABLES, schemaOf([])]]);
  readonly #kept = new Map<string, Analysis | undefined>();

  /** All tables of a database by their names. Until its columns are told, any column of a table may be meant. */
  setTables(schema: number, names: readonly string[]): void {
    this.#schemas.set(schema, schemaOf(names));
    this.#kept.clear();
  }

  /** The columns of some of these tables. */
  addColumns(schema: number, tables: readonly KqlTable[]): void {
    const known = this.#schemaOf(schema);
    for (const table of tables) {
      known.columns.set(table.name, table);
      known.tables.set(table.name, tableSymbol(table));
    }
    delete known.globals;
    this.#kept.clear();
  }

  forget(schema: number): void {
    this.#schemas.delete(schema);
    this.#kept.clear();
  }

  /** What may stand at a place of the text. */
  complete(text: KqlText, at: number): KqlAnswers["complete"] {
    const part = partAt(partsOf(text.text, text.isScript), at);
    const place = at - part.from;
    const before = part.text.slice(0, place);
    const [typed = ""] = /[\p{L}_][\p{L}\p{N}_]*$/u.exec(before) ?? [];
    const { analysis, isWhole } = this.#analysisFor(text.schema, part.text, typed);
    const found = completionsOf(analysis(part.text), place);
    const [word = ""] = /[a-z_]+$/i.exec(before) ?? [];
    const { from, to, options } =
      found.options.length > 0 || word === ""
        ? found
        : // The beginning of a name may be a word of the language, `in` of `inside`, behind which other things stand.
          completionsOf(
            analysis(before.slice(0, place - word.length) + "_".repeat(word.length) + part.text.slice(place)),
            place,
          );
    return { from: part.from + from, to: part.from + to, options, ...(isWhole !== undefined && { typed, isWhole }) };
  }

  /** What reads texts like this one for a list of completions; `isWhole` where large tables are narrowed for it. */
  #analysisFor(
    schema: number,
    text: string,
    typed: string,
  ): { analysis: (text: string) => Analysis | undefined; isWhole?: boolean } {
    const known = this.#schemaOf(schema);
    const narrowing = narrow([...known.columns.values()], text, typed);
    if (narrowing === undefined) return { analysis: (one) => this.#analysisOf(schema, one) };
    let globals: Globals | undefined;
    const made = () => (globals ??= globalsOf(known, narrowing));
    return { analysis: (one) => (isReadable(one) ? analyse(made(), one) : undefined), isWhole: narrowing.isWhole };
  }

  /** What the server would refuse of each query of the text. */
  problems({ text, schema, isScript }: KqlText): KqlProblem[] {
    return partsOf(text, isScript).flatMap((part) => {
      return this.#problemsOf(schema, part.text).map(({ from, to, message, severity }) => {
        return { from: part.from + from, to: part.from + to, message, severity };
      });
    });
  }

  /** What the name at the place means: a column with its type, a function with its parameters. */
  describe(text: KqlText, at: number): KqlAnswers["describe"] {
    const part = partAt(partsOf(text.text, text.isScript), at);
    const options = kqlLibrary().Editor.QuickInfoOptions.Default?.WithShowDiagnostics(false) ?? null;
    const service = this.#analysisOf(text.schema, part.text)?.service;
    const about = service?.GetQuickInfo(at - part.from, options)?.Text ?? "";
    const element = service?.GetElement(at - part.from);
    if (about === "" || element === undefined || element.Length === 0) return undefined;
    const from = part.from + element.Start;
    const described = about.length > LONGEST_DESCRIPTION ? `${about.slice(0, LONGEST_DESCRIPTION)}…` : about;
    return { from, to: from + element.Length, text: described };
  }

  #problemsOf(schema: number, text: string): KqlProblem[] {
    const start = text.length - text.replace(BLANK, "").length;
    if (start === text.length) return [];
    if (text[start] === ".") {
      const message = "Management commands are not supported.";
      return [{ from: start, to: start + 1, message, severity: "error" }];
    }
    const analysis = this.#analysisOf(schema, text);
    if (analysis === undefined) return [];
    const { code } = analysis;
    // Recovery from a mistake in the syntax makes further ones: only the first is meant.
    const syntax = errorsOf(code.GetSyntaxDiagnostics()).slice(0, 1);
    const severity = syntax.length > 0 ? "error" : "warning";
    const bound = schema === UNKNOWN_TABLES ? [] : errorsOf(code.GetDiagnostics());
    return (syntax.length > 0 ? syntax : bound)
      .filter((one) => one.Code !== INTERNAL && !isMistaken(one, code.Syntax))
      .map(({ Start, Length, Message }) => {
        const from = Math.min(Start, text.length);
        return { from, to: Math.min(from + Length, text.length), message: Message ?? "", severity };
      });
  }

  /** Undefined for a text that is not read. */
  #analysisOf(schema: number, text: string): Analysis | undefined {
    const key = `${schema} ${text}`;
    if (this.#kept.has(key)) return this.#kept.get(key);
    const made = isReadable(text) ? analyse(this.#globalsOf(schema), text) : undefined;
    this.#kept.set(key, made);
    for (const old of [...this.#kept.keys()].slice(0, -KEPT_ANALYSES)) this.#kept.delete(old);
    return made;
  }

  #globalsOf(schema: number): Globals {
    const known = this.#schemaOf(schema);
    known.globals ??= globalsOf(known);
    return known.globals;
  }

  #schemaOf(schema: number): Schema {
    const known = this.#schemas.get(schema);
    if (known === undefined) throw new Error(`the tables of schema ${schema} were not told`);
    return known;
  }
}

function schemaOf(names: readonly string[]): Schema {
  return { names, columns: new Map(), tables: new Map() };
}

/** The language over the tables of a database; narrowed, with fewer functions, and fewer columns of tables that were told. */
function globalsOf({ names, tables }: Schema, narrowing?: Narrowing): Globals {
  const narrowed = new Map(narrowing?.tables.map((table) => [table.name, table]));
  const symbolOf = (name: string): TableSymbol => {
    const table = narrowed.get(name);
    if (table !== undefined) return tableSymbol(table);
    // Until its columns are told, a table may have any.
    const symbol = tables.get(name) ?? openTable(name);
    tables.set(name, symbol);
    return symbol;
  };
  const database = new (kqlLibrary().Symbols.DatabaseSymbol.ctor)("engine", names.map(symbolOf));
  const made = language(narrowing?.isWanted)?.WithDatabase(database) ?? null;
  if (made === null) throw new Error("the KQL language service has no state for a database");
  return made;
}

function analyse(globals: Globals, text: string): Analysis | undefined {
  const { KustoCode, Editor } = kqlLibrary();
  const code = KustoCode.ParseAndAnalyze(text, globals);
  return code === null ? undefined : { code, service: new Editor.KustoCodeService.ctor(code) };
}

function completionsOf(analysis: Analysis | undefined, at: number): Pick<KqlCompletions, "from" | "to" | "options"> {
  const options = kqlLibrary()
    .Editor.CompletionOptions.Default?.WithAutoAppendWhitespace(false)
    ?.WithIncludePunctuationOnlySyntax(false)
    ?.WithEnableParameterInjection(false);
  const info = analysis?.service.GetCompletionItems(at, options ?? null);
  if (info === null || info === undefined) return { from: at, to: at, options: [] };
  const items = listed<Kusto.Language.Editor.CompletionItem>(info.Items);
  return {
    from: info.EditStart,
    to: info.EditStart + info.EditLength,
    options: items.flatMap((item) => completionOf(item) ?? []),
  };
}

/** What the service says of a text that it fails to analyse, without a place. */
const INTERNAL = "KS246";
const BLANK = /^\s*(?:\/\/[^\n]*\s*)*/;
const BRACKET_OR_QUOTED = /[([{}\])]|\/\/[^\n]*|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'/g;

function isReadable(text: string): boolean {
  const bare = text.replace(BLANK, "");
  if (bare.startsWith(".")) return false;
  let depth = 0;
  for (const [token] of text.matchAll(BRACKET_OR_QUOTED)) {
    if ("([{".includes(token)) depth++;
    else if (")]}".includes(token)) depth--;
    if (depth > MAX_DEPTH) return false;
  }
  return true;
}

type Named = { Name: string | null };
type Supported = { all: Globals | null | undefined; functions: readonly Named[]; aggregates: readonly Named[] };

let supported: Supported | undefined;

function without(list: { Count: number } | null, refused: ReadonlySet<string>): Named[] {
  return listed<Named>(list).filter(({ Name }) => !refused.has(Name ?? ""));
}

/** The language without what the server refuses; of its functions only those that are wanted. */
function language(isWanted?: (name: string) => boolean): Globals | null | undefined {
  const { GlobalState, Functions, Aggregates, PlugIns } = kqlLibrary();
  if (supported === undefined) {
    const functions = without(Functions.All, REFUSED_FUNCTIONS);
    const aggregates = without(Aggregates.All, REFUSED_AGGREGATES);
    // The service takes arrays where its types ask for lists of .NET's.
    const all = GlobalState.Default?.WithFunctions(functions as never)
      ?.WithAggregates(aggregates as never)
      ?.WithPlugIns(without(PlugIns.All, REFUSED_PLUGINS) as never);
    supported = { all, functions, aggregates };
  }
  if (isWanted === undefined) return supported.all;
  const wanted = (all: readonly Named[]): never => all.filter(({ Name }) => isWanted(Name ?? "")) as never;
  return supported.all?.WithFunctions(wanted(supported.functions))?.WithAggregates(wanted(supported.aggregates));
}

function tableSymbol({ name, columns }: KqlTable): Kusto.Language.Symbols.TableSymbol {
  const { Symbols } = kqlLibrary();
  return new Symbols.TableSymbol.$ctor4(
    name,
    columns.map(({ name: column, type }) => {
      const symbol = Symbols.ScalarTypes.GetSymbol(kqlColumnType(type) ?? "dynamic");
      return new Symbols.ColumnSymbol(column, symbol, null, null, null, null);
    }),
  );
}

function openTable(name: string): Kusto.Language.Symbols.TableSymbol {
  const table = new (kqlLibrary().Symbols.TableSymbol.$ctor4)(name, []).WithIsOpen(true);
  if (table === null) throw new Error(`the KQL language service makes no table ${name}`);
  return table;
}

function errorsOf(list: { Count: number } | null): Diagnostic[] {
  return listed<Diagnostic>(list)
    .filter(({ Severity }) => Severity === "Error")
    .toSorted((a, b) => a.Start - b.Start);
}

/** The class of a node, without its namespace. */
function classOf(node: object): string {
  const { $$name: name = "" } = node.constructor as { $$name?: string };
  return name.slice(name.lastIndexOf(".") + 1);
}

/**
 * Errors of the service that the server does not share: it takes fractions of seconds in `make_timespan()`, and all four
 * arguments of `bag_unpack()`.
 */
function isMistaken({ Code, Start }: Diagnostic, root: Kusto.Language.Syntax.SyntaxNode | null): boolean {
  if (Code !== "KS134" && Code !== "KS119" && Code !== "KS107") return false;
  let node: Node | null = root?.GetTokenAt(Start) ?? null;
  while (node !== null && classOf(node) !== "FunctionCallExpression") node = node.Parent;
  if (node === null) return false;
  const { Name, ArgumentList } = node as Kusto.Language.Syntax.FunctionCallExpression;
  const args = listed<{ Element$1: Node | null }>(ArgumentList?.Expressions).map(({ Element$1: argument }) => argument);
  if (Name?.SimpleName === "bag_unpack") return Code !== "KS134" && args.length > 0 && args.length <= 4;
  return Code === "KS134" && Name?.SimpleName === "make_timespan" && args.at(-1)?.TextStart === Start;
}

/** By the service's numbers; those without a name are of things that this server does not have. */
const KINDS: readonly (KqlCompletionKind | undefined)[] = [
  "keyword",
  "keyword",
  undefined,
  "keyword",
  "variable",
  "keyword",
  "keyword",
  "operator",
  "operator",
  "operator",
  undefined,
  "operator",
  "chart",
  "column",
  "table",
  "function",
  "function",
  "function",
  "aggregate",
  "parameter",
  "variable",
  undefined,
  undefined,
  undefined,
  undefined,
  undefined,
  "type",
  "keyword",
  undefined,
];

function completionOf(item: Kusto.Language.Editor.CompletionItem): KqlCompletion | undefined {
  const kind = KINDS[item.Kind];
  const [label, shown] = [item.MatchText ?? "", item.DisplayText ?? ""];
  if (kind === undefined || label === "") return undefined;
  const isWord = kind === "operator" || kind === "keyword";
  if (isWord && (REFUSED_OPERATORS.has(label) || REFUSED_SOURCES.has(label))) return undefined;
  const written = (item.BeforeText ?? label).replace(/(?<=\() $|(?<=[\w\])]) $/, "");
  // Behind a word of the language comes the next thing to choose, unless a quote, a bracket or `kind=` waits for a value.
  const before = isWord && /[^\s"'([=]$|==$/.test(written) ? `${written} ` : written;
  return {
    label,
    ...(shown !== label && { shown }),
    kind,
    before,
    after: item.AfterText ?? "",
    order: item.OrderText ?? label,
    isContinued: /[( =]$/.test(before),
  };
}
