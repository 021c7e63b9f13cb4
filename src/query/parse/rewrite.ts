import { foldName } from "../../core/names.ts";
import { bucketFloor, floorArguments, truncFloor } from "./fixed-width.ts";
import {
  columnPath,
  isColumnRef,
  isObject,
  mapChildren,
  numberOf,
  objectsOf,
  positionOf,
  textOf,
  type Json,
  type JsonObject,
} from "./tree.ts";

/**
 * Changes to the parsed tree that neither a view nor a macro can make:
 *
 * - a cast to TIMESTAMPTZ becomes one to TIMESTAMP_NS, which reads offsets as well, keeps nanoseconds, and compares
 *   with a `timestamp` column;
 * - `t + interval` and `t - interval`, where `t` is plainly a `timestamp` (a column of that type, `now()`, a function
 *   that passes one on), keep the nanoseconds that DuckDB's own operator drops;
 * - `date_trunc` and `time_bucket` of such a `t` to a fixed width become arithmetic (`fixed-width.ts`);
 * - averages of such a `t` are one again;
 * - `t AT TIME ZONE zone` for such a `t` says so, since the macro cannot choose for `max(at) AT TIME ZONE …`.
 *
 * Every node made here is one that the parser would make of its text (`print-tree.ts`).
 */
export type Rewrites = {
  /** Folded names of columns that are instants (`instant-names.ts`). */
  timestampColumns: ReadonlySet<string>;
  /** Of single columns, by where they stand in the text, whether they are: this goes before their names. */
  columns?: ReadonlyMap<number, boolean>;
};

/** The rewritten tree, or undefined when nothing had to change. */
export function rewriteQuery(node: JsonObject, rewrites: Rewrites): JsonObject | undefined {
  const changed = rewrite(node, rewrites);
  return changed === node ? undefined : (changed as JsonObject);
}

function rewrite(value: Json, rewrites: Rewrites): Json {
  const node = mapChildren(value, (child) => rewrite(child, rewrites));
  if (!isObject(node)) return node;
  if (node["class"] === "CAST") return rewriteCast(node);
  if (node["class"] === "FUNCTION") return rewriteCall(node, rewrites);
  return node;
}

const ZONED = "TIMESTAMP WITH TIME ZONE";
const NAMED_ZONE = /[A-Za-z]{2,}\/?[A-Za-z_/+-]*\s*$/;

function rewriteCast(node: JsonObject): JsonObject {
  const type = node["cast_type"];
  if (!isObject(type) || type["id"] !== ZONED) return node;
  const child = node["child"];
  const constant = isObject(child) && isObject(child["value"]) ? child["value"] : undefined;
  const instant = { id: "TIMESTAMP_NS", type_info: null };
  // Only the cast to TIMESTAMPTZ knows zones by name ('… Europe/Berlin').
  if (NAMED_ZONE.test(textOf(constant?.["value"]))) return { ...node, child: node, alias: "", cast_type: instant };
  return { ...node, cast_type: instant };
}

function rewriteCall(node: JsonObject, rewrites: Rewrites): JsonObject {
  const operator = textOf(node["function_name"]);
  const [left, right] = objectsOf(node["children"]);
  if (operator === "timezone" && right !== undefined && isInstant(right, rewrites)) {
    return { ...node, function_name: "engine_wall_clock", schema: "" };
  }
  const floor = right !== undefined && isInstant(right, rewrites) ? floorOf(node) : undefined;
  if (right !== undefined && floor !== undefined) return { ...floorCall(right, floor), alias: textOf(node["alias"]) };
  if (AVERAGES.has(operator) && left !== undefined && isInstant(left, rewrites)) return asInstant(node);
  if ((operator !== "+" && operator !== "-") || left === undefined || right === undefined) return node;
  if (isInterval(right) && isInstant(left, rewrites)) return shift(node, left, (micros) => [micros, right]);
  if (operator === "+" && isInterval(left) && isInstant(right, rewrites)) {
    return shift(node, right, (micros) => [left, micros]);
  }
  return node;
}

const TRUNCS = new Set(["date_trunc", "datetrunc"]);

/** How a call of two arguments rounds the second one down, if to a fixed width. */
function floorOf(node: JsonObject): bigint[] | undefined {
  const [width, , more] = objectsOf(node["children"]);
  if (width === undefined || more !== undefined || textOf(node["schema"]) !== "") return undefined;
  const name = textOf(node["function_name"]);
  const floor = TRUNCS.has(name) ? truncFloor(width) : name === "time_bucket" ? bucketFloor(width) : undefined;
  return floor === undefined ? undefined : floorArguments(floor);
}

function floorCall(moment: JsonObject, args: readonly bigint[]): JsonObject {
  return call("engine_floor", [moment, ...args.map(integer)]);
}

function integer(value: bigint): JsonObject {
  const id = BigInt.asIntN(32, value) === value ? "INTEGER" : "BIGINT";
  const type = { id, type_info: null };
  const constant = { type, is_null: false, value: numberOf(value) };
  return { class: "CONSTANT", type: "VALUE_CONSTANT", alias: "", query_location: 0, value: constant };
}

/** One shift for a chain of them: each mentions its moment twice, and a chain of chains would double with every link. */
function shift(node: JsonObject, moment: JsonObject, operands: (micros: JsonObject) => JsonObject[]): JsonObject {
  const [base, shifted] = moment["function_name"] === "engine_shift" ? objectsOf(moment["children"]) : [];
  const micros = shifted ?? call("engine_micros", [moment]);
  const children = [base ?? moment, { ...node, alias: "", children: operands(micros) }];
  return { ...call("engine_shift", children), alias: textOf(node["alias"]) };
}

/** A call as the parser makes one. */
export function call(name: string, children: JsonObject[]): JsonObject {
  return {
    class: "FUNCTION",
    type: "FUNCTION",
    alias: "",
    query_location: 0,
    function_name: name,
    schema: "",
    children,
    filter: null,
    order_bys: { type: "ORDER_MODIFIER", orders: [] },
    distinct: false,
    is_operator: false,
    export_state: false,
    catalog: "",
  };
}

const INTERVAL_FUNCTION =
  /^to_(?:microseconds|milliseconds|seconds|minutes|hours|days|weeks|months|quarters|years|decades|centuries|millennia)$/;

function isInterval(node: JsonObject): boolean {
  if (node["class"] === "CAST") return isObject(node["cast_type"]) && node["cast_type"]["id"] === "INTERVAL";
  if (node["class"] !== "FUNCTION") return false;
  const name = textOf(node["function_name"]);
  if (INTERVAL_FUNCTION.test(name)) return true;
  return (name === "*" || name === "-" || name === "/") && objectsOf(node["children"]).some(isInterval);
}

/** Aggregates that make a TIMESTAMP of a `timestamp`. */
const AVERAGES = new Set(["avg", "mean", "quantile_cont"]);

function asInstant(node: JsonObject): JsonObject {
  return { ...call("engine_instant", [{ ...node, alias: "" }]), alias: textOf(node["alias"]) };
}

const MOMENTS = new Set([
  "now",
  "ago",
  "get_current_timestamp",
  "transaction_timestamp",
  "to_timestamp",
  "make_timestamp_ns",
  "engine_instant",
  "engine_shift",
  "engine_floor",
  "engine_stored",
]);
/** Functions whose result is a `timestamp` when this argument is one. */
const PASSES_ON: Readonly<Record<string, number>> = {
  date_trunc: 1,
  datetrunc: 1,
  time_bucket: 1,
  max: 0,
  min: 0,
  any_value: 0,
  arbitrary: 0,
  first: 0,
  last: 0,
  mode: 0,
  median: 0,
  quantile_disc: 0,
  lag: 0,
  lead: 0,
  first_value: 0,
  last_value: 0,
  nth_value: 0,
  nullif: 0,
  arg_max: 0,
  argmax: 0,
  max_by: 0,
  arg_min: 0,
  argmin: 0,
  min_by: 0,
};

/** Functions whose result is a `timestamp` when any argument is one. */
const WIDENS = new Set(["greatest", "least"]);

/** Whether the expression is plainly a `timestamp`. */
export function isInstant(node: JsonObject, rewrites: Rewrites): boolean {
  if (isColumnRef(node)) {
    const decided = rewrites.columns?.get(positionOf(node) ?? -1);
    if (decided !== undefined) return decided;
    const name = foldName(columnPath(node).at(-1) ?? "");
    return rewrites.timestampColumns.has(name) || name === "current_timestamp";
  }
  if (node["class"] === "CAST") return isObject(node["cast_type"]) && isNanoType(node["cast_type"]);
  if (node["class"] === "SUBQUERY") return node["subquery_type"] === "SCALAR" && yieldsInstant(node, rewrites);
  if (node["class"] === "CASE") return branchesOf(node).some((branch) => isInstant(branch, rewrites));
  const operands = objectsOf(node["children"]);
  const name = textOf(node["function_name"]);
  if (node["type"] === "OPERATOR_COALESCE" || WIDENS.has(name)) {
    return operands.some((operand) => isInstant(operand, rewrites));
  }
  if (node["class"] !== "FUNCTION" && node["class"] !== "WINDOW") return false;
  if (MOMENTS.has(name)) return true;
  if (name === "+" || name === "-") {
    const [left, right] = operands;
    if (left === undefined || right === undefined) return false;
    return (
      (isInterval(right) && isInstant(left, rewrites)) ||
      (name === "+" && isInterval(left) && isInstant(right, rewrites))
    );
  }
  const argument = operands[PASSES_ON[name] ?? -1];
  return argument !== undefined && isInstant(argument, rewrites);
}

/** The results that a CASE may have. */
function branchesOf(node: JsonObject): JsonObject[] {
  return objectsOf([
    node["else_expr"] ?? null,
    ...objectsOf(node["case_checks"]).map((check) => check["then_expr"] ?? null),
  ]);
}

function yieldsInstant(subquery: JsonObject, rewrites: Rewrites): boolean {
  const statement = subquery["subquery"];
  const select = isObject(statement) ? statement["node"] : undefined;
  const [item] = objectsOf(isObject(select) ? select["select_list"] : undefined);
  return item !== undefined && isInstant(item, rewrites);
}

function isNanoType(type: JsonObject): boolean {
  const info = type["type_info"];
  const name = isObject(info) ? textOf(info["name"]) : "";
  // A cast to TIMESTAMPTZ becomes one to TIMESTAMP_NS.
  return type["id"] === "TIMESTAMP_NS" || type["id"] === ZONED || name.toLowerCase() === "timestamp_ns";
}
