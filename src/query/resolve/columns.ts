import { foldName } from "../../core/names.ts";
import type { TableUse } from "./table-use.ts";
import {
  columnPath,
  isColumnRef,
  isObject,
  objectsOf,
  positionOf,
  textOf,
  type Json,
  type JsonObject,
} from "../parse/tree.ts";

/**
 * Which columns of its tables a query can touch, so that no others are fetched: those of any name that it mentions
 * anywhere, whatever the mention means; and all columns of a table that it mentions without naming them, by `*`, a
 * natural join, PIVOT, DESCRIBE, a position, new names for its columns, or as a row.
 *
 * Names what it finds in `uses` and returns the folded names.
 */
export function findColumns(node: JsonObject, uses: readonly TableUse[]): ReadonlySet<string> {
  const found: Found = { names: new Set(), rows: new Set(), all: new Set(), tables: new Map() };
  walk(found, node);
  for (const use of uses) {
    const aliases = use.position === undefined ? undefined : found.tables.get(use.position);
    use.needsAllColumns =
      use.position === undefined ||
      aliases === undefined ||
      found.all.has(use.position) ||
      aliases.some((alias) => found.rows.has(alias));
  }
  return found.names;
}

type Found = {
  /** Every part of every path, and names in USING. */
  names: Set<string>;
  /** Paths of one part: a column, or a table's row. */
  rows: Set<string>;
  /** Positions of tables of which all columns are touched. */
  all: Set<number>;
  /** The names that a table goes by, by its position. */
  tables: Map<number, readonly string[]>;
};

const QUERY_NODES = new Set(["SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"]);

function walk(found: Found, value: Json | undefined): void {
  if (Array.isArray(value)) for (const item of value as readonly Json[]) walk(found, item);
  if (!isObject(value)) return;
  if (isColumnRef(value)) addNames(found, columnPath(value));
  const type = textOf(value["type"]);
  if (type === "SELECT_NODE") checkSelect(found, value);
  if (type === "BASE_TABLE") addTable(found, value);
  if (type === "JOIN") checkJoin(found, value);
  if (type === "PIVOT" || type === "SHOW_REF") touchAll(found, value, true);
  for (const child of Object.values(value)) walk(found, child);
}

function addNames(found: Found, path: readonly string[]): void {
  for (const part of path) found.names.add(foldName(part));
  if (path.length === 1) found.rows.add(foldName(path[0] ?? ""));
}

function addTable(found: Found, table: JsonObject): void {
  const position = positionOf(table);
  if (position === undefined) return;
  found.tables.set(position, [foldName(textOf(table["alias"])), foldName(textOf(table["table_name"]))]);
  const renamed = table["column_name_alias"];
  if (Array.isArray(renamed) && renamed.length > 0) found.all.add(position);
}

function checkSelect(found: Found, { from_table: from, cte_map: _ctes, ...own }: JsonObject): void {
  if (isObject(from) && Object.values(own).some(hasStar)) touchAll(found, from, false);
}

/** Whether `*`, `COLUMNS(…)` or `#1` is there, outside of subqueries, which have tables of their own. */
function hasStar(value: Json | undefined): boolean {
  if (Array.isArray(value)) return (value as readonly Json[]).some(hasStar);
  if (!isObject(value) || QUERY_NODES.has(textOf(value["type"]))) return false;
  if (value["class"] === "STAR" || value["class"] === "POSITIONAL_REFERENCE") return true;
  return Object.values(value).some(hasStar);
}

function checkJoin(found: Found, join: JsonObject): void {
  const shared = join["using_columns"];
  if (Array.isArray(shared)) for (const name of shared as readonly Json[]) found.names.add(foldName(textOf(name)));
  if (join["ref_type"] !== "NATURAL") return;
  for (const side of objectsOf([join["left"] ?? null, join["right"] ?? null])) touchAll(found, side, false);
}

/** All columns of the tables of a FROM clause; those within its subqueries only when `deep`. */
function touchAll(found: Found, value: Json | undefined, deep: boolean): void {
  if (Array.isArray(value)) for (const item of value as readonly Json[]) touchAll(found, item, deep);
  if (!isObject(value) || (!deep && QUERY_NODES.has(textOf(value["type"])))) return;
  const position = value["type"] === "BASE_TABLE" ? positionOf(value) : undefined;
  if (position !== undefined) found.all.add(position);
  for (const child of Object.values(value)) touchAll(found, child, deep);
}
