import { runSql } from "../io/duckdb/duckdb.ts";
import type { Need } from "./needs.ts";
import type { TableShape } from "./protocol.ts";
import { instantNames } from "./instant-names.ts";
import { rewriteQuery, type Rewrites } from "./rewrite.ts";
import { parseTree, textOfExpression, textOfTree, type SqlContext } from "./sql-tree.ts";
import type { OpenPivot } from "./statement.ts";
import { isObject, QueryRefused, textOf, type Json, type JsonObject } from "./tree.ts";

/** The view that stands for a table at an older snapshot; no table has a name that begins with `_`. */
export const travelView = (index: number): string => `_engine_travel_${index}`;

export type TextToRun = {
  sql: string;
  /** Whether it is the user's text, so that positions in it mean something. */
  asWritten: boolean;
};

/** How many columns a PIVOT without listed values may spread into, per expression. */
const MAX_PIVOT_VALUES = 1_000;

/**
 * The texts to try, best first. The later ones, with less rewritten, are tried when the earlier do not bind, which
 * happens when a name that looks like a `timestamp` column is something else.
 */
export async function textsToRun(
  context: SqlContext,
  query: { text: string; node: JsonObject; pivot: OpenPivot | undefined; needs: readonly Need[] },
  tables: readonly TableShape[],
): Promise<TextToRun[]> {
  const own: TextToRun = { sql: query.text, asWritten: true };
  let { node } = query;
  if (query.pivot !== undefined) {
    const lists = await pivotValues(context, query.pivot, rewritesFor(query.needs, tables, node));
    own.sql = query.pivot.withValues(lists);
    own.asWritten = false;
    node = (await parseTree(context.parser, own.sql)).tree ?? node;
  }
  const rewrites = rewritesFor(query.needs, tables, node);
  if (rewriteQuery(node, rewrites) === undefined) return [own];
  const rewritten = rewriteQuery(await withColumnNames(context, node, rewrites), rewrites) ?? node;
  const other: TextToRun = { sql: await textOfTree(context.parser, rewritten), asWritten: false };
  // Without what is known by its name alone: casts and tables at older snapshots are certain.
  const certain = rewriteQuery(node, { ...rewrites, timestampColumns: new Set() });
  const texts = [other];
  if (certain !== undefined) texts.push({ sql: await textOfTree(context.parser, certain), asWritten: false });
  return rewrites.travelViews.size > 0 ? texts : [...texts, own];
}

function rewritesFor(needs: readonly Need[], tables: readonly TableShape[], node: JsonObject): Rewrites {
  const travelViews = new Map<number, string>();
  for (const [i, { table, uses }] of needs.entries()) {
    if (table.travel === undefined) continue;
    for (const use of uses) if (use.position !== undefined) travelViews.set(use.position, travelView(i));
  }
  return { timestampColumns: instantNames(node, tables), travelViews };
}

/** Columns without an alias are named by their expression: the one the user wrote, not what it is rewritten to. */
async function withColumnNames(context: SqlContext, node: JsonObject, rewrites: Rewrites): Promise<JsonObject> {
  const left = node["left"];
  if (node["type"] === "SET_OPERATION_NODE" && isObject(left)) {
    return { ...node, left: await withColumnNames(context, left, rewrites) };
  }
  const list = node["select_list"];
  if (!Array.isArray(list)) return node;
  const items: Json[] = [];
  for (const item of list as readonly Json[]) {
    const unnamed = isObject(item) && textOf(item["alias"]) === "" && item["class"] !== "STAR";
    const changes = unnamed && rewriteQuery(item, rewrites) !== undefined;
    items.push(changes ? { ...item, alias: await textOfExpression(context.parser, item) } : item);
  }
  return { ...node, select_list: items };
}

async function pivotValues(context: SqlContext, pivot: OpenPivot, rewrites: Rewrites): Promise<string[][]> {
  const { duckdb, connection } = context;
  const lists: string[][] = [];
  for (const sql of pivot.valueQueries(MAX_PIVOT_VALUES + 1)) {
    const node = (await parseTree(context.parser, sql)).tree;
    const rewritten = node === undefined ? undefined : rewriteQuery(node, rewrites);
    const rows = await runSql(
      duckdb,
      connection,
      rewritten === undefined ? sql : await textOfTree(context.parser, rewritten),
    );
    if (rows.length > MAX_PIVOT_VALUES) {
      throw new QueryRefused(`PIVOT would make more than ${MAX_PIVOT_VALUES} columns: list the values with IN`);
    }
    lists.push(rows.flatMap(([value]) => value ?? []));
  }
  return lists;
}
