import { TIME_COLUMN } from "../../format/types.ts";
import { foldName } from "../../core/names.ts";
import { isConstant } from "../parse/constant-expression.ts";
import { conditionOf } from "./predicates.ts";
import type { Bound, TableUse } from "./table-use.ts";
import { topOf } from "./top.ts";
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
 * Finds what a WHERE clause says about the tables of its FROM clause, so that extents without a row of interest are
 * never opened: bounds on `at` (conjuncts that compare the column itself with an expression free of columns and
 * subqueries), how many rows matter of those within them (`top.ts`), and conditions on other columns (`predicates.ts`). Anything less plain is left to DuckDB, which applies
 * the whole clause in any case; what is found here may be too wide, never too narrow.
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

/**
 * Adds what is found to those of `uses` (the tables of this SELECT and what is below it) that its FROM clause names. No
 * more than `wantedRows` of its rows are looked at.
 */
export function findBounds(select: JsonObject, uses: readonly TableUse[], wantedRows?: number): void {
  const from = select["from_table"];
  const where = select["where_clause"];
  // A sample is taken before WHERE, so rows that it drops still count.
  if (!isObject(from) || isObject(select["sample"])) return;
  const tables = plainTables(from);
  if (tables === undefined) return;
  const mayBeNull = hasOuterJoin(from);
  let hasOnlyBounds = true;
  for (const conjunct of isObject(where) ? conjuncts(where) : []) {
    const found = boundsOf(conjunct);
    const owners = found.map(({ path }) => useOf(ownerOf(path, tables), uses));
    for (const [i, { bound }] of found.entries()) owners[i]?.bounds.push(bound);
    hasOnlyBounds &&= found.length > 0 && !owners.includes(undefined);
    if (found.length > 0) continue;
    for (const table of tables) {
      const columnOf = (path: readonly string[]) => (ownerOf(path, tables) === table ? path.at(-1) : undefined);
      const condition = conditionOf(conjunct, { columnOf, mayBeNull });
      if (condition !== undefined) useOf(table, uses)?.conditions.push(condition);
    }
  }
  const top = hasOnlyBounds ? topOf(select, wantedRows) : undefined;
  const use = useOf(tables[0], uses);
  if (top !== undefined && use !== undefined) use.top = top;
}

function useOf(table: NamedTable | undefined, uses: readonly TableUse[]): TableUse | undefined {
  return uses.find(({ position }) => position !== undefined && position === table?.position);
}

function hasOuterJoin(from: JsonObject): boolean {
  if (from["type"] !== "JOIN") return false;
  return (
    from["join_type"] !== "INNER" || [from["left"], from["right"]].some((side) => isObject(side) && hasOuterJoin(side))
  );
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

function boundOn(path: string[], operator: Bound["operator"], node: Json | undefined): Found[] {
  return isObject(node) && isConstant(node) ? [{ path, bound: { operator, expression: node } }] : [];
}
