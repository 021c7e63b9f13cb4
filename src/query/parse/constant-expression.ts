import { columnPath, isColumnRef, isObject, objectsOf, textOf, type JsonObject } from "./tree.ts";

/** SQL keywords that stand for a moment and come as column references. */
const MOMENTS = new Set(["current_timestamp", "current_date", "localtimestamp"]);

/** Pure, and as cheap as their arguments are long: what is evaluated before a query runs calls no others. */
export const CONSTANT_FUNCTIONS: ReadonlySet<string> = new Set(
  `+ - * / // % || abs ago ceil ceiling concat date_add date_part date_sub date_trunc datetrunc epoch epoch_ms epoch_ns
  epoch_us floor get_current_timestamp greatest last_day least lower make_date make_timestamp make_timestamp_ms
  make_timestamp_ns make_timestamptz now nullif round strptime time_bucket timezone to_centuries to_days to_decades
  to_hours to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp
  to_weeks to_years today transaction_timestamp trim trunc try_strptime upper`.split(/\s+/),
);

/**
 * Whether an expression may be evaluated before the query runs: literals, casts, and a short list of functions of such.
 * It has one value for all rows of the query, and compares like any value of its type (a collation would change that).
 * Everything else is left to the query.
 */
export function isConstant(node: JsonObject): boolean {
  if (isColumnRef(node)) return MOMENTS.has(columnPath(node).join(".").toLowerCase());
  switch (textOf(node["class"])) {
    case "CONSTANT":
      return true;
    case "CAST":
      return isObject(node["child"]) && isConstant(node["child"]);
    case "OPERATOR":
      return node["type"] === "OPERATOR_COALESCE" && objectsOf(node["children"]).every(isConstant);
    case "FUNCTION":
      return (
        CONSTANT_FUNCTIONS.has(textOf(node["function_name"]).toLowerCase()) &&
        objectsOf(node["children"]).every(isConstant) &&
        node["filter"] === null
      );
    default:
      return false;
  }
}
