import { foldName } from "../../core/names.ts";
import type { TableShape } from "../contract/tables.ts";
import { isInstant } from "../parse/rewrite.ts";
import { columnPath, isColumnRef, isObject, objectsOf, textOf, type Json, type JsonObject } from "../parse/tree.ts";

/**
 * The folded names under which a query knows instants: `timestamp` columns of its tables, and the aliases that pass one
 * on (`SELECT max(at) AS newest`, `WITH q(a, b) AS …`, `FROM logs AS l(a, b)`), through any number of subqueries.
 * Names are taken without regard to scope: where one turns out to be something else, the rewritten query does not
 * bind, and the text runs as it was written.
 */
export function instantNames(node: JsonObject, tables: readonly TableShape[]): ReadonlySet<string> {
  const timestamps = tables.flatMap(({ columns }) => columns.filter(({ type }) => type.kind === "timestamp"));
  const found: Found = { names: new Set(timestamps.map(({ name }) => foldName(name))), shapes: new Map() };
  for (const { name, columns } of tables) {
    found.shapes.set(
      foldName(name),
      columns.map((column) => column.name),
    );
  }
  for (let size = -1; size !== found.names.size;) {
    size = found.names.size;
    collect(node, found);
  }
  return found.names;
}

/**
 * Whether a name of an instant is also that of a plain cast to another type (`at::DATE AS at`). DuckDB takes a date for
 * an instant, so a rewritten query would bind, and answer with an instant where there is a wall clock.
 */
export function hasNamesakes(value: Json, names: ReadonlySet<string>): boolean {
  if (Array.isArray(value)) return (value as readonly Json[]).some((item) => hasNamesakes(item, names));
  if (!isObject(value)) return false;
  const isNamesake = (item: JsonObject | undefined, name: string): boolean =>
    item?.["class"] === "CAST" && names.has(foldName(name)) && !isInstant(item, { timestampColumns: names });
  if (objectsOf(value["select_list"]).some((item) => isNamesake(item, textOf(item["alias"])))) return true;
  const items = itemsOf(value["subquery"] ?? value["query"]);
  const renamed = [...textsOf(value["column_name_alias"]), ...textsOf(value["aliases"])];
  if (renamed.some((name, i) => isNamesake(items[i], name))) return true;
  return Object.values(value).some((child) => hasNamesakes(child, names));
}

/** `shapes` are the columns of tables and CTEs by folded name; a CTE takes the place of a table. */
type Found = { names: Set<string>; shapes: Map<string, readonly string[]> };

function collect(value: Json, found: Found): void {
  if (Array.isArray(value)) for (const item of value as readonly Json[]) collect(item, found);
  if (!isObject(value)) return;
  for (const child of Object.values(value)) collect(child, found);
  for (const item of objectsOf(value["select_list"])) if (passesOn(item, found)) add(textOf(item["alias"]), found);
  const ctes = value["cte_map"];
  for (const cte of objectsOf(isObject(ctes) ? ctes["map"] : undefined)) collectCte(cte, found);
  const renamed = textsOf(value["column_name_alias"]);
  const items = itemsOf(value["subquery"]);
  const columns = found.shapes.get(foldName(textOf(value["table_name"]))) ?? [];
  for (const [i, name] of renamed.entries()) {
    if (passesOn(items[i], found) || found.names.has(foldName(columns[i] ?? ""))) add(name, found);
  }
}

function collectCte({ key, value }: JsonObject, found: Found): void {
  if (!isObject(value)) return;
  const aliases = textsOf(value["aliases"]);
  const items = itemsOf(value["query"]);
  for (const [i, name] of aliases.entries()) if (passesOn(items[i], found)) add(name, found);
  const own = items.map((item) => textOf(item["alias"]) || (isColumnRef(item) ? (columnPath(item).at(-1) ?? "") : ""));
  found.shapes.set(foldName(textOf(key)), [...aliases, ...own.slice(aliases.length)]);
}

function passesOn(item: JsonObject | undefined, { names }: Found): boolean {
  return item !== undefined && isInstant(item, { timestampColumns: names });
}

function add(name: string, found: Found): void {
  if (name !== "") found.names.add(foldName(name));
}

/** What a statement selects, in order, as far as the places are certain. */
function itemsOf(statement: Json | undefined): JsonObject[] {
  let select = isObject(statement) ? statement["node"] : undefined;
  while (isObject(select) && isObject(select["left"])) select = select["left"];
  const items = objectsOf(isObject(select) ? select["select_list"] : undefined);
  const star = items.findIndex((item) => item["class"] === "STAR");
  return star === -1 ? items : items.slice(0, star);
}

function textsOf(value: Json | undefined): string[] {
  return Array.isArray(value) ? (value as readonly Json[]).map(textOf) : [];
}
