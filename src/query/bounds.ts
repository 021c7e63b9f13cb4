import { TIME_COLUMN } from "../format/types.ts";
import { foldName } from "../core/names.ts";
import type { Bound, TableUse } from "./table-use.ts";
import {
  anyNode,
  columnPath,
  isColumnRef,
  isObject,
  objectsOf,
  positionOf,
  textOf,
  type Json,
  type JsonObject,
} from "./tree.ts";

/**
 * Finds what a WHERE clause says about `at`, so that extents outside of it are never opened: conjuncts that compare
 * the column itself with an expression free of columns and subqueries. Anything less plain is left to DuckDB, which
 * applies the whole clause in any case; a bound here may be too wide, never too narrow.
 */
const OPERATORS: Readonly<Record<string, Bound["operator"]>> = {
  COMPARE_GREATERTHAN: ">",
  COMPARE_GREATERTHANOREQUALTO: ">=",
  COMPARE_LESSTHAN: "<",
  COMPARE_LESSTHANOREQUALTO: "<=",
  COMPARE_EQUAL: "=",
};

const FLIPPED = { ">": "<", ">=": "<=", "<": ">", "<=": ">=", "=": "=" } as const;

/** Joins under which a row that WHERE would drop may be dropped before joining (ASOF, POSITIONAL and ANTI differ). */
const PLAIN_JOINS = new Set(["INNER", "LEFT", "RIGHT", "FULL", "OUTER"]);
const PLAIN_REFS = new Set(["REGULAR", "CROSS", "NATURAL"]);

/** Adds bounds to those of `uses` (the tables of this SELECT and what is below it) that its FROM clause names. */
export function findBounds(select: JsonObject, uses: readonly TableUse[]): void {
  const from = select["from_table"];
  const where = select["where_clause"];
  if (!isObject(from) || !isObject(where)) return;
  const tables = plainTables(from);
  if (tables === undefined) return;
  for (const conjunct of conjuncts(where)) {
    for (const { path, bound } of boundsOf(conjunct)) {
      const table = ownerOf(path, tables);
      const use = uses.find((candidate) => candidate.position !== undefined && candidate.position === table?.position);
      use?.bounds.push(bound);
    }
  }
}

type NamedTable = { alias: string; position: number | undefined };

/** The base tables of a FROM clause made of plain joins; undefined when there is anything else in it. */
function plainTables(from: JsonObject): NamedTable[] | undefined {
  if (isObject(from["sample"])) return undefined;
  if (from["type"] === "JOIN") {
    if (!PLAIN_JOINS.has(textOf(from["join_type"])) || !PLAIN_REFS.has(textOf(from["ref_type"]))) return undefined;
    if (!isObject(from["left"]) || !isObject(from["right"])) return undefined;
    const left = plainTables(from["left"]);
    const right = plainTables(from["right"]);
    return left === undefined || right === undefined ? undefined : [...left, ...right];
  }
  const renamed = from["column_name_alias"];
  if (from["type"] !== "BASE_TABLE" || (Array.isArray(renamed) && renamed.length > 0)) return undefined;
  return [{ alias: textOf(from["alias"]) || textOf(from["table_name"]), position: positionOf(from) }];
}

function ownerOf(path: readonly string[], tables: readonly NamedTable[]): NamedTable | undefined {
  if (path.length === 1) return tables.length === 1 ? tables[0] : undefined;
  const owners = tables.filter((table) => foldName(table.alias) === foldName(path[0] ?? ""));
  return path.length === 2 && owners.length === 1 ? owners[0] : undefined;
}

function conjuncts(node: JsonObject): JsonObject[] {
  if (node["class"] !== "CONJUNCTION" || node["type"] !== "CONJUNCTION_AND") return [node];
  return objectsOf(node["children"]).flatMap(conjuncts);
}

type Found = { path: string[]; bound: Bound };

function boundsOf(node: JsonObject): Found[] {
  if (node["class"] === "BETWEEN") {
    const path = timePath(node["input"]);
    if (path === undefined) return [];
    return [...boundOn(path, ">=", node["lower"]), ...boundOn(path, "<=", node["upper"])];
  }
  const operator = node["class"] === "COMPARISON" ? OPERATORS[textOf(node["type"])] : undefined;
  if (operator === undefined) return [];
  const left = timePath(node["left"]);
  if (left !== undefined) return boundOn(left, operator, node["right"]);
  const right = timePath(node["right"]);
  return right === undefined ? [] : boundOn(right, FLIPPED[operator], node["left"]);
}

function timePath(node: Json | undefined): string[] | undefined {
  if (!isObject(node) || !isColumnRef(node)) return undefined;
  const path = columnPath(node);
  return foldName(path.at(-1) ?? "") === TIME_COLUMN ? path : undefined;
}

/** SQL keywords that stand for a moment and come as column references. */
const MOMENTS = new Set(["current_timestamp", "current_date", "localtimestamp"]);

function boundOn(path: string[], operator: Bound["operator"], node: Json | undefined): Found[] {
  if (!isObject(node)) return [];
  const varies = anyNode(node, (part) => {
    if (isColumnRef(part)) return !MOMENTS.has(columnPath(part).join(".").toLowerCase());
    return ["SUBQUERY", "WINDOW", "LAMBDA", "POSITIONAL_REFERENCE", "STAR"].includes(textOf(part["class"]));
  });
  return varies ? [] : [{ path, bound: { operator, expression: node } }];
}
