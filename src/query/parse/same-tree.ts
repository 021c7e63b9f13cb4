import { isObject, objectsOf, textOf, type Json, type JsonObject } from "./tree.ts";

/**
 * Compares a parsed tree with the one that its text was made of. They are the same when they differ in positions alone;
 * then the result leads from positions in the text to positions in the tree, which are those of the user's own text.
 * Undefined when anything else differs.
 */
export function matchTrees(expected: JsonObject, parsed: JsonObject): ReadonlyMap<number, number> | undefined {
  const positions = new Map<number, number>();
  return isSame(expected, parsed, positions) ? positions : undefined;
}

function isSame(expected: Json | undefined, parsed: Json | undefined, positions: Map<number, number>): boolean {
  if (expected === parsed) return true;
  if (Array.isArray(expected)) {
    const items = expected as readonly Json[];
    const others = Array.isArray(parsed) ? (parsed as readonly Json[]) : undefined;
    return items.length === others?.length && items.every((item, i) => isSame(item, others[i], positions));
  }
  if (!isObject(expected) || !isObject(parsed)) return false;
  if (isExact(expected) || isExact(parsed)) return isExact(expected) && expected["rawJSON"] === parsed["rawJSON"];
  return isSameObject(withoutFrame(expected), withoutFrame(parsed), positions);
}

function isSameObject(expected: JsonObject, parsed: JsonObject, positions: Map<number, number>): boolean {
  const keys = Object.keys(parsed);
  if (keys.length !== Object.keys(expected).length) return false;
  for (const key of keys) {
    if (key === "query_location") addPosition(expected[key], parsed[key], positions);
    else if (key === EXCLUDED && isSameSet(expected[key], parsed[key])) continue;
    else if (!(key in expected) || !isSame(expected[key], parsed[key], positions)) return false;
  }
  return true;
}

/** Of a star. DuckDB keeps these names in a hash table, in whose order it gives them. */
const EXCLUDED = "exclude_list";

function isSameSet(expected: Json | undefined, parsed: Json | undefined): boolean {
  const [names, others] = [expected, parsed].map((list) =>
    Array.isArray(list) ? (list as readonly Json[]).map((name) => JSON.stringify(name)).sort() : [],
  );
  return names !== undefined && names.length > 0 && names.join() === others?.join();
}

/** A number that a double does not hold: see `exactNumber`. */
function isExact(value: JsonObject): boolean {
  return "rawJSON" in value;
}

function addPosition(expected: Json | undefined, parsed: Json | undefined, positions: Map<number, number>): void {
  // Several nodes begin at one place; the outermost of them comes first, and is what an error means.
  if (typeof expected === "number" && typeof parsed === "number" && !positions.has(parsed)) {
    positions.set(parsed, expected);
  }
}

/** DuckDB writes `VALUES …` as `SELECT * FROM (VALUES …) AS valueslist`, which parses with that SELECT around it. */
const VALUES_ALIAS = "valueslist";

function withoutFrame(node: JsonObject): JsonObject {
  if (node["type"] !== "SUBQUERY" || textOf(node["alias"]) !== VALUES_ALIAS || node["sample"] !== null) return node;
  const renamed = node["column_name_alias"];
  const statement = node["subquery"];
  const select = isObject(statement) ? statement["node"] : undefined;
  if (!Array.isArray(renamed) || renamed.length > 0 || !isObject(select) || !isBareStar(select)) return node;
  const from = select["from_table"];
  if (!isObject(from)) return node;
  const list = withoutFrame(from);
  return list["type"] === "EXPRESSION_LIST" && textOf(list["alias"]) === VALUES_ALIAS ? list : node;
}

/** `SELECT * FROM …` and nothing else. */
function isBareStar(select: JsonObject): boolean {
  const [star, more] = objectsOf(select["select_list"]);
  const { from_table: _from, select_list: _list, cte_map: ctes, type, aggregate_handling: handling, ...rest } = select;
  return (
    type === "SELECT_NODE" &&
    more === undefined &&
    star !== undefined &&
    star["class"] === "STAR" &&
    isEmpty(star, ["relation_name", "exclude_list", "replace_list", "qualified_exclude_list", "rename_list", "expr"]) &&
    star["columns"] === false &&
    handling === "STANDARD_HANDLING" &&
    isObject(ctes) &&
    isEmpty(ctes, ["map"]) &&
    isEmpty(rest, Object.keys(rest))
  );
}

function isEmpty(node: JsonObject, keys: readonly string[]): boolean {
  return keys.every((key) => {
    const value = node[key];
    return value === null || value === undefined || value === "" || (Array.isArray(value) && value.length === 0);
  });
}
