import { foldName } from "../../core/names.ts";
import type { Binding, CheckedQuery } from "./check.ts";
import { CATALOG_NAME } from "../system-tables/information-schema.ts";
import { listingView } from "./listings.ts";
import { columnPath, isColumnRef, isObject, textOf, type Json, type JsonObject } from "../parse/tree.ts";

/**
 * The tree with a name of ours for every relation: `engine_table_3` for a table, `engine_cte_0` for a CTE, where it is
 * defined and where it is read. What the user called them stays as an alias, so columns are named as before. After
 * this no name of the user's is looked up in DuckDB's catalog, or opened as a file.
 */
export type Names = Pick<CheckedQuery, "bindings" | "tables"> & {
  /** The view that was made for a mention, by its place in `tables`. */
  viewOf: (use: number) => string;
};

export const cteName = (cte: number): string => `engine_cte_${cte}`;

export function bindNames(node: JsonObject, names: Names): JsonObject {
  const qualified = names.tables.filter(({ schema }) => schema !== "").map(({ schema, name }) => pathKey(schema, name));
  return bind(node, { names, qualified: new Set(qualified) }) as JsonObject;
}

type Context = {
  names: Names;
  /** Tables that are mentioned with their schema, by `pathKey`. */
  qualified: ReadonlySet<string>;
};

function pathKey(schema: string, table: string): string {
  return JSON.stringify([foldName(schema), foldName(table)]);
}

function bind(value: Json, context: Context): Json {
  if (Array.isArray(value)) {
    const items = (value as readonly Json[]).map((item) => bind(item, context));
    return items.some((item, i) => item !== value[i]) ? items : value;
  }
  if (!isObject(value)) return value;
  const binding = context.names.bindings.get(value);
  let changed = false;
  const entries = Object.entries(value).map(([key, child]): [string, Json] => {
    const other = bind(child, context);
    changed ||= other !== child;
    return [key, other];
  });
  const node: JsonObject = changed ? Object.fromEntries(entries) : value;
  if (binding !== undefined) return boundNode(node, binding, context.names);
  return isColumnRef(node) ? withoutSchema(node, context) : node;
}

function boundNode(node: JsonObject, binding: Binding, { viewOf }: Names): JsonObject {
  if (binding.kind === "listing") return tableNode(node, listingView(binding.listing), textOf(node["alias"]));
  if (binding.kind === "table") {
    const table_name = viewOf(binding.use);
    return { ...asUserNamed(node), catalog_name: "", schema_name: "", table_name, at_clause: null };
  }
  const name = cteName(binding.cte);
  if (node["type"] === "BASE_TABLE") return { ...asUserNamed(node), table_name: name };
  return "cte_name" in node ? { ...node, cte_name: name } : { ...node, key: name };
}

function asUserNamed(node: JsonObject): JsonObject {
  return { ...node, alias: textOf(node["alias"]) || textOf(node["table_name"]) };
}

function tableNode({ query_location = 0 }: JsonObject, name: string, alias: string): JsonObject {
  return {
    type: "BASE_TABLE",
    alias,
    sample: null,
    query_location,
    schema_name: "",
    table_name: name,
    column_name_alias: [],
    catalog_name: "",
    at_clause: null,
  };
}

/** `"db"."logs"."label"` is `"logs"."label"`: the alias of a table has no schema, nor a catalog before that. */
function withoutSchema(node: JsonObject, { qualified }: Context): JsonObject {
  const path = columnPath(node);
  const isFull = path.length > 3 && foldName(path[0] ?? "") === CATALOG_NAME;
  const [schema = "", table = "", ...rest] = isFull ? path.slice(1) : path;
  if (rest.length === 0 || !qualified.has(pathKey(schema, table))) return node;
  return { ...node, column_names: [table, ...rest] };
}
