import { foldName } from "../../core/names.ts";
import { runOne } from "../../io/duckdb/duckdb.ts";
import { bindNames, type Names } from "../resolve/bound-names.ts";
import { checkQuery, type CheckedQuery } from "../resolve/check.ts";
import { instantsOf } from "./instant-columns.ts";
import { hasNamesakes, instantNames } from "./instant-names.ts";
import { withValues, type QueryParameters } from "../parse/parameters.ts";
import { printTree, type PrintedTree } from "../parse/print-tree.ts";
import type { TableShape } from "../contract/tables.ts";
import { rewriteQuery, type Rewrites } from "../parse/rewrite.ts";
import { readAsStored, type StoredView } from "./stored-times.ts";
import { parseTree, titleOf, type SqlContext } from "../parse/sql-tree.ts";
import type { OpenPivot } from "../parse/statement.ts";
import type { TableUse } from "../resolve/table-use.ts";
import { isObject, QueryRefused, textOf, type Json, type JsonObject } from "../parse/tree.ts";

/** A query that was parsed and checked. */
export type CheckedText = {
  /** With the values of its parameters. */
  node: JsonObject;
  /** With its parameters. */
  written: JsonObject;
  checked: CheckedQuery;
  /** Its PIVOT whose values are not listed: `node` has others in their place. */
  pivot: OpenPivot | undefined;
  parameters: QueryParameters;
  /** By the views of their tables. */
  storedViews: ReadonlyMap<string, StoredView>;
} & Pick<Names, "viewOf">;

export type TextToRun = {
  printed: PrintedTree;
  /** Whether something in it was changed that only looks like a `timestamp`. */
  isGuess: boolean;
};

/** How many columns a PIVOT without listed values may spread into, per expression. */
const MAX_PIVOT_VALUES = 1_000;

/**
 * The texts to try, best first. No text of the user's is run: each is printed from the tree that was checked, with our
 * names for its relations and with what `rewrite.ts` changes. The later ones, with less rewritten, are tried when the
 * earlier do not bind, which happens when a name that looks like a `timestamp` column is something else. Those that read
 * times as they are stored come before those that do not (`stored-times.ts`).
 */
export async function* textsToRun(
  context: SqlContext,
  query: CheckedText,
  tables: readonly TableShape[],
): AsyncGenerator<TextToRun> {
  const { pivot } = query;
  const filled = pivot === undefined ? query : await withPivotValues(context, query, { pivot, tables });
  const bound = bindNames(filled.node, namesOf(filled));
  const stored = readAsStored(bound, filled.storedViews);
  if (stored !== undefined) {
    for await (const text of textsOf(context, { ...filled, bound: stored }, tables)) yield { ...text, isGuess: true };
  }
  yield* textsOf(context, { ...filled, bound }, tables);
}

async function* textsOf(
  context: SqlContext,
  { bound, ...filled }: CheckedText & Pick<Pair, "bound">,
  tables: readonly TableShape[],
): AsyncGenerator<TextToRun> {
  const names = instantNames(filled.node, tables);
  let before = "";
  // By names alone; where one is something else in places, by the scopes of columns; and what is certain, which are casts.
  const guesses = [() => ({ timestampColumns: names }), () => instantsOf(filled.node, tables, names)];
  // By names alone it would bind, and say something else.
  if (hasNamesakes(filled.node, names)) guesses.shift();
  for (const instants of [...(names.size === 0 ? [] : guesses), () => NONE]) {
    const rewrites = instants();
    if (rewriteQuery(bound, rewrites) === undefined) continue;
    const titled = await withTitles(context, { original: filled.written, bound }, rewrites);
    const printed = await printTree(context.parser, rewriteQuery(titled, rewrites) ?? titled);
    // What is certain is not skipped: if it fails too, that is the query's own error.
    if (printed.sql === before && rewrites !== NONE) continue;
    before = printed.sql;
    yield { printed, isGuess: rewrites !== NONE };
  }
  const titled = await withTitles(context, { original: filled.written, bound }, undefined);
  yield { printed: await printTree(context.parser, titled), isGuess: false };
}

const NONE: Rewrites = { timestampColumns: new Set() };

function namesOf({ checked, viewOf }: CheckedText): Names {
  return { ...checked, viewOf };
}

/** A tree as it was parsed, and with our names: node by node the same. */
type Pair = { original: JsonObject; bound: JsonObject };

/** Columns without an alias are named by their expression: the one the user wrote, not what it becomes. */
async function withTitles(context: SqlContext, pair: Pair, rewrites: Rewrites | undefined): Promise<JsonObject> {
  const titles = new Map<JsonObject, string>();
  for (const { original, bound } of itemsOf(pair.original, pair.bound)) {
    const changes = original !== bound || (rewrites !== undefined && rewriteQuery(bound, rewrites) !== undefined);
    if (changes) titles.set(bound, await titleOf(context.parser, original));
  }
  return titles.size === 0 ? pair.bound : (withAliases(pair.bound, titles) as JsonObject);
}

/** What is selected anywhere and has no alias. A column is named by its last part, whatever stands before that. */
function* itemsOf(original: Json | undefined, bound: Json | undefined): Generator<Pair> {
  if (Array.isArray(original) && Array.isArray(bound)) {
    for (const [i, item] of original.entries()) yield* itemsOf(item as Json, bound[i] as Json);
  }
  if (!isObject(original) || !isObject(bound)) return;
  const list = original["select_list"];
  const boundList = bound["select_list"];
  if (Array.isArray(list) && Array.isArray(boundList)) {
    for (const [i, item] of (list as readonly Json[]).entries()) {
      const other = (boundList as readonly Json[])[i];
      if (isObject(item) && isObject(other) && isTitled(item)) yield { original: item, bound: other };
    }
  }
  for (const [key, child] of Object.entries(original)) yield* itemsOf(child, bound[key]);
}

function isTitled(item: JsonObject): boolean {
  return textOf(item["alias"]) === "" && item["class"] !== "STAR" && item["class"] !== "COLUMN_REF";
}

function withAliases(value: Json, aliases: ReadonlyMap<JsonObject, string>): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map((item) => withAliases(item, aliases));
  if (!isObject(value) || "rawJSON" in value) return value;
  const entries = Object.entries(value).map(([key, child]): [string, Json] => [key, withAliases(child, aliases)]);
  const alias = aliases.get(value);
  return Object.fromEntries(alias === undefined ? entries : [...entries, ["alias", alias]]);
}

/** The query with the values that its PIVOT finds in the tables, which is parsed and checked like any other. */
async function withPivotValues(
  context: SqlContext,
  query: CheckedText,
  { pivot, tables }: { pivot: OpenPivot; tables: readonly TableShape[] },
): Promise<CheckedText> {
  const lists: string[][] = [];
  for (const text of pivot.valueQueries(MAX_PIVOT_VALUES + 1))
    lists.push(await pivotValues(context, { ...query, text }, tables));
  return { ...query, ...(await recheck(context, pivot.withValues(lists), query)) };
}

async function pivotValues(
  context: SqlContext,
  query: CheckedText & { text: string },
  tables: readonly TableShape[],
): Promise<string[]> {
  const { node, checked } = await recheck(context, query.text, query);
  const bound = bindNames(node, namesOf({ ...query, checked }));
  const rewrites = { timestampColumns: instantNames(node, tables) };
  const { sql } = await printTree(context.parser, rewriteQuery(bound, rewrites) ?? bound);
  const rows = await runOne(context.duckdb, context.connection, sql, "SELECT");
  if (rows.length > MAX_PIVOT_VALUES) {
    throw new QueryRefused(`PIVOT would make more than ${MAX_PIVOT_VALUES} columns: list the values with IN`);
  }
  return rows.flatMap(([value]) => value ?? []);
}

/** A text made of one that was checked, which mentions no other tables. */
async function recheck(
  context: SqlContext,
  text: string,
  query: CheckedText,
): Promise<Pick<CheckedText, "node" | "written" | "checked">> {
  const { tree: written } = await parseTree(context.parser, text);
  if (written === undefined) throw new QueryRefused("PIVOT takes one source and expressions over its columns");
  const node = withValues(written, query.parameters);
  const checked = checkQuery(node);
  const known = query.checked.tables.map(mentionKey);
  const uses = checked.tables.map((use) => known.indexOf(mentionKey(use)));
  if (uses.includes(-1)) throw new QueryRefused("PIVOT takes one source and expressions over its columns");
  return { node, written, checked: withUses(checked, uses) };
}

/** The same for mentions of one table at one snapshot. */
function mentionKey({ name, schema, travel }: TableUse): string {
  return JSON.stringify([foldName(schema), foldName(name), travel], (key, value: unknown) =>
    key === "query_location" ? undefined : value,
  );
}

/** With the places in the list of tables exchanged. */
function withUses(checked: CheckedQuery, uses: readonly number[]): CheckedQuery {
  const bindings = new Map(
    [...checked.bindings].map(([node, binding]) => [
      node,
      binding.kind === "table" ? { ...binding, use: uses[binding.use] ?? -1 } : binding,
    ]),
  );
  return { ...checked, bindings };
}
