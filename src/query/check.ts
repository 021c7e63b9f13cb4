import { foldName } from "../core/names.ts";
import { nearest } from "../core/nearest.ts";
import { findBounds } from "./bounds.ts";
import { findColumns } from "./columns.ts";
import { ALLOWED_FUNCTIONS, ALLOWED_TABLE_FUNCTIONS } from "./functions.ts";
import type { TableUse } from "./table-use.ts";
import { isObject, objectsOf, positionOf, QueryRefused, textOf, type Json, type JsonObject } from "./tree.ts";

/**
 * The gate of every query: walks the whole parsed tree and lets through only what is known to be harmless. Kinds of
 * expressions, table references and functions are matched against allow-lists, so whatever a later DuckDB adds is
 * refused until somebody has looked at it. Every table name that is not a CTE in scope is reported to the caller, who
 * must resolve it to a table of the caller's database; nothing else is ever bound to a name.
 */
export type CheckedQuery = {
  tables: TableUse[];
  /** `SHOW TABLES` is somewhere in it: it needs the names of all tables. */
  listsTables: boolean;
  /** Folded; every name that may be one of a column. */
  names: ReadonlySet<string>;
};

const EXPRESSIONS = new Set([
  "BETWEEN",
  "CASE",
  "CAST",
  "COLLATE",
  "COLUMN_REF",
  "COMPARISON",
  "CONJUNCTION",
  "CONSTANT",
  "FUNCTION",
  "LAMBDA",
  "LAMBDA_REF",
  "OPERATOR",
  "POSITIONAL_REFERENCE",
  "STAR",
  "SUBQUERY",
  "WINDOW",
]);

const QUERY_NODES = new Set(["SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"]);

const TABLE_REFS = new Set([
  "BASE_TABLE",
  "EMPTY",
  "EXPRESSION_LIST",
  "JOIN",
  "PIVOT",
  "SHOW_REF",
  "SUBQUERY",
  "TABLE_FUNCTION",
]);

const PLAIN = new Set([
  "ORDER_MODIFIER",
  "LIMIT_MODIFIER",
  "LIMIT_PERCENT_MODIFIER",
  "DISTINCT_MODIFIER",
  "ORDER_DEFAULT",
  "ASCENDING",
  "DESCENDING",
]);

/** Deep enough for anything written by hand or by a tool, shallow enough for this walk's own stack. */
const MAX_DEPTH = 2_000;

type Scope = { ctes: ReadonlySet<string>; depth: number };

/** Checks one statement (`statements[0].node`); throws `QueryRefused`. */
export function checkQuery(node: JsonObject): CheckedQuery {
  const found: CheckedQuery = { tables: [], listsTables: false, names: new Set() };
  walk(found, node, { ctes: new Set(), depth: 0 });
  return { ...found, names: findColumns(node, found.tables) };
}

function walk(found: CheckedQuery, value: Json | undefined, scope: Scope): void {
  if (scope.depth > MAX_DEPTH) throw new QueryRefused(`the query is nested more than ${MAX_DEPTH} levels deep`);
  const inner = { ctes: scope.ctes, depth: scope.depth + 1 };
  if (Array.isArray(value)) for (const item of value as readonly Json[]) walk(found, item, inner);
  if (!isObject(value)) return;
  if (typeof value["class"] === "string") walkExpression(found, value, inner);
  else if (QUERY_NODES.has(textOf(value["type"]))) walkQueryNode(found, value, inner);
  else if (typeof value["type"] === "string" && "query_location" in value) walkTableRef(found, value, inner);
  else walkPlain(found, value, inner);
}

function walkChildren(found: CheckedQuery, node: JsonObject, scope: Scope): void {
  for (const child of Object.values(node)) walk(found, child, scope);
}

/** Modifiers, type descriptions, constant values: no names in them reach anything. */
function walkPlain(found: CheckedQuery, node: JsonObject, scope: Scope): void {
  const type = node["type"];
  if (typeof type === "string" && !PLAIN.has(type) && !type.endsWith("_TYPE_INFO")) {
    throw new QueryRefused(`${type} is not allowed in a query`);
  }
  walkChildren(found, node, scope);
}

function walkExpression(found: CheckedQuery, node: JsonObject, scope: Scope): void {
  const kind = textOf(node["class"]);
  const position = positionOf(node);
  if (kind === "PARAMETER")
    throw new QueryRefused("parameters (`?`, `$1`) are not supported: write the value", position);
  if (!EXPRESSIONS.has(kind)) throw new QueryRefused(`${kind} is not allowed in a query`, position);
  if (kind === "FUNCTION" || kind === "WINDOW") checkFunction(node, ALLOWED_FUNCTIONS);
  walkChildren(found, node, scope);
}

function checkFunction(node: JsonObject, allowed: ReadonlySet<string>): void {
  const name = textOf(node["function_name"]).toLowerCase();
  if (allowed.has(name)) return;
  const suggestion = nearest(name, allowed);
  const hint = suggestion === undefined ? "" : `; did you mean ${suggestion}?`;
  throw new QueryRefused(`there is no function ${name} that a query may call${hint}`, positionOf(node), suggestion);
}

function walkQueryNode(found: CheckedQuery, node: JsonObject, scope: Scope): void {
  const ctes = new Set(scope.ctes);
  const map = node["cte_map"];
  for (const entry of objectsOf(isObject(map) ? map["map"] : undefined)) {
    // A CTE sees the ones before it, and itself only when recursive (see below).
    walk(found, entry["value"], { ctes: new Set(ctes), depth: scope.depth });
    ctes.add(foldName(textOf(entry["key"])));
  }
  if (typeof node["cte_name"] === "string") ctes.add(foldName(node["cte_name"]));
  const inner = { ctes, depth: scope.depth };
  const firstOwn = found.tables.length;
  for (const [key, child] of Object.entries(node)) if (key !== "cte_map") walk(found, child, inner);
  if (node["type"] === "SELECT_NODE") findBounds(node, found.tables.slice(firstOwn));
}

function walkTableRef(found: CheckedQuery, node: JsonObject, scope: Scope): void {
  const type = textOf(node["type"]);
  const position = positionOf(node);
  if (!TABLE_REFS.has(type)) throw new QueryRefused(`${type} is not allowed in a query`, position);
  if (type === "BASE_TABLE") {
    useTable(found, node, scope);
    walk(found, node["at_clause"], scope);
    return;
  }
  if (type === "SHOW_REF") checkShow(found, node, position);
  if (type === "TABLE_FUNCTION") {
    const call = node["function"];
    if (!isObject(call) || call["class"] !== "FUNCTION") throw new QueryRefused("not a table function", position);
    checkFunction(call, ALLOWED_TABLE_FUNCTIONS);
    walk(found, call["children"], scope);
    return;
  }
  if (type === "PIVOT" && objectsOf(node["pivots"]).some((pivot) => textOf(pivot["pivot_enum"]) !== "")) {
    throw new QueryRefused("PIVOT over an ENUM type is not supported: list the values", position);
  }
  walkChildren(found, node, scope);
}

function useTable(found: CheckedQuery, node: JsonObject, scope: Scope): void {
  const position = positionOf(node);
  const name = textOf(node["table_name"]);
  const schema = textOf(node["schema_name"]);
  if (textOf(node["catalog_name"]) !== "") {
    throw new QueryRefused("a table is named `table` or `database.table`, not with three parts", position);
  }
  if (schema === "" && scope.ctes.has(foldName(name))) return;
  const at = node["at_clause"];
  const use: TableUse = { name, schema, position, bounds: [], conditions: [], needsAllColumns: true };
  if (isObject(at) && isObject(at["expr"])) use.travel = { unit: textOf(at["unit"]), expression: at["expr"] };
  const cte = nearest(name, scope.ctes);
  if (schema === "" && cte !== undefined) use.cte = cte;
  // The reference is found again by its position in the list when bounds are looked for; see `findBounds`.
  found.tables.push(use);
}

/** `SHOW TABLES` lists the tables of the database; the other catalogs belong to the engine. */
function checkShow(found: CheckedQuery, node: JsonObject, position: number | undefined): void {
  if (isObject(node["query"])) return;
  const what = textOf(node["table_name"]).replaceAll('"', "").toLowerCase();
  if (what !== "tables" || textOf(node["schema_name"]) !== "" || textOf(node["catalog_name"]) !== "") {
    throw new QueryRefused("only SHOW TABLES, SHOW <table>, DESCRIBE and SUMMARIZE are supported", position);
  }
  found.listsTables = true;
}
