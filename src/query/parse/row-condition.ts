import { quoteIdentifier } from "../../io/duckdb/duckdb.ts";
import { quoteAt, type QuotedText } from "./quote-at.ts";
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
 * The condition of a deletion of rows, of an exploration, or the filter of a live tail, as a query. A condition is one
 * expression over the columns of one table: sub-queries and windows are refused, and else it passes the gate of all
 * queries (`check.ts`). For deletions and tails it says the same of a row whenever it is asked: the deletion counts rows,
 * then writes again those that it is not true of, and what a dry run counted is what goes; a tail that goes on elsewhere
 * shows the same rows. So what changes from one moment to the next (`now()`, `random()`) is refused there, too.
 *
 * It is parsed as the WHERE of a query that is otherwise ours. When the tree is just that, the expression is taken out of
 * it and put into the tree of the query that runs: a text that closes our parenthesis, or starts a clause or a comment,
 * gives another tree or none.
 */

/**
 * Rows of one table by a condition: how many match in each extent, or all that do not; or those that tails show; or what
 * an exploration counts of them.
 */
export type RowSelection = DeletionSelection | TailSelection | ExploreSelection;

export type DeletionSelection = { table: string; rows: "matching" | "others" };

/**
 * Rows that one of several conditions is true of, in the order of their places, at most `limit`. The first column of the
 * result (`TAG_COLUMN`) has the place of the row and, where there are several conditions, the numbers of those that are
 * true of it, with spaces between.
 */
export type TailSelection = {
  table: string;
  rows: "tailed";
  /** The conditions after the first; each was accepted as a first one before. */
  more: readonly string[];
  limit: number;
};

/** Counts of those rows that the condition is true of, by a query of this program (`explore/explore-query.ts`). */
export type ExploreSelection = {
  table: string;
  rows: "explored";
  /** The query's text, with `CONDITION` in the place of the condition. */
  query: string;
  /** The text is what the translator made of `kqlCondition`. */
  isTranslated: boolean;
};

/** The extent that a row is of: longer than the name of any column. */
export const EXTENT_COLUMN = "extent".padEnd(256, "_");
/** The number of a row among those of its scan. */
export const PLACE_COLUMN = "place".padEnd(256, "_");
export const TAG_COLUMN = "tag".padEnd(256, "_");
/** What stands for the condition in the query of an exploration; as a column. */
export const CONDITION = placeholder(0);

const PREFIX = "SELECT 1 FROM ";

/** The condition in the query that it is parsed in; places are those of the condition. */
export function inWhere(condition: QuotedText, selection: RowSelection): QuotedText {
  if (selection.rows === "explored" && selection.isTranslated) return condition;
  const { table } = selection;
  const before = `${PREFIX}${quoteIdentifier(table)} WHERE (\n`;
  const beforeBytes = Buffer.byteLength(before);
  const place = (byteOffset: number) => condition.place(byteOffset - beforeBytes);
  return { text: `${before}${condition.text}\n)`, place };
}

/** A condition in KQL as a query, whose translation is nothing but its condition put after WHERE. */
export function kqlCondition(condition: string, table: string): string {
  const name = table.replaceAll("\\", "\\\\").replaceAll("'", "\\'");
  return `['${name}'] | where (\n${condition}\n) | project ${KQL_RESULT} = true`;
}

const KQL_RESULT = "engine_match";

/** The query to run instead of the one that the condition was parsed in. Throws `QueryRefused`. */
export async function conditionQuery(
  parser: SqlParser,
  node: JsonObject,
  selection: RowSelection,
): Promise<JsonObject> {
  const conditions = [checkedCondition(node, selection)];
  for (const text of selection.rows === "tailed" ? selection.more : []) {
    const { tree: other } = await parseTree(parser, inWhere(quoteAt(text), selection).text);
    if (other === undefined) throw new QueryRefused(ONE_EXPRESSION);
    conditions.push(checkedCondition(other, selection));
  }
  const { tree } = await parseTree(parser, templateOf(selection));
  if (tree === undefined) throw new Error("the query of a condition does not parse");
  if (selection.rows === "explored") return withConditions(withoutPlaces(tree), conditions) as JsonObject;
  const from = {
    ...(tree["from_table"] as JsonObject),
    query_location: (node["from_table"] as JsonObject)["query_location"] ?? 0,
  };
  return { ...(withConditions(tree, conditions) as JsonObject), from_table: from };
}

function checkedCondition(node: JsonObject, selection: RowSelection): JsonObject {
  const condition = conditionOf(node, selection);
  const refused = refusedIn(condition, selection.rows !== "explored");
  if (refused !== undefined) throw refused;
  return condition;
}

/** Longer than the name of any column. */
function placeholder(condition: number): string {
  return `engine_condition_${condition}`.padEnd(256, "_");
}

function templateOf(selection: RowSelection): string {
  const from = `FROM ${quoteIdentifier(selection.table)}`;
  const extent = quoteIdentifier(EXTENT_COLUMN);
  switch (selection.rows) {
    case "matching":
      return `SELECT ${extent}, count(*) ${from} WHERE ${placeholder(0)} GROUP BY ${extent}`;
    case "others":
      // Of NULL it is not true: such a row stays.
      return `SELECT * ${from} WHERE CAST(${placeholder(0)} AS BOOLEAN) IS DISTINCT FROM (1 = 1)`;
    case "tailed":
      return tailTemplate(selection, from);
    case "explored":
      return selection.query;
  }
}

function tailTemplate({ more, limit }: TailSelection, from: string): string {
  const place = quoteIdentifier(PLACE_COLUMN);
  const conditions = [undefined, ...more].map((_, i) => `CAST(${placeholder(i)} AS BOOLEAN)`);
  const marks = more.length === 0 ? [] : conditions.map((condition, i) => `CASE WHEN ${condition} THEN ' ${i}' END`);
  const tag = `concat(${[place, ...marks].join(", ")}) AS ${quoteIdentifier(TAG_COLUMN)}`;
  const where = conditions.join(" OR ");
  return `SELECT ${tag}, * EXCLUDE (${place}) ${from} WHERE ${where} ORDER BY ${place} LIMIT ${limit}`;
}

function withConditions(value: Json, conditions: readonly JsonObject[]): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map((item) => withConditions(item, conditions));
  if (!isObject(value) || "rawJSON" in value) return value;
  const name = columnPath(value).join(".");
  const condition = conditions.find((_, i) => name === placeholder(i));
  if (condition !== undefined) return condition;
  const filled = Object.fromEntries(
    Object.entries(value).map(([key, child]) => [key, withConditions(child, conditions)]),
  );
  return value["class"] === "CONJUNCTION" ? flattened(filled) : filled;
}

/** As the parser gives it: what is in an AND, or an OR, is no other one. */
function flattened(conjunction: JsonObject): JsonObject {
  const { type, children } = conjunction;
  const flat = objectsOf(children).flatMap((child) =>
    child["class"] === "CONJUNCTION" && child["type"] === type ? objectsOf(child["children"]) : [child],
  );
  return { ...conjunction, children: flat };
}

/** Without the places of expressions, which are none of the user's text. Mentions of tables are told apart by theirs. */
function withoutPlaces(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(withoutPlaces);
  if (!isObject(value) || "rawJSON" in value) return value;
  const isPlaced = typeof value["class"] === "string" && "query_location" in value;
  const own = isPlaced ? { ...value, query_location: Number.MAX_SAFE_INTEGER } : value;
  return Object.fromEntries(Object.entries(own).map(([key, child]) => [key, withoutPlaces(child)]));
}

const ONE_EXPRESSION = "a condition is one expression, as it stands after WHERE";

/** The condition, when the query is nothing but what we put around it. */
function conditionOf(node: JsonObject, selection: RowSelection): JsonObject {
  const { table } = selection;
  const isTranslated = selection.rows === "explored" && selection.isTranslated;
  const { where_clause: condition, from_table: from, select_list: list } = node;
  const ctes = node["cte_map"];
  const [one, more] = objectsOf(list);
  const isOurs =
    node["type"] === "SELECT_NODE" &&
    one?.["class"] === (isTranslated ? "CAST" : "CONSTANT") &&
    (!isTranslated || textOf(one["alias"]) === KQL_RESULT) &&
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
  throw new QueryRefused(ONE_EXPRESSION);
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

function refusedIn(condition: JsonObject, isSteady: boolean): QueryRefused | undefined {
  let refused: QueryRefused | undefined;
  anyNode(condition, (node) => {
    const problem = problemOf(node, isSteady);
    if (problem !== undefined) refused = new QueryRefused(problem, positionOf(node));
    return problem !== undefined;
  });
  return refused;
}

function problemOf(node: JsonObject, isSteady: boolean): string | undefined {
  const kind = textOf(node["class"]);
  const taken = REFUSED_CLASSES[kind];
  if (taken !== undefined) return `a condition takes ${taken}`;
  if (!isSteady) return undefined;
  const word = columnPath(node).join(".").toLowerCase();
  const name = kind === "FUNCTION" ? textOf(node["function_name"]).toLowerCase() : CHANGING_WORDS.has(word) ? word : "";
  if (!CHANGING_FUNCTIONS.has(name) && !CHANGING_WORDS.has(name)) return undefined;
  return `a condition says the same at every moment: write the value instead of ${name}`;
}
