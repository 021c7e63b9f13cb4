import { EngineError } from "../../core/errors.ts";
import { call } from "./rewrite.ts";
import { exactNumber, isObject, mapChildren, numberOf, textOf, type Json, type JsonObject } from "./tree.ts";

/**
 * Parameters of a query: `$name`, `$1`, `?`. Their values never become a part of its text. They take the place of the
 * parameters in the parsed tree, as constants, before anything is checked: what a query may do with a value is what it may
 * do with a literal, and extents are pruned by one as by the other.
 *
 * | value | is |
 * |---|---|
 * | text | a quoted literal, which takes the type of what it is compared with; `$since::TIMESTAMP` casts it |
 * | boolean, integer | BOOLEAN, INTEGER or BIGINT |
 * | another number | DOUBLE |
 * | null | NULL |
 * | an array | a list of such: `label IN $labels` |
 */
export type ParameterValue = null | boolean | number | bigint | string | readonly ParameterValue[];

/** By folded name; those without a name by their number, from 1. */
export type QueryParameters = ReadonlyMap<string, ParameterValue>;

export const NO_PARAMETERS: QueryParameters = new Map();

const NAME = /^(?:[a-z_][a-z0-9_]*|[1-9][0-9]{0,4})$/;

/** Names are compared without regard to case, as DuckDB does, and as HTTP does with those of headers. */
export function foldParameter(name: string): string {
  return name.toLowerCase();
}

/**
 * Adds values under names that a client chose. Throws `invalid_parameter`: a name that no parameter can have, one that is
 * there already, a value that SQL cannot have.
 */
export function addParameters(
  to: Map<string, ParameterValue>,
  values: Iterable<readonly [name: string, value: ParameterValue]>,
): void {
  for (const [name, value] of values) {
    const folded = foldParameter(name);
    if (!NAME.test(folded)) {
      throw invalid(
        `${JSON.stringify(name.slice(0, 100))} is no name of a parameter: letters, digits and "_", or a number`,
      );
    }
    if (to.has(folded)) throw invalid(`the parameter $${folded} is given twice`);
    checkValue(folded, value);
    to.set(folded, value);
  }
}

const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n];

function checkValue(name: string, value: ParameterValue): void {
  if (Array.isArray(value)) for (const item of value as readonly ParameterValue[]) checkValue(name, item);
  if (typeof value === "string" && (value.includes("\0") || !value.isWellFormed())) {
    throw invalid(`the parameter $${name} is no text: it has a NUL character or half of a surrogate pair`);
  }
  const isBeyond =
    (typeof value === "bigint" && (value < LEAST || value > MOST)) ||
    (typeof value === "number" && !Number.isFinite(value));
  if (isBeyond) throw invalid(`the parameter $${name} is beyond the range of its type: send it as text, and cast it`);
}

/**
 * The tree with the values in place of its parameters. Throws `invalid_query` naming those that have no value, and
 * `invalid_parameter` naming values that the query has no parameter for.
 */
export function bindParameters(tree: JsonObject, values: QueryParameters): JsonObject {
  const used = new Set<string>();
  collect(tree, used);
  const missing = [...used].filter((name) => !values.has(name));
  if (missing.length > 0) {
    const names = listed(missing);
    const [first = ""] = missing;
    const how = `send X-Engine-Param-${first}, or \`params\` in a JSON body`;
    const which = missing.length === 1 ? "a parameter has" : "parameters have";
    throw new EngineError("invalid_query", `${which} no value: ${names}; ${how}`);
  }
  const unused = [...values.keys()].filter((name) => !used.has(name));
  if (unused.length > 0) throw invalid(`the query has no parameter ${listed(unused)}`);
  return used.size === 0 ? tree : withValues(tree, values);
}

/** The same for a text made of one whose parameters were bound before; those without a value stay. */
export function withValues(tree: JsonObject, values: QueryParameters): JsonObject {
  return values.size === 0 ? tree : (replace(tree, values, false) as JsonObject);
}

const MAX_NAMED = 10;

function listed(names: readonly string[]): string {
  const named = names.slice(0, MAX_NAMED).map((name) => `$${name}`);
  return [...named, ...(names.length > MAX_NAMED ? [`and ${names.length - MAX_NAMED} more`] : [])].join(", ");
}

function collect(value: Json, names: Set<string>): void {
  if (Array.isArray(value)) for (const item of value as readonly Json[]) collect(item, names);
  if (!isObject(value)) return;
  if (isParameter(value)) names.add(nameOf(value));
  for (const child of Object.values(value)) collect(child, names);
}

function isParameter(node: JsonObject): boolean {
  return node["class"] === "PARAMETER";
}

function nameOf(parameter: JsonObject): string {
  return foldParameter(textOf(parameter["identifier"]));
}

/** Where an integer is no value but a place in the SELECT list. */
const ORDINALS = new Set(["expression", "group_expressions", "distinct_on_targets"]);

function replace(value: Json, values: QueryParameters, isOrdinal: boolean): Json {
  if (isObject(value) && isParameter(value)) {
    const given = values.get(nameOf(value));
    return given === undefined ? value : constantOf(given, value, isOrdinal);
  }
  return mapChildren(value, (child, key) => replace(child, values, key === undefined ? isOrdinal : ORDINALS.has(key)));
}

/** Every node is one that the parser would make of its text: see `print-tree.ts`. */
function constantOf(value: ParameterValue, parameter: JsonObject, isOrdinal: boolean): JsonObject {
  const { alias = "", query_location = 0 } = parameter;
  const place = { alias, query_location };
  if (Array.isArray(value)) {
    const items = (value as readonly ParameterValue[]).map((item) => constantOf(item, { query_location }, false));
    return { ...call("list_value", items), ...place };
  }
  if (value === null) return { ...constant("NULL", null), ...place };
  if (typeof value === "string") return { ...constant("VARCHAR", value), ...place };
  if (typeof value === "boolean") return { ...castOf(constant("VARCHAR", value ? "t" : "f"), "BOOLEAN"), ...place };
  if (typeof value === "bigint") {
    const integer = integerOf(value);
    return { ...(isOrdinal ? castOf(integer, "BIGINT") : integer), ...place };
  }
  return { ...doubleOf(value as number), ...place };
}

function constant(id: string, value: Json): JsonObject {
  const type = { id, type_info: null };
  const held = value === null ? { type, is_null: true } : { type, is_null: false, value };
  return { class: "CONSTANT", type: "VALUE_CONSTANT", alias: "", query_location: 0, value: held };
}

function castOf(child: JsonObject, id: string): JsonObject {
  const type = { id, type_info: null };
  return {
    class: "CAST",
    type: "OPERATOR_CAST",
    alias: "",
    query_location: 0,
    child,
    cast_type: type,
    try_cast: false,
  };
}

const MAX_INTEGER = 2n ** 31n - 1n;

/** The parser reads digits first, and their sign after: the least INTEGER is a BIGINT to it. */
function integerOf(value: bigint): JsonObject {
  const isSmall = value >= -MAX_INTEGER && value <= MAX_INTEGER;
  return constant(isSmall ? "INTEGER" : "BIGINT", numberOf(value));
}

/** The parser's JSON has `3.0` for what JavaScript writes as `3`, and other exponents. */
function doubleOf(value: number): JsonObject {
  const size = Math.abs(value);
  const isPlain = size === 0 || (size >= 1e-4 && size < 1e15);
  if (!isPlain) return castOf(constant("VARCHAR", String(value)), "DOUBLE");
  return constant("DOUBLE", Number.isInteger(value) ? exactNumber(`${value}.0`) : value);
}

function invalid(message: string): EngineError {
  return new EngineError("invalid_parameter", message);
}
