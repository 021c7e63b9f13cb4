import { EngineError } from "../core/errors.ts";
import { foldName } from "../core/names.ts";
import { nearest } from "../core/nearest.ts";
import type { QuotedText } from "./quote-at.ts";
import {
  SYSTEM_SCHEMA,
  SYSTEM_TABLE_NAMES,
  SYSTEM_VIEWS_SCHEMA,
  systemTableNamed,
  type SystemTableName,
} from "./system-tables.ts";
import type { TableUse } from "./table-use.ts";
import { tokenize } from "./tokens.ts";
import { columnPath, isColumnRef, isObject, positionOf, QueryRefused, textOf, type Json } from "./tree.ts";

/**
 * `system.tables` in a query's text. DuckDB has a database `system` of its own and calls the name ambiguous, so
 * the word `system` is exchanged for the name of our schema before the text runs, at exactly the places where the
 * parser saw a table of that schema or a column of such a table.
 */
export function isSystemUse(use: TableUse): boolean {
  return foldName(use.schema) === SYSTEM_SCHEMA;
}

/** The system tables among the mentions. Throws `table_not_found` for a name that is none, and for time travel. */
export function systemTablesOf(uses: readonly TableUse[], quoted: QuotedText): SystemTableName[] {
  const found = new Set<SystemTableName>();
  for (const use of uses) {
    if (!isSystemUse(use)) continue;
    const name = systemTableNamed(use.name);
    if (name === undefined) throw unknownSystemTable(use, quoted);
    if (use.travel !== undefined) {
      throw new QueryRefused(`system.${name} shows the present only: it has no AT`, use.position);
    }
    found.add(name);
  }
  return [...found];
}

function unknownSystemTable(use: TableUse, quoted: QuotedText): EngineError {
  const near = nearest(use.name, SYSTEM_TABLE_NAMES);
  const hint =
    near === undefined
      ? `; there are ${SYSTEM_TABLE_NAMES.map((name) => `system.${name}`).join(", ")}`
      : `; did you mean system.${near}?`;
  return new EngineError("table_not_found", `there is no table ${JSON.stringify(`system.${use.name}`)}${hint}`, {
    ...(use.position === undefined ? {} : quoted.place(use.position)),
    ...(near === undefined ? {} : { suggestion: `system.${near}` }),
  });
}

/** The text with our schema's name in the place of `system`; positions in it still lead back to the original. */
export function withSystemSchema(quoted: QuotedText, tree: Json): QuotedText {
  const places = new Set<number>();
  collectPlaces(tree, places);
  const bytes = Buffer.from(quoted.text, "utf8");
  const swaps = [...places].sort((a, b) => a - b).map((start) => swapAt(bytes, start));
  let text = "";
  let copied = 0;
  for (const { start, length } of swaps) {
    text += bytes.toString("utf8", copied, start) + SYSTEM_VIEWS_SCHEMA;
    copied = start + length;
  }
  text += bytes.toString("utf8", copied);
  return { text, place: (byteOffset) => quoted.place(originOf(swaps, byteOffset)) };
}

type Swap = { start: number; length: number };

/** The word `system` or the quoted name `"system"` at the place. */
function swapAt(bytes: Buffer, start: number): Swap {
  const near = bytes.toString("utf8", start, start + SYSTEM_SCHEMA.length + 2);
  const [token] = tokenize(near);
  const source = token === undefined ? "" : near.slice(token.start, token.end);
  if (token?.start !== 0 || foldName(source.replaceAll('"', "")) !== SYSTEM_SCHEMA) {
    throw new QueryRefused("a system table cannot be used here", start);
  }
  return { start, length: source.length };
}

function originOf(swaps: readonly Swap[], byteOffset: number): number {
  let grown = 0;
  for (const { start, length } of swaps) {
    if (start + grown >= byteOffset) break;
    const growth = SYSTEM_VIEWS_SCHEMA.length - length;
    // Within the exchanged word itself every place is its start.
    if (byteOffset < start + grown + SYSTEM_VIEWS_SCHEMA.length) return start;
    grown += growth;
  }
  return byteOffset - grown;
}

function collectPlaces(value: Json, places: Set<number>): void {
  if (Array.isArray(value)) for (const item of value as readonly Json[]) collectPlaces(item, places);
  if (!isObject(value)) return;
  const isTable = value["type"] === "BASE_TABLE" && foldName(textOf(value["schema_name"])) === SYSTEM_SCHEMA;
  const position = isTable || isSystemColumn(columnPath(value), isColumnRef(value)) ? positionOf(value) : undefined;
  if (position !== undefined) places.add(position);
  else if (isTable) throw new QueryRefused("a system table cannot be used here");
  for (const child of Object.values(value)) collectPlaces(child, places);
}

/** `system.tables.name`; with fewer parts it is a column, or a field, of something called `system`. */
function isSystemColumn([schema = "", table = "", ...rest]: readonly string[], isColumn: boolean): boolean {
  if (!isColumn || rest.length === 0) return false;
  return foldName(schema) === SYSTEM_SCHEMA && systemTableNamed(table) !== undefined;
}
