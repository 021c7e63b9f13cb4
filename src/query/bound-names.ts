import { foldName } from "../core/names.ts";
import type { Binding, CheckedQuery } from "./check.ts";
import { SYSTEM_SCHEMA } from "./system-tables.ts";
import { columnPath, isColumnRef, isObject, textOf, type Json, type JsonObject } from "./tree.ts";

/**
 * The tree with a name of ours for every relation: `engine_table_3` for a table, `engine_cte_0` for a CTE, where it is
 * defined and where it is read. What the user called them stays as an alias, so columns are named as before. After
 * this no name of the user's is looked up in DuckDB's catalog, or opened as a file.
 */
export type Names = Pick<CheckedQuery, "bindings" | "tables"> & {
  /** The database of the query. */
  database: string;
  /** The view that was made for a mention, by its place in `tables`. */
  viewOf: (use: number) => string;
};

/** The view of all tables of the database, by their names. */
export const TABLE_LIST_VIEW = "engine_table_list";

export const cteName = (cte: number): string => `engine_cte_${cte}`;

export function bindNames(node: JsonObject, names: Names): JsonObject {
  const schemas = new Set([foldName(names.database), SYSTEM_SCHEMA]);
  const qualified = new Set<string>();
  for (const { schema, name } of names.tables) if (schema !== "") qualified.add(foldName(name));
  return bind(node, { names, schemas, qualified }) as JsonObject;
}

type Context = {
  names: Names;
  /** Folded. */
  schemas: ReadonlySet<string>;
  /** Folded names of tables that are mentioned with their schema. */
  qualified: ReadonlySet<string>;
};

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
  if (binding.kind === "list of tables") return tableNode(node, TABLE_LIST_VIEW, textOf(node["alias"]));
  if (binding.kind === "table")
    return { ...asUserNamed(node), schema_name: "", table_name: viewOf(binding.use), at_clause: null };
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

/** `"db"."logs"."label"` is `"logs"."label"`: the alias of a table has no schema. */
function withoutSchema(node: JsonObject, { schemas, qualified }: Context): JsonObject {
  const [schema = "", table = "", ...rest] = columnPath(node);
  if (rest.length === 0 || !schemas.has(foldName(schema)) || !qualified.has(foldName(table))) return node;
  return { ...node, column_names: [table, ...rest] };
}
