import { foldName } from "../../core/names.ts";
import { PARQUET_WITHOUT_IDS } from "../../format/types.ts";
import { quoteIdentifier } from "../../io/duckdb/duckdb.ts";
import type { LocalExtent, ResolvedTable } from "../contract/tables.ts";
import { call } from "../parse/rewrite.ts";
import {
  anyNode,
  columnPath,
  isColumnRef,
  isObject,
  mapChildren,
  objectsOf,
  textOf,
  type Json,
  type JsonObject,
} from "../parse/tree.ts";

/**
 * Queries that read times as they are stored. A Parquet file of version 2 has microseconds, which a query's view turns
 * into nanoseconds (`format/parquet-times.ts`). To DuckDB that is an expression like any other: it takes `max(at)` from
 * the footer, and keeps row groups from being read for `ORDER BY at LIMIT n`, of columns of files alone.
 *
 * So there is a second view of such a table, which has the stored times as further columns, and two kinds of expressions
 * are rewritten to those, in each SELECT that reads the table and nothing else:
 *
 * - `max(at)` and `min(at)` become the time of the extreme of what is stored: the conversion is strictly increasing.
 * - `ORDER BY at LIMIT n` orders by the stored microseconds. Where some file has finer times these are rounded down,
 *   which never changes the order of two times, but may make them equal; so `at` itself comes second.
 *
 * Everything else in the SELECT stays as it is, `*` without the further columns. What is not plainly one of these is not
 * rewritten, and a rewritten query that does not bind runs as it was written.
 */
export type StoredTime = {
  /** The column. */
  name: string;
  /** Whether all rows have their time in `exact`; then the view has that alone. */
  isExact: boolean;
  /** Whether ordering by it spares reading. */
  ordersWell: boolean;
};

/** SQL of the further columns, of those rows that one part of a view has. */
export type TimeValues = {
  /** Microseconds, rounded down. */
  floor: string;
  /** The microseconds of times that a file has in whole microseconds, and no others; else NULL. */
  exact: string;
  /** The times of the other rows, in nanoseconds. */
  others: string;
};

type Hidden = keyof TimeValues;

/** Names of columns have no control characters. */
function hiddenName(column: string, hidden: Hidden): string {
  return `${column}\u001f${hidden}`;
}

function hiddenOf({ isExact }: StoredTime): readonly Hidden[] {
  return isExact ? ["exact"] : ["floor", "exact", "others"];
}

/** What a part of the view has of that column, besides the column. */
export function asStored(time: StoredTime, values: TimeValues): string[] {
  return hiddenOf(time).map((one) => `${values[one]} AS ${quoteIdentifier(hiddenName(time.name, one))}`);
}

/** The times of a table that it is worth to read as they are stored. */
export function storedTimesOf(table: ResolvedTable): StoredTime[] {
  const { columns, extents, needed, namesExtents, numberedFrom } = table;
  const inMicros = extents.filter(inMicroseconds);
  if (inMicros.length === 0 || namesExtents === true || numberedFrom !== undefined) return [];
  const times = columns.filter(({ name, type }) => type.kind === "timestamp" && needed?.includes(name) !== false);
  return times.flatMap(({ name }) => {
    const having = extents.filter((extent) => extent.columns.includes(name));
    const own = having.filter(inMicroseconds);
    if (own.length === 0) return [];
    const isExact = own.length === having.length && !own.some(({ inNanoseconds }) => inNanoseconds?.includes(name));
    // DuckDB leaves out row groups of older files by their nanoseconds; those of `tlm` it reads in any case.
    const older = having.filter((extent) => extent.format === "parquet" && !inMicroseconds(extent));
    return { name, isExact, ordersWell: rowsOf(older) < rowsOf(own) };
  });
}

function inMicroseconds({ format, formatVersion }: LocalExtent): boolean {
  return format === "parquet" && formatVersion > PARQUET_WITHOUT_IDS;
}

function rowsOf(extents: readonly LocalExtent[]): number {
  return extents.reduce((sum, { rows }) => sum + rows, 0);
}

/** A table by the name of its view, and the one that has stored times as well. */
export type StoredView = { view: string; stored: readonly StoredTime[] };

/** The tree with what is better read as it is stored, its tables named; undefined when there is nothing of that. */
export function readAsStored(tree: JsonObject, views: ReadonlyMap<string, StoredView>): JsonObject | undefined {
  if (views.size === 0) return undefined;
  const read = readIn(tree, views);
  return read === tree ? undefined : (read as JsonObject);
}

function readIn(value: Json, views: ReadonlyMap<string, StoredView>): Json {
  const inner = mapChildren(value, (child) => readIn(child, views));
  return isObject(inner) && inner["type"] === "SELECT_NODE" ? readSelect(inner, views) : inner;
}

/** A SELECT of one table. */
type Source = { alias: string; columns: ReadonlyMap<string, StoredTime> };

function readSelect(select: JsonObject, views: ReadonlyMap<string, StoredView>): JsonObject {
  const from = select["from_table"];
  const view = isObject(from) && from["type"] === "BASE_TABLE" ? views.get(textOf(from["table_name"])) : undefined;
  if (view === undefined || !isObject(from) || isObject(from["sample"]) || isObject(select["sample"])) return select;
  const alias = foldName(textOf(from["alias"]));
  const columns = new Map(view.stored.map((time) => [foldName(time.name), time]));
  const source = { alias, columns };
  if (isFilled(from["column_name_alias"]) || !isPlain(select, source)) return select;
  const read = withOrder(withExtremes(select, source), select, source);
  if (read === select) return select;
  const list = objectsOf(read["select_list"]).map((item) => withoutHidden(item, view.stored));
  return { ...read, select_list: list, from_table: { ...from, table_name: view.view } };
}

const QUERY_NODES = new Set(["SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"]);

function isQueryNode(node: JsonObject): boolean {
  return QUERY_NODES.has(textOf(node["type"]));
}

/**
 * Whether nothing in the SELECT could meet the further columns but a `*` of its list: neither the row of the table as a
 * value, nor `COLUMNS(…)` and its like. In the body of a lambda a name may be a parameter.
 */
function isPlain(select: JsonObject, { alias }: Source): boolean {
  const list = objectsOf(select["select_list"]);
  const { select_list: _list, from_table: _from, cte_map: _ctes, ...others } = select;
  const isOther = (node: JsonObject): boolean =>
    node["class"] === "LAMBDA" ||
    node["class"] === "STAR" ||
    node["class"] === "POSITIONAL_REFERENCE" ||
    (isColumnRef(node) && columnPath(node).length === 1 && foldName(columnPath(node)[0] ?? "") === alias);
  return !anyNode(others, isOther) && list.every((item) => isStar(item) || !anyNode(item, isOther));
}

function isStar(item: JsonObject): boolean {
  return item["class"] === "STAR" && item["columns"] !== true && !isObject(item["expr"]);
}

function isFilled(list: Json | undefined): boolean {
  return Array.isArray(list) && list.length > 0;
}

/** The column that an expression is, of those that are stored otherwise. */
function columnOf(node: JsonObject | undefined, { alias, columns }: Source): StoredTime | undefined {
  if (node === undefined || !isColumnRef(node)) return undefined;
  const path = columnPath(node).map(foldName);
  const isOwn = path.length === 1 || (path.length === 2 && path[0] === alias);
  return isOwn ? columns.get(path.at(-1) ?? "") : undefined;
}

/** Whether the name of the column is that of something else in the list, by which later parts of the SELECT know it. */
function isShadowed({ name }: StoredTime, select: JsonObject, source: Source): boolean {
  return objectsOf(select["select_list"]).some(
    (item) =>
      (foldName(textOf(item["alias"])) === foldName(name) && columnOf(item, source)?.name !== name) ||
      isFilled(item["replace_list"]) ||
      isFilled(item["rename_list"]),
  );
}

/** Of the parts of a SELECT that may have aggregates. */
function withExtremes(select: JsonObject, source: Source): JsonObject {
  return mapChildren(select, (part, key) => {
    if (key === "select_list") return extremesIn(part, source, () => true);
    const isLater = key === "having" || key === "qualify" || key === "modifiers";
    return isLater ? extremesIn(part, source, (time) => !isShadowed(time, select, source)) : part;
  }) as JsonObject;
}

function extremesIn(value: Json, source: Source, isMeant: (time: StoredTime) => boolean): Json {
  if (isObject(value) && isQueryNode(value)) return value;
  const time = isObject(value) ? extremeOf(value, source) : undefined;
  if (isObject(value) && time !== undefined && isMeant(time)) return extremeAsStored(value, time);
  return mapChildren(value, (child) => extremesIn(child, source, isMeant));
}

/** The column of which a call is the maximum or the minimum. */
function extremeOf(node: JsonObject, source: Source): StoredTime | undefined {
  const isExtreme =
    node["class"] === "FUNCTION" &&
    (node["function_name"] === "max" || node["function_name"] === "min") &&
    textOf(node["schema"]) === "" &&
    node["export_state"] !== true;
  const [column, more] = objectsOf(node["children"]);
  const order = node["order_bys"];
  if (!isExtreme || more !== undefined || (isObject(order) && isFilled(order["orders"]))) return undefined;
  return columnOf(column, source);
}

function extremeAsStored(node: JsonObject, { name, isExact }: StoredTime): JsonObject {
  const of = (hidden: Hidden): JsonObject => ({ ...node, alias: "", children: [hiddenColumn(name, hidden)] });
  const exact = call("engine_stored", [of("exact")]);
  const alias = textOf(node["alias"]);
  if (isExact) return { ...exact, alias };
  // Neither minds a NULL.
  const either = node["function_name"] === "max" ? "greatest" : "least";
  return { ...call(either, [exact, of("others")]), alias };
}

function hiddenColumn(name: string, hidden: Hidden): JsonObject {
  const column_names = [hiddenName(name, hidden)];
  return { class: "COLUMN_REF", type: "COLUMN_REF", alias: "", query_location: 0, column_names };
}

/** `select` as it was, whose names count, and what has become of it. */
function withOrder(changed: JsonObject, select: JsonObject, source: Source): JsonObject {
  const [order, limit, more] = objectsOf(select["modifiers"]);
  const isRowwise =
    order?.["type"] === "ORDER_MODIFIER" &&
    limit?.["type"] === "LIMIT_MODIFIER" &&
    more === undefined &&
    select["aggregate_handling"] === "STANDARD_HANDLING" &&
    !isFilled(select["group_expressions"]) &&
    !isFilled(select["group_sets"]) &&
    !isObject(select["having"]) &&
    !isObject(select["qualify"]);
  if (!isRowwise) return changed;
  const [first, ...others] = objectsOf(order["orders"]);
  const time = first === undefined ? undefined : orderedBy(first, select, source);
  if (first === undefined || time?.ordersWell !== true) return changed;
  const stored = { ...first, expression: hiddenColumn(time.name, time.isExact ? "exact" : "floor") };
  const orders = time.isExact ? [stored, ...others] : [stored, first, ...others];
  return { ...changed, modifiers: [{ ...order, orders }, limit] };
}

/** Here a name is first of all one that the list gives. */
function orderedBy({ expression }: JsonObject, select: JsonObject, source: Source): StoredTime | undefined {
  if (!isObject(expression) || !isColumnRef(expression)) return undefined;
  const [name = "", qualifier] = columnPath(expression).toReversed();
  const named = objectsOf(select["select_list"]).filter(({ alias }) => foldName(textOf(alias)) === foldName(name));
  const [item, more] = qualifier === undefined ? named : [];
  if (more !== undefined) return undefined;
  const time = columnOf(item ?? expression, source);
  return time === undefined || isShadowed(time, select, source) ? undefined : time;
}

/** `*` as it would be without the further columns. */
function withoutHidden(item: JsonObject, stored: readonly StoredTime[]): JsonObject {
  if (item["class"] !== "STAR") return item;
  const hidden = stored.flatMap((time) => hiddenOf(time).map((one) => hiddenName(time.name, one)));
  const excluded = item["exclude_list"];
  return { ...item, exclude_list: [...(Array.isArray(excluded) ? (excluded as readonly Json[]) : []), ...hidden] };
}
