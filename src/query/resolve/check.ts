import { foldName, isName } from "../../core/names.ts";
import { nearest } from "../../core/nearest.ts";
import { findBounds } from "./bounds.ts";
import { findColumns } from "./columns.ts";
import { ALLOWED_FUNCTIONS, ALLOWED_TABLE_FUNCTIONS } from "./functions.ts";
import { isConstant } from "../parse/constant-expression.ts";
import type { Listing } from "./listings.ts";
import { CATALOG_NAME } from "../system-tables/information-schema.ts";
import { isSystemSchema } from "../system-tables/system-tables.ts";
import type { TableUse } from "./table-use.ts";
import {
  anyNode,
  isObject,
  objectsOf,
  positionOf,
  QueryRefused,
  textOf,
  type Json,
  type JsonObject,
} from "../parse/tree.ts";

/**
 * The gate of every query: walks the whole parsed tree and lets through only what is known to be harmless. Kinds of
 * expressions, table references and functions are matched against allow-lists, so whatever a later DuckDB adds is
 * refused until somebody has looked at it.
 *
 * Names of relations resolve here and nowhere else. A name is a CTE in scope, or a table that the caller must find in
 * its database; `bound-names.ts` then gives every relation a name of ours, so that no name of the user's is left for
 * DuckDB to look up in its catalog or among files. Where our scopes and DuckDB's differed, the query would fail to bind.
 */
export type CheckedQuery = {
  /** What each table reference, CTE and recursive CTE of the tree stands for, by its node. */
  bindings: ReadonlyMap<JsonObject, Binding>;
  tables: TableUse[];
  /** What `SHOW TABLES` and `SHOW DATABASES` somewhere in it list. */
  listings: readonly Listing[];
  /** Folded; every name that may be one of a column. */
  names: ReadonlySet<string>;
};

/** A CTE by its number in the query; a table, or a list of names, by its place among those of the query. */
export type Binding =
  | { kind: "cte"; cte: number; recurring: boolean }
  | { kind: "table"; use: number }
  | { kind: "listing"; listing: number };

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

const QUERY_NODES = new Set(["SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE"]);

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

/** CTEs in scope: their numbers by folded name. `recurring` are those whose rows so far are `recurring.<name>`. */
type Scope = { ctes: ReadonlyMap<string, number>; recurring: ReadonlyMap<string, number>; depth: number };

type Found = {
  bindings: Map<JsonObject, Binding>;
  ctes: number;
  tables: TableUse[];
  listings: Listing[];
  macros: ReadonlySet<string>;
  outermost: { node: JsonObject; wantedRows: number | undefined };
};

const NO_MACROS: ReadonlySet<string> = new Set();

/**
 * Checks one statement (`statements[0].node`); throws `QueryRefused`. A translated one may call those macros of ours. Of
 * its rows no more than `wantedRows` are looked at.
 */
export function checkQuery(
  node: JsonObject,
  macros: ReadonlySet<string> = NO_MACROS,
  wantedRows?: number,
): CheckedQuery {
  const found: Found = {
    bindings: new Map(),
    ctes: 0,
    tables: [],
    listings: [],
    macros,
    outermost: { node, wantedRows },
  };
  walk(found, node, { ctes: new Map(), recurring: new Map(), depth: 0 });
  const { bindings, tables, listings } = found;
  return { bindings, tables, listings, names: findColumns(node, tables) };
}

function walk(found: Found, value: Json | undefined, scope: Scope): void {
  if (scope.depth > MAX_DEPTH) throw new QueryRefused(`the query is nested more than ${MAX_DEPTH} levels deep`);
  const inner = { ...scope, depth: scope.depth + 1 };
  if (Array.isArray(value)) for (const item of value as readonly Json[]) walk(found, item, inner);
  if (!isObject(value)) return;
  if (typeof value["class"] === "string") walkExpression(found, value, inner);
  else if (QUERY_NODES.has(textOf(value["type"]))) walkQueryNode(found, value, inner);
  else if (typeof value["type"] === "string" && "query_location" in value) walkTableRef(found, value, inner);
  else walkPlain(found, value, inner);
}

function walkChildren(found: Found, node: JsonObject, scope: Scope): void {
  for (const child of Object.values(node)) walk(found, child, scope);
}

/** Modifiers, type descriptions, constant values: no names in them reach anything. */
function walkPlain(found: Found, node: JsonObject, scope: Scope): void {
  const type = node["type"];
  if (typeof type === "string" && !PLAIN.has(type) && !type.endsWith("_TYPE_INFO")) {
    throw new QueryRefused(`${type} is not allowed in a query`);
  }
  if (type === "LIMIT_MODIFIER" || type === "LIMIT_PERCENT_MODIFIER") refuseSubquery(node);
  walkChildren(found, node, scope);
}

/** How many rows a query gives is known before it runs. */
function refuseSubquery(limit: JsonObject): void {
  for (const key of ["limit", "offset"]) {
    const expression = limit[key];
    if (!isObject(expression) || !anyNode(expression, (part) => part["class"] === "SUBQUERY")) continue;
    throw new QueryRefused(`${key.toUpperCase()} takes a constant, not a sub-query`, positionOf(expression));
  }
}

function walkExpression(found: Found, node: JsonObject, scope: Scope): void {
  const kind = textOf(node["class"]);
  const position = positionOf(node);
  // Those with a value are constants by now: see `parameters.ts`.
  if (kind === "PARAMETER") throw new QueryRefused("a parameter has no value here", position);
  if (!EXPRESSIONS.has(kind)) throw new QueryRefused(`${kind} is not allowed in a query`, position);
  if (kind === "FUNCTION" || kind === "WINDOW") checkFunction(node, ALLOWED_FUNCTIONS, found.macros);
  walkChildren(found, node, scope);
}

/** By its name alone: what stands before it may be a column (`label.upper()`), and no schema has others of that name. */
function checkFunction(node: JsonObject, allowed: ReadonlySet<string>, macros = NO_MACROS): void {
  const name = textOf(node["function_name"]).toLowerCase();
  if (allowed.has(name) || macros.has(name)) return;
  const suggestion = nearest(name, allowed);
  const hint = suggestion === undefined ? "" : `; did you mean ${suggestion}?`;
  throw new QueryRefused(`there is no function ${name} that a query may call${hint}`, positionOf(node), suggestion);
}

function walkQueryNode(found: Found, node: JsonObject, scope: Scope): void {
  const type = node["type"];
  if (type === "RECURSIVE_CTE_NODE") throw new QueryRefused("a recursive query is the query of a CTE");
  const inner = { ...scope, ctes: walkCtes(found, node, scope) };
  const firstOwn = found.tables.length;
  for (const [key, child] of Object.entries(node)) if (key !== "cte_map") walk(found, child, inner);
  const { outermost } = found;
  const wantedRows = node === outermost.node ? outermost.wantedRows : undefined;
  if (type === "SELECT_NODE") findBounds(node, found.tables.slice(firstOwn), wantedRows);
}

/** The CTEs that the rest of the node sees. Each CTE sees those before it, and itself only where it is recursive. */
function walkCtes(found: Found, node: JsonObject, scope: Scope): ReadonlyMap<string, number> {
  const ctes = new Map(scope.ctes);
  const map = node["cte_map"];
  for (const entry of objectsOf(isObject(map) ? map["map"] : undefined)) {
    const cte = found.ctes++;
    const name = foldName(textOf(entry["key"]));
    found.bindings.set(entry, { kind: "cte", cte, recurring: false });
    const own = { ...scope, ctes: new Map(ctes) };
    const recursive = recursiveNode(entry["value"]);
    if (recursive === undefined) walk(found, entry["value"], own);
    else walkRecursive(found, recursive, own, { cte, name });
    ctes.set(name, cte);
  }
  return ctes;
}

function recursiveNode(value: Json | undefined): JsonObject | undefined {
  const statement = isObject(value) ? value["query"] : undefined;
  const node = isObject(statement) ? statement["node"] : undefined;
  return isObject(node) && node["type"] === "RECURSIVE_CTE_NODE" ? node : undefined;
}

/**
 * `anchor UNION [ALL] step`: the step sees the CTE, the anchor does not, and for DuckDB a name that is no CTE there is
 * a table or a file. With `USING KEY` the step also sees all rows so far, as `recurring.<name>`.
 */
function walkRecursive(
  found: Found,
  node: JsonObject,
  scope: Scope,
  { cte, name }: { cte: number; name: string },
): void {
  if (foldName(textOf(node["cte_name"])) !== name) throw new QueryRefused("a recursive CTE has one name");
  found.bindings.set(node, { kind: "cte", cte, recurring: false });
  const ctes = walkCtes(found, node, scope);
  const { cte_map: _ctes, right, ...anchor } = node;
  walkChildren(found, anchor, { ...scope, ctes });
  const keys = objectsOf(node["key_targets"]);
  const recurring = keys.length === 0 ? scope.recurring : new Map(scope.recurring).set(name, cte);
  walk(found, right, { ...scope, ctes: new Map(ctes).set(name, cte), recurring });
}

function walkTableRef(found: Found, node: JsonObject, scope: Scope): void {
  const type = textOf(node["type"]);
  const position = positionOf(node);
  if (!TABLE_REFS.has(type)) throw new QueryRefused(`${type} is not allowed in a query`, position);
  if (type === "BASE_TABLE") {
    useTable(found, node, scope);
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

function useTable(found: Found, node: JsonObject, scope: Scope): void {
  const position = positionOf(node);
  const name = textOf(node["table_name"]);
  const schema = textOf(node["schema_name"]);
  const catalog = textOf(node["catalog_name"]);
  if (catalog !== "" && (foldName(catalog) !== CATALOG_NAME || schema === "")) {
    throw new QueryRefused("a table is named `table` or `database.table`, not with three parts", position);
  }
  checkDatabase(schema, position);
  const at = node["at_clause"];
  const cte = catalog === "" ? cteOf(schema, foldName(name), scope) : undefined;
  if (cte !== undefined) {
    if (isObject(at)) throw new QueryRefused(`AT takes a table, and ${JSON.stringify(name)} is a CTE`, position);
    found.bindings.set(node, { kind: "cte", cte, recurring: schema !== "" });
    return;
  }
  const use: TableUse = { name, schema, position, bounds: [], conditions: [], needsAllColumns: true };
  if (isObject(at)) use.travel = travelOf(at, position);
  const near = nearest(name, scope.ctes.keys());
  if (schema === "" && near !== undefined) use.cte = near;
  // The reference is found again by its position in the list when bounds are looked for; see `findBounds`.
  found.bindings.set(node, { kind: "table", use: found.tables.length });
  found.tables.push(use);
}

/** Whether there is such a database, and for whom, is said where the catalog is; a path or a glob is never looked up. */
function checkDatabase(schema: string, position: number | undefined): void {
  if (schema === "" || isSystemSchema(schema) || isName(schema)) return;
  throw new QueryRefused("no database can be called that: names have letters, digits, _ and -", position);
}

/** DuckDB's own name for the rows so far of a CTE with `USING KEY`. */
const RECURRING = "recurring";

function cteOf(schema: string, name: string, { ctes, recurring }: Scope): number | undefined {
  if (schema === "") return ctes.get(name);
  return foldName(schema) === RECURRING ? recurring.get(name) : undefined;
}

/** The expression is evaluated before anything is resolved, so it is a constant. */
function travelOf(at: JsonObject, position: number | undefined): NonNullable<TableUse["travel"]> {
  const { unit, expr: expression } = at;
  if (isObject(expression) && isConstant(expression)) return { unit: textOf(unit), expression };
  throw new QueryRefused("AT takes a constant, such as 12 or TIMESTAMP '2026-01-31 12:00:00'", position);
}

/** DuckDB has more to show: its settings, its variables, the columns of everything that is attached. */
function checkShow(found: Found, node: JsonObject, position: number | undefined): void {
  if (isObject(node["query"])) return;
  const listing = listingOf(node);
  if (listing === undefined) {
    const known = "SHOW DATABASES, SHOW TABLES [FROM <database>], SHOW <table>, DESCRIBE and SUMMARIZE";
    throw new QueryRefused(`only ${known} are supported`, position);
  }
  if (listing.of === "tables") checkDatabase(listing.database ?? "", position);
  found.bindings.set(node, { kind: "listing", listing: found.listings.length });
  found.listings.push(listing);
}

function listingOf(node: JsonObject): Listing | undefined {
  const database = textOf(node["schema_name"]);
  const what = textOf(node["table_name"]).replaceAll('"', "").toLowerCase();
  if (textOf(node["catalog_name"]) !== "") return undefined;
  if (node["show_type"] === "SHOW_FROM") return what === "" && database !== "" ? { of: "tables", database } : undefined;
  if (database !== "") return undefined;
  if (what === "tables") return { of: "tables" };
  return what === "databases" ? { of: "databases" } : undefined;
}
