import { anyNode, columnPath, isColumnRef, textOf, type JsonObject } from "./tree.ts";

/** SQL keywords that stand for a moment and come as column references. */
const MOMENTS = new Set(["current_timestamp", "current_date", "localtimestamp"]);

/** What has another value from row to row, or is a value only together with rows. */
const VARYING = new Set(["SUBQUERY", "WINDOW", "LAMBDA", "LAMBDA_REF", "POSITIONAL_REFERENCE", "STAR", "COLLATE"]);

/** Functions that give another value on each call; a test compares them with those that DuckDB calls volatile. */
export const VOLATILE_FUNCTIONS: ReadonlySet<string> = new Set([
  "error",
  "gen_random_uuid",
  "random",
  "setseed",
  "unnest",
  "uuid",
  "uuidv4",
  "uuidv7",
]);

/**
 * Whether an expression has one value for all rows of the query, and compares like any value of its type (a collation
 * would change that).
 */
export function isFixed(node: JsonObject): boolean {
  return !anyNode(node, (part) => {
    if (isColumnRef(part)) return !MOMENTS.has(columnPath(part).join(".").toLowerCase());
    if (part["class"] === "FUNCTION") return VOLATILE_FUNCTIONS.has(textOf(part["function_name"]).toLowerCase());
    return VARYING.has(textOf(part["class"]));
  });
}
