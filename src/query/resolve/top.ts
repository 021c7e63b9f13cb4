import { TIME_COLUMN } from "../../format/types.ts";
import { foldName } from "../../core/names.ts";
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
 * answer. Extents that lie wholly beyond the first n rows need not be read.
 */
export function topOf(select: JsonObject): Top | undefined {
  const [order, limit, more] = objectsOf(select["modifiers"]);
  const from = select["from_table"];
  const isPlain =
    order?.["type"] === "ORDER_MODIFIER" &&
    limit?.["type"] === "LIMIT_MODIFIER" &&
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
  const count = integerOf(limit["limit"]);
  const offset = isObject(limit["offset"]) ? integerOf(limit["offset"]) : 0;
  if (count === undefined || offset === undefined || count + offset < 1) return undefined;
  return { rows: count + offset, newest: by["type"] === "DESCENDING" };
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
