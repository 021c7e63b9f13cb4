/**
 * The parsed query as DuckDB's `json_serialize_sql` gives it: plain JSON. Expressions carry `class`, query nodes and
 * table references carry `type`.
 */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json };

/** What is wrong with a query, and where: a byte offset into the text that was parsed, where one is known. */
export class QueryRefused extends Error {
  readonly position: number | undefined;
  readonly suggestion: string | undefined;
  constructor(message: string, position?: number, suggestion?: string) {
    super(message);
    this.name = "QueryRefused";
    this.position = position;
    this.suggestion = suggestion;
  }
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function objectsOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? (value as readonly Json[]).filter(isObject) : [];
}

/** A number that is written with exactly these digits. TypeScript's library does not know `JSON.rawJSON` yet. */
export function exactNumber(digits: string): JsonObject {
  return (JSON as unknown as { rawJSON(text: string): JsonObject }).rawJSON(digits);
}

/** An integer as the parser's JSON has it. */
export function numberOf(value: bigint): Json {
  const digits = String(value);
  return String(Number(digits)) === digits ? Number(digits) : exactNumber(digits);
}

export function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

/** Where the node stands in the text; DuckDB writes 2^64-1 where it does not know. */
export function positionOf(node: JsonObject): number | undefined {
  const position = node["query_location"];
  return typeof position === "number" && position < Number.MAX_SAFE_INTEGER ? position : undefined;
}

export function isColumnRef(node: JsonObject): boolean {
  return node["class"] === "COLUMN_REF";
}

/** `["l", "at"]` for `l.at`. */
export function columnPath(node: JsonObject): string[] {
  const names = node["column_names"];
  return Array.isArray(names) ? (names as readonly Json[]).map(textOf) : [];
}

/** Whether any object in the tree satisfies the test. */
export function anyNode(value: Json | undefined, test: (node: JsonObject) => boolean): boolean {
  if (Array.isArray(value)) return (value as readonly Json[]).some((item) => anyNode(item, test));
  if (!isObject(value)) return false;
  return test(value) || Object.values(value).some((child) => anyNode(child, test));
}

/**
 * The value with every child mapped, or the same value if no child changes. `key` is the child's property; undefined for an
 * item of an array.
 */
export function mapChildren(value: Json, map: (child: Json, key: string | undefined) => Json): Json {
  if (Array.isArray(value)) {
    const items = (value as readonly Json[]).map((item) => map(item, undefined));
    return items.some((item, i) => item !== value[i]) ? items : value;
  }
  if (!isObject(value) || "rawJSON" in value) return value;
  const entries = Object.entries(value).map(([key, child]): [string, Json] => [key, map(child, key)]);
  return entries.some(([key, child]) => child !== value[key]) ? Object.fromEntries(entries) : value;
}
