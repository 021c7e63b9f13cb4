import { quoteIdentifier } from "../../io/duckdb/duckdb.ts";
import { matchTrees } from "./same-tree.ts";
import { parsedTree, type SqlParser } from "./sql-tree.ts";
import { isObject, objectsOf, QueryRefused, textOf, type Json, type JsonObject } from "./tree.ts";

/**
 * The text of a tree, for DuckDB to run. DuckDB's own printer is not to be trusted with what was checked: it leaves some
 * names without quotes, and writes a double as a decimal. So
 *
 * - what it may get wrong (names that are not plain words, everything in a star, doubles) is printed as a plain word,
 *   which is then exchanged for the text that it stands for;
 * - the text is parsed again, and counts only when it is one statement with exactly the tree that it was made of.
 */
export type PrintedTree = {
  sql: string;
  /** From a position in `sql` to the one that the tree has there, in bytes; undefined where nothing is known to begin. */
  placeOf: (position: number) => number | undefined;
};

/** Throws `QueryRefused` when the text of the tree would not parse back to it. */
export async function printTree(parser: SqlParser, tree: JsonObject): Promise<PrintedTree> {
  const marked = mark(tree);
  const printed = await parser.textOf(JSON.stringify(statementsOf(marked.tree)));
  const sql = marked.fill(printed.text);
  const positions = positionsOf(sql === printed.text ? printed.tree : await parser.treeOf(sql), tree);
  if (positions === undefined) throw new QueryRefused("the query has a form that cannot be run safely");
  return { sql, placeOf: (position) => positions.get(position) };
}

function positionsOf(json: string, tree: JsonObject): ReadonlyMap<number, number> | undefined {
  try {
    const { tree: parsed } = parsedTree(json);
    return parsed === undefined ? undefined : matchTrees(tree, parsed);
  } catch {
    // It does not even parse.
    return undefined;
  }
}

function statementsOf(node: Json): Json {
  return { error: false, statements: [{ node, named_param_map: [] }] };
}

type Marked = { tree: Json; fill(printed: string): string };

/** The tree with a plain word for everything that the printer may get wrong. */
function mark(tree: JsonObject): Marked {
  const prefix = unusedWord(tree);
  const texts: string[] = [];
  const marks = new Map<string, string>();
  const markOf = (text: string): string => {
    const known = marks.get(text) ?? `${prefix}${texts.push(text) - 1}_`;
    marks.set(text, known);
    return known;
  };
  const marked = markNode(tree, markOf, false);
  const pattern = new RegExp(`"?${prefix}(\\d+)_"?`, "g");
  return {
    tree: marked,
    fill: (printed) =>
      texts.length === 0 ? printed : printed.replaceAll(pattern, (_all, i) => texts[Number(i)] ?? ""),
  };
}

/** A word that is nowhere in the tree. */
function unusedWord(tree: JsonObject): string {
  let word = "engine_mark_";
  for (const json = JSON.stringify(tree); json.includes(word);) word += "x_";
  return word;
}

const PLAIN_WORD = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Texts in these places are no names: kinds, literals, and functions with names like `+`. */
const NOT_NAMES = new Set(["class", "type", "id", "value", "function_name", "unit", "null_order"]);

function markNode(value: Json, markOf: (text: string) => string, isStar: boolean): Json {
  if (typeof value === "string") {
    return value === "" || (!isStar && PLAIN_WORD.test(value)) ? value : markOf(quoteIdentifier(value));
  }
  if (Array.isArray(value)) {
    const items = (value as readonly Json[]).map((item) => markNode(item, markOf, isStar));
    return items.some((item, i) => item !== value[i]) ? items : value;
  }
  if (!isObject(value) || "rawJSON" in value) return value;
  const double = doubleOf(value);
  if (double !== undefined) return wordNode(value, markOf(double));
  if (value["type"] === "STRUCT_EXTRACT") return markField(value, markOf);
  const inStar = value["class"] === "STAR" || (isStar && typeof value["class"] !== "string");
  let changed = false;
  const entries = Object.entries(value).map(([key, child]): [string, Json] => {
    const other = NOT_NAMES.has(key) && typeof child === "string" ? child : markNode(child, markOf, inStar);
    changed ||= other !== child;
    return [key, other];
  });
  return changed ? Object.fromEntries(entries) : value;
}

/** `(s)."field"`: the printer writes the name of the field as if it were a literal. */
function markField(node: JsonObject, markOf: (text: string) => string): Json {
  const [struct, field] = objectsOf(node["children"]);
  const constant = field?.["value"];
  if (struct === undefined || field === undefined || !isObject(constant)) return node;
  const name = textOf(constant["value"]);
  const marked = PLAIN_WORD.test(name)
    ? field
    : { ...field, value: { ...constant, value: markOf(quoteIdentifier(name)) } };
  return { ...node, children: [markNode(struct, markOf, false), marked] };
}

/** The digits of a DOUBLE that the printer would write as a decimal, with an exponent, which makes them a double. */
function doubleOf(node: JsonObject): string | undefined {
  const constant = node["class"] === "CONSTANT" ? node["value"] : undefined;
  if (!isObject(constant) || !isObject(constant["type"]) || textOf(constant["type"]["id"]) !== "DOUBLE")
    return undefined;
  const { value } = constant;
  const digits = isObject(value) ? textOf(value["rawJSON"]) : typeof value === "number" ? String(value) : "";
  return digits === "" || /[eE]/.test(digits) ? undefined : `${digits}e0`;
}

function wordNode({ alias = "", query_location = 0 }: JsonObject, word: string): JsonObject {
  return { class: "COLUMN_REF", type: "COLUMN_REF", alias, query_location, column_names: [word] };
}
