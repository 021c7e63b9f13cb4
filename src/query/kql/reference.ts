import { AGGREGATES } from "./aggregates/aggregates.ts";
import { arrayOf, library, type LanguageSymbol } from "./bind/library.ts";
import { SCALAR_FUNCTIONS } from "./functions/functions.ts";
import { BINARY } from "./functions/operators.ts";
import { PLUGINS } from "./operators/evaluate.ts";
import { OPERATORS, SOURCES } from "./operators/operators.ts";

/** What becomes of a name of the language: supported, or refused for a reason; `undefined` where nobody has looked at it. */
export type State = { name: string; refused?: string } | { name: string; isUnknown: true };

/** Every name that the parser knows, by its kind. */
export type Reference = Readonly<Record<"operators" | "tests" | "functions" | "aggregates" | "plugins", State[]>>;

/** The library's own lists against our tables. */
export function kqlReference(): Reference {
  const { Aggregates, Functions, Operators, PlugIns } = library();
  return {
    operators: Object.entries(OPERATOR_WORDS).map(([kind, name]) =>
      stateOf(name, SOURCES[kind] === undefined ? OPERATORS[kind] : {}),
    ),
    tests: names(Operators.All).map((name) => stateOf(name, testRule(name))),
    functions: names(Functions.All).map((name) => stateOf(name, name === "table" ? {} : SCALAR_FUNCTIONS[name])),
    aggregates: names(Aggregates.All).map((name) => stateOf(name, AGGREGATES[name])),
    plugins: names(PlugIns.All).map((name) => stateOf(name, PLUGINS[name])),
  };
}

function names(list: { Count: number } | null): string[] {
  return [...new Set(arrayOf<LanguageSymbol>(list).flatMap(({ Name }) => Name ?? []))];
}

function stateOf(name: string, rule: object | undefined): State {
  if (rule === undefined) return { name, isUnknown: true };
  return "refused" in rule && typeof rule.refused === "string" ? { name, refused: rule.refused } : { name };
}

/** Operators of expressions that are no two values with a word between them. */
const OTHER_TESTS: ReadonlySet<string> = new Set([
  "UnaryMinus",
  "UnaryPlus",
  "In",
  "InCs",
  "NotIn",
  "NotInCs",
  "Between",
  "NotBetween",
  "HasAny",
  "HasAll",
]);

function testRule(name: string): object | undefined {
  if (OTHER_TESTS.has(name)) return {};
  if (/^(Not)?Like(Cs)?$/.test(name))
    return { refused: "it is not in the reference: use contains, startswith or matches regex" };
  if (name === "Search") return { refused: "it is a part of search" };
  return BINARY[name];
}

/** The words of the classes of operators, `Bad…` aside. */
const OPERATOR_WORDS: Readonly<Record<string, string>> = {
  AsOperator: "as",
  AssertSchemaOperator: "assert-schema",
  ConsumeOperator: "consume",
  CountOperator: "count",
  DataTableExpression: "datatable",
  DistinctOperator: "distinct",
  EvaluateOperator: "evaluate",
  ExecuteAndCacheOperator: "execute-and-cache",
  ExtendOperator: "extend",
  FacetOperator: "facet",
  FilterOperator: "where, filter",
  FindOperator: "find",
  ForkOperator: "fork",
  GetSchemaOperator: "getschema",
  GraphMarkComponentsOperator: "graph-mark-components",
  GraphMatchOperator: "graph-match",
  GraphShortestPathsOperator: "graph-shortest-paths",
  GraphToTableOperator: "graph-to-table",
  GraphWhereEdgesOperator: "graph-where-edges",
  GraphWhereNodesOperator: "graph-where-nodes",
  InvokeOperator: "invoke",
  JoinOperator: "join",
  LookupOperator: "lookup",
  MacroExpandOperator: "macro-expand",
  MakeGraphOperator: "make-graph",
  MakeSeriesOperator: "make-series",
  MvApplyOperator: "mv-apply",
  MvExpandOperator: "mv-expand",
  ParseKvOperator: "parse-kv",
  ParseOperator: "parse",
  ParseWhereOperator: "parse-where",
  PartitionByOperator: "__partitionby",
  PartitionOperator: "partition",
  PrintOperator: "print",
  ProjectAwayOperator: "project-away",
  ProjectByNamesOperator: "project-by-names",
  ProjectKeepOperator: "project-keep",
  ProjectOperator: "project",
  ProjectRenameOperator: "project-rename",
  ProjectReorderOperator: "project-reorder",
  RangeOperator: "range",
  ReduceByOperator: "reduce",
  RenderOperator: "render",
  SampleDistinctOperator: "sample-distinct",
  SampleOperator: "sample",
  ScanOperator: "scan",
  SearchOperator: "search",
  SerializeOperator: "serialize",
  SortOperator: "sort, order",
  SummarizeOperator: "summarize",
  TakeOperator: "take, limit",
  TopHittersOperator: "top-hitters",
  TopNestedOperator: "top-nested",
  TopOperator: "top",
  UnionOperator: "union",
};

/** The classes of operators that the parser knows and `kqlReference` has no word for. */
export function wordlessOperators(): string[] {
  const kinds = Object.keys(library().Syntax).filter((name) => /(?<!^Query|^Bad)(?<!^BadQuery)Operator$/.test(name));
  return kinds.filter((kind) => OPERATOR_WORDS[kind] === undefined);
}

const BEGIN = "<!-- Printed from the tables of `src/query/kql/` by `npm run docs`. -->";
const END = "<!-- The end of what is printed. -->";

const TITLES: Readonly<Record<keyof Reference, string>> = {
  operators: "Operators of pipes",
  tests: "Operators of expressions",
  functions: "Functions",
  aggregates: "Aggregates",
  plugins: "Plugins",
};

/** The text of `docs/kql.md` with what is supported as it is. Throws where it has no place for it. */
export function withKqlReference(text: string): string {
  const [before, rest, ...more] = text.split(BEGIN);
  const end = rest?.indexOf(END) ?? -1;
  if (before === undefined || rest === undefined || end < 0 || more.length > 0) {
    throw new Error(`the text has no place for what is supported: ${BEGIN} … ${END}`);
  }
  return `${before}${BEGIN}\n\n${printed(kqlReference())}\n\n${rest.slice(end)}`;
}

function printed(reference: Reference): string {
  const kinds = Object.keys(TITLES) as (keyof Reference)[];
  return kinds.map((kind) => section(TITLES[kind], reference[kind])).join("\n\n");
}

function section(title: string, states: readonly State[]): string {
  const supported = states.filter((state) => !("refused" in state) && !("isUnknown" in state));
  const reasons = new Map<string, string[]>();
  for (const state of states) {
    if ("refused" in state && state.refused !== undefined) {
      reasons.set(state.refused, [...(reasons.get(state.refused) ?? []), state.name]);
    }
  }
  const lines = [
    `### ${title}`,
    `${supported.length} of ${states.length} are supported: ${listed(supported.map(({ name }) => name))}.`,
  ];
  const refused = [...reasons].map(([reason, names]) => `- ${reason}: ${listed(names)}`);
  return [...lines, ...(refused.length === 0 ? [] : [`Refused:`, refused.join("\n")])].join("\n\n");
}

function listed(names: readonly string[]): string {
  return names
    .toSorted((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1))
    .map((name) => `\`${name}\``)
    .join(", ");
}
