import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import type { Extension } from "@codemirror/state";
import type { Database, Table } from "../../base/schema.ts";
import { KEYWORDS, quotedIfNeeded } from "./quoted.ts";

const FUNCTIONS =
  "count sum avg min max median quantile_cont approx_count_distinct any_value arg_max arg_min list string_agg date_trunc " +
  "time_bucket now epoch_ms strftime extract coalesce nullif lower upper trim substr length replace regexp_matches " +
  "regexp_extract split_part concat round floor ceil abs json_extract json_extract_string unnest row_number rank lag lead " +
  "first last histogram stddev greatest least to_timestamp make_timestamp";

const keywords = KEYWORDS.split(" ").map((label): Completion => ({ label, type: "keyword", boost: -2 }));
const functions = FUNCTIONS.split(" ").map((label): Completion => ({
  label,
  type: "function",
  apply: `${label}(`,
  boost: -1,
}));

/** More are found by typing on. */
const MOST_COLUMNS = 2_000;

/** Names of tables, columns, CTEs and aliases where one types, beside SQL's own words. */
export function sqlCompletion(databases: readonly Database[], database: string): Extension {
  const own = databases.find(({ name }) => name.toLowerCase() === database.toLowerCase());
  return autocompletion({
    override: [(context) => complete(context, databases, own)],
    icons: false,
    maxRenderedOptions: 100,
  });
}

function complete(
  context: CompletionContext,
  databases: readonly Database[],
  own: Database | undefined,
): CompletionResult | null {
  const word = context.matchBefore(/[\w$]*/);
  const from = word?.from ?? context.pos;
  const text = context.state.doc.toString();
  const before = context.state.sliceDoc(Math.max(0, from - 200), from);
  const [, qualifier] = /([\w$]+|"(?:[^"]|"")+")\.$/.exec(before) ?? [];
  if (qualifier !== undefined) {
    const options = ofQualifier(unquoted(qualifier), text, { databases, own });
    return options.length === 0 ? null : { from, options, validFor: /^[\w$]*$/ };
  }
  if (from === context.pos && !context.explicit) return null;
  const tables = (own?.tables ?? []).map(tableOption);
  const ctes = [...text.matchAll(/(?:\bWITH|,)\s+(?:RECURSIVE\s+)?([\w$]+)\s+AS\s*\(/gi)].map(
    ([, name = ""]): Completion => {
      return { label: name, type: "variable", detail: "in this query" };
    },
  );
  const mentioned = (own?.tables ?? []).filter(({ name }) => mentions(text, name));
  const columns = mentioned.flatMap(({ columns: all }) => all.map(columnOption)).slice(0, MOST_COLUMNS);
  const others = databases
    .filter((one) => one !== own)
    .map(({ name }): Completion => ({ label: name, type: "namespace" }));
  return {
    from,
    options: [...unique(columns), ...ctes, ...tables, ...others, ...functions, ...keywords],
    validFor: /^[\w$]*$/,
  };
}

type Known = { databases: readonly Database[]; own: Database | undefined };

/** Columns of a table or of its alias; tables of a database. */
function ofQualifier(name: string, text: string, { databases, own }: Known): Completion[] {
  const isNamed = (one: { name: string }): boolean => one.name.toLowerCase() === name.toLowerCase();
  const table = own?.tables.find(isNamed) ?? aliased(name, text, own);
  if (table !== undefined) return table.columns.map(columnOption);
  return (databases.find(isNamed)?.tables ?? []).map(tableOption);
}

function aliased(alias: string, text: string, own: Database | undefined): Table | undefined {
  const uses = text.matchAll(/\b(?:FROM|JOIN)\s+(?:[\w$]+\.)?"?([\w$-]+)"?\s+(?:AS\s+)?([\w$]+)/gi);
  for (const [, name = "", other = ""] of uses) {
    if (other.toLowerCase() === alias.toLowerCase()) {
      return own?.tables.find((table) => table.name.toLowerCase() === name.toLowerCase());
    }
  }
  return undefined;
}

function mentions(text: string, name: string): boolean {
  const at = text.toLowerCase().indexOf(name.toLowerCase());
  return at !== -1 && !/[\w$]/.test(text.charAt(at - 1)) && !/[\w$]/.test(text.charAt(at + name.length));
}

const tableOption = ({ name, columns }: Table): Completion => ({
  label: name,
  apply: quotedIfNeeded(name),
  type: "class",
  detail: `table, ${columns.length} columns`,
  boost: 1,
});

const columnOption = ({ name, type }: { name: string; type: string }): Completion => ({
  label: name,
  apply: quotedIfNeeded(name),
  type: "property",
  detail: type,
  boost: 2,
});

function unique(options: readonly Completion[]): Completion[] {
  return [...new Map(options.map((option) => [option.label, option])).values()];
}

function unquoted(name: string): string {
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name;
}
