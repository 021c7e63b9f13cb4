import { TIME_COLUMN } from "../../format/types.ts";
import { foldName } from "../../core/names.ts";
import { isConstant } from "../parse/constant-expression.ts";
import {
  anyNode,
  columnPath,
  isColumnRef,
  isObject,
  objectsOf,
  textOf,
  type Json,
  type JsonObject,
} from "../parse/tree.ts";

/** The rows with the newest or the oldest `at`, of those that the bounds leave. */
export type Top = { rows: number; newest: boolean };

/**
 * What `ORDER BY at [DESC] LIMIT n` over one table asks for, when every row that WHERE leaves comes out as one row of the
 * answer, or `max(at)` or `min(at)`, when nothing else of the table is in the answer. Extents that lie wholly beyond the
 * first n rows need not be read. Where nobody looks at more than `wantedRows` of the answer, that is a LIMIT, too.
 */
export function topOf(select: JsonObject, wantedRows?: number): Top | undefined {
  return firstRowsOf(select, wantedRows) ?? extremeOf(select);
}

function firstRowsOf(select: JsonObject, wantedRows?: number): Top | undefined {
  const [order, limit, more] = objectsOf(select["modifiers"]);
  const from = select["from_table"];
  const isPlain =
    order?.["type"] === "ORDER_MODIFIER" &&
    (limit === undefined ? wantedRows !== undefined : limit["type"] === "LIMIT_MODIFIER") &&
    more === undefined &&
    isObject(from) &&
    from["type"] === "BASE_TABLE" &&
    objectsOf(select["group_expressions"]).length === 0 &&
    objectsOf(select["group_sets"]).length === 0 &&
    !isObject(select["having"]) &&
    !isObject(select["qualify"]) &&
    !objectsOf(select["select_list"]).some(changesRows);
  if (!isPlain) return undefined;
  const [by] = objectsOf(order["orders"]);
  if (by === undefined || !isObject(by["expression"]) || !isTime(by["expression"])) return undefined;
  const count = limit === undefined ? wantedRows : integerOf(limit["limit"]);
  const offset = isObject(limit?.["offset"]) ? integerOf(limit["offset"]) : 0;
  if (count === undefined || offset === undefined || count + offset < 1) return undefined;
  return { rows: count + offset, newest: by["type"] === "DESCENDING" };
}

/** Functions of single values, which may stand around an extreme. */
const SCALARS = new Set(["+", "-", "date_trunc", "epoch", "epoch_ms", "epoch_us", "epoch_ns", "strftime"]);

function extremeOf(select: JsonObject): Top | undefined {
  const from = select["from_table"];
  const { select_list: list, where_clause: _where, from_table: _from, ...others } = select;
  const isPlain =
    isObject(from) &&
    from["type"] === "BASE_TABLE" &&
    objectsOf(select["modifiers"]).length === 0 &&
    // Expressions to group by are columns of this or another SELECT; an empty set is one group of all rows.
    objectsOf(select["group_expressions"]).length === 0 &&
    !anyNode(others, (node) => typeof node["class"] === "string");
  if (!isPlain) return undefined;
  const names = new Set<string>();
  const isWhole = objectsOf(list).every((item) => isOfExtremes(item, names));
  const [name, other] = [...names];
  return isWhole && other === undefined && name !== undefined ? { rows: 1, newest: name === "max" } : undefined;
}

/** Whether all that the expression takes of a row is in extremes of `at`, whose names are added. */
function isOfExtremes(node: JsonObject, names: Set<string>): boolean {
  if (isConstant(node)) return true;
  if (node["class"] === "CAST") return isObject(node["child"]) && isOfExtremes(node["child"], names);
  const name = textOf(node["function_name"]);
  if (node["class"] !== "FUNCTION" || isObject(node["filter"])) return false;
  const children = objectsOf(node["children"]);
  if (name !== "max" && name !== "min") {
    return SCALARS.has(name) && children.every((child) => isOfExtremes(child, names));
  }
  const [column, more] = children;
  names.add(name);
  return column !== undefined && more === undefined && isTime(column);
}

/** What makes several rows of one, or none, or looks at rows beyond the limit; or what takes the name of the column. */
function changesRows(item: JsonObject): boolean {
  if (foldName(textOf(item["alias"])) === TIME_COLUMN && !isTime(item)) return true;
  return anyNode(item, (node) => {
    if (node["class"] === "WINDOW" || node["class"] === "SUBQUERY") return true;
    if (node["class"] === "STAR") return node["columns"] === true || STAR_CHANGES.some((key) => isFilled(node[key]));
    return node["class"] === "FUNCTION" && /^un(?:nest|list)$/i.test(textOf(node["function_name"]));
  });
}

const STAR_CHANGES = ["replace_list", "rename_list"];

function isFilled(list: Json | undefined): boolean {
  return Array.isArray(list) && list.length > 0;
}

function isTime(node: JsonObject): boolean {
  return isColumnRef(node) && foldName(columnPath(node).at(-1) ?? "") === TIME_COLUMN;
}

function integerOf(node: Json | undefined): number | undefined {
  if (!isObject(node) || node["class"] !== "CONSTANT" || !isObject(node["value"])) return undefined;
  const { value } = node["value"];
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}
