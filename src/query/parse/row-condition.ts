import { quoteIdentifier } from "../../io/duckdb/duckdb.ts";
import type { QuotedText } from "./quote-at.ts";
import { parseTree, type SqlParser } from "./sql-tree.ts";
import {
  anyNode,
  columnPath,
  isObject,
  objectsOf,
  positionOf,
  QueryRefused,
  textOf,
  type Json,
  type JsonObject,
} from "./tree.ts";

/**
 * The condition of a deletion of rows, as a query. A condition is one expression over the columns of one table that says
 * the same of a row whenever it is asked: the deletion counts rows, then writes again those that it is not true of, and
 * what a dry run counted is what goes. So sub-queries, windows and what changes from one moment to the next (`now()`,
 * `random()`) are refused, and else it passes the gate of all queries (`check.ts`).
 *
 * It is parsed as the WHERE of a query that is otherwise ours. When the tree is just that, the expression is taken out of
 * it and put into the tree of the query that runs: a text that closes our parenthesis, or starts a clause or a comment,
 * gives another tree or none.
 */

/** Rows of one table by a condition: how many match in each extent, or all that do not. */
export type RowSelection = { table: string; rows: "matching" | "others" };

/** The extent that a row is of: longer than the name of any column. */
export const EXTENT_COLUMN = "extent".padEnd(256, "_");

const PREFIX = "SELECT 1 FROM ";

/** The condition in the query that it is parsed in; places are those of the condition. */
export function inWhere(condition: QuotedText, { table }: RowSelection): QuotedText {
  const before = `${PREFIX}${quoteIdentifier(table)} WHERE (\n`;
  const beforeBytes = Buffer.byteLength(before);
  const place = (byteOffset: number) => condition.place(byteOffset - beforeBytes);
  return { text: `${before}${condition.text}\n)`, place };
}

/** The query to run instead of the one that the condition was parsed in. Throws `QueryRefused`. */
export async function conditionQuery(
  parser: SqlParser,
  node: JsonObject,
  selection: RowSelection,
): Promise<JsonObject> {
  const condition = conditionOf(node, selection);
  const refused = refusedIn(condition);
  if (refused !== undefined) throw refused;
  const { tree } = await parseTree(parser, templateOf(selection));
  if (tree === undefined) throw new Error("the query of a deletion does not parse");
  const from = {
    ...(tree["from_table"] as JsonObject),
    query_location: (node["from_table"] as JsonObject)["query_location"] ?? 0,
  };
  return { ...(withCondition(tree, condition) as JsonObject), from_table: from };
}

const PLACEHOLDER = "engine_condition";

function templateOf({ table, rows }: RowSelection): string {
  const from = `FROM ${quoteIdentifier(table)}`;
  const extent = quoteIdentifier(EXTENT_COLUMN);
  if (rows === "matching") return `SELECT ${extent}, count(*) ${from} WHERE ${PLACEHOLDER} GROUP BY ${extent}`;
  // Of NULL it is not true: such a row stays.
  return `SELECT * ${from} WHERE CAST(${PLACEHOLDER} AS BOOLEAN) IS DISTINCT FROM (1 = 1)`;
}

function withCondition(value: Json, condition: JsonObject): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map((item) => withCondition(item, condition));
  if (!isObject(value) || "rawJSON" in value) return value;
  if (columnPath(value).join(".") === PLACEHOLDER) return condition;
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, withCondition(child, condition)]));
}

/** The condition, when the query is nothing but what we put around it. */
function conditionOf(node: JsonObject, { table }: RowSelection): JsonObject {
  const { where_clause: condition, from_table: from, select_list: list } = node;
  const ctes = node["cte_map"];
  const [one, more] = objectsOf(list);
  const isOurs =
    node["type"] === "SELECT_NODE" &&
    one?.["class"] === "CONSTANT" &&
    more === undefined &&
    isObject(from) &&
    from["type"] === "BASE_TABLE" &&
    from["table_name"] === table &&
    [from["schema_name"], from["catalog_name"], from["alias"]].every((name) => textOf(name) === "") &&
    !isObject(from["at_clause"]) &&
    isObject(ctes) &&
    [node["modifiers"], node["group_expressions"], node["group_sets"], ctes["map"]].every(isEmptyList) &&
    [from["sample"], node["sample"], node["having"], node["qualify"]].every((part) => !isObject(part));
  if (isOurs && isObject(condition)) return condition;
  throw new QueryRefused("a condition is one expression, as it stands after WHERE");
}

function isEmptyList(value: Json | undefined): boolean {
  return Array.isArray(value) && value.length === 0;
}

const CHANGING_FUNCTIONS = new Set(
  `age ago current_date current_localtime current_localtimestamp gen_random_uuid get_current_time get_current_timestamp
  now random setseed today transaction_timestamp uuid uuidv4 uuidv7`.split(/\s+/),
);
/** Keywords that come as column references. */
const CHANGING_WORDS = new Set(["current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"]);

const REFUSED_CLASSES: Readonly<Record<string, string>> = {
  PARAMETER: "values, no parameters",
  SUBQUERY: "no sub-query",
  WINDOW: "no window function",
  STAR: "columns by their names only",
  POSITIONAL_REFERENCE: "columns by their names only",
};

function refusedIn(condition: JsonObject): QueryRefused | undefined {
  let refused: QueryRefused | undefined;
  anyNode(condition, (node) => {
    const problem = problemOf(node);
    if (problem !== undefined) refused = new QueryRefused(problem, positionOf(node));
    return problem !== undefined;
  });
  return refused;
}

function problemOf(node: JsonObject): string | undefined {
  const kind = textOf(node["class"]);
  const taken = REFUSED_CLASSES[kind];
  if (taken !== undefined) return `the condition of a deletion takes ${taken}`;
  const word = columnPath(node).join(".").toLowerCase();
  const name = kind === "FUNCTION" ? textOf(node["function_name"]).toLowerCase() : CHANGING_WORDS.has(word) ? word : "";
  if (!CHANGING_FUNCTIONS.has(name) && !CHANGING_WORDS.has(name)) return undefined;
  return `the condition of a deletion says the same at every moment: write the value instead of ${name}`;
}
