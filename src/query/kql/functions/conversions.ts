import type { KqlType } from "../contract.ts";
import { expr, sql, type Expr } from "../plan/expression.ts";
import { SQL_TYPES } from "../types/types.ts";
import { as, fromDynamic, literal, num, str } from "../values/coerce.ts";
import type { Call } from "../scope.ts";
import { arg, fn, type FunctionTable } from "./table.ts";

/** Conversions between types. */
export const CONVERSIONS: FunctionTable = {
  tostring: fn((args) => str(arg(args, 0))),
  toint: fn((args) => converted(arg(args, 0), "int")),
  tolong: fn((args) => converted(arg(args, 0), "long")),
  toreal: fn((args) => converted(arg(args, 0), "real")),
  todouble: fn((args) => converted(arg(args, 0), "real")),
  todecimal: fn((args) => converted(arg(args, 0), "decimal")),
  tobool: fn((args) => converted(arg(args, 0), "bool")),
  toboolean: fn((args) => converted(arg(args, 0), "bool")),
  toguid: fn((args) => converted(arg(args, 0), "guid")),
  new_guid: fn(() => expr("guid", sql`uuid()`, { nullable: false, isFixed: true })),
  extract_json: { special: extractJson },
  extractjson: { special: extractJson },
};

/** A value as one of another type; null where it cannot be. */
function converted(value: Expr, type: KqlType): Expr {
  if (value.type === type) return value;
  if (value.constant === null) return literal(type, null);
  if (value.type === "string") return fromText(value, type);
  if (value.type === "dynamic") return fromDynamic(value, type);
  if (type === "int" || type === "long") return whole(value, type);
  if (type === "real" || type === "decimal") return number(value, type);
  return type === "bool" ? truth(value) : fromNumber(value, type);
}

/** A string as a value of the type; null where it is none. */
export function fromText(value: Expr, type: KqlType): Expr {
  const text = str(value);
  switch (type) {
    case "string":
      return text;
    case "dynamic":
      return expr("dynamic", sql`kql_parse_json(${text})`);
    case "int":
      return expr("int", sql`TRY_CAST(kql_long_of(${text}) AS INTEGER)`);
    case "long":
      return expr("long", sql`kql_long_of(${text})`);
    case "real":
      return expr("real", sql`kql_real_of(${text})`);
    case "decimal":
      return expr("decimal", sql`kql_decimal_of(${text})`);
    case "bool":
      return expr("bool", sql`kql_bool_of(${text})`);
    case "datetime":
      return expr("datetime", sql`kql_datetime_of(${text})`);
    case "timespan":
      return expr("timespan", sql`kql_timespan_of(${text})`);
    case "guid":
      return expr("guid", sql`kql_guid_of(${text})`);
  }
}

const TICKS_UNTIL_1970 = "621355968000000000";

function whole(value: Expr, type: "int" | "long"): Expr {
  const own = SQL_TYPES[type];
  if (value.type === "datetime") {
    return expr(type, sql`TRY_CAST(epoch_ns(${value}) // 100 + ${TICKS_UNTIL_1970} AS ${own})`);
  }
  if (value.type === "real" || value.type === "decimal") return expr(type, sql`TRY_CAST(trunc(${value}) AS ${own})`);
  return expr(type, sql`TRY_CAST(${value} AS ${own})`);
}

function number(value: Expr, type: "real" | "decimal"): Expr {
  if (value.type === "datetime" || value.type === "timespan" || value.type === "bool")
    return num(whole(value, "long"), type);
  return value.type === "guid" ? literal(type, null) : expr(type, sql`TRY_CAST(${value} AS ${SQL_TYPES[type]})`);
}

function truth(value: Expr): Expr {
  if (value.type === "datetime" || value.type === "timespan" || value.type === "guid") return literal("bool", null);
  return expr("bool", sql`${value} <> 0`, { nullable: value.nullable });
}

/** Whole numbers are ticks. */
function fromNumber(value: Expr, type: KqlType): Expr {
  if (value.type !== "int" && value.type !== "long") return literal(type, null);
  if (type === "timespan") return expr("timespan", sql`CAST(${value} AS BIGINT)`, { nullable: value.nullable });
  return type === "datetime" ? expr("datetime", sql`kql_datetime_of_ticks(${value})`) : as(value, type);
}

function extractJson({ argumentNodes, scope, translator, refuse, node, type }: Call): Expr {
  const [path, source] = argumentNodes.slice(0, 2).map((one) => translator.scalar(one, scope));
  if (path === undefined || source === undefined) throw refuse("extract_json() takes a path and a text");
  if (typeof path.constant !== "string") throw refuse("a JSON path is expected to be a constant");
  const pointer = pointerOf(path.constant);
  if (pointer === undefined) throw refuse(`${JSON.stringify(path.constant)} is not a supported JSON path`);
  const text = sql`kql_json_at(${str(source)}, ${literal("string", pointer)})`;
  if (argumentNodes.length < 3 || node.ResultType === null) return expr("string", text);
  if (type === "dynamic") return expr("dynamic", sql`kql_parse_json(coalesce(${text}, ''))`);
  return fromText(expr("string", text), type);
}

const STEP = /\.(?<name>[^.[\]]+)|\[(?<index>\d+)\]|\['(?<single>[^']*)'\]|\["(?<double>[^"]*)"\]/guy;

/** A path of names and indices as a JSON pointer. */
function pointerOf(path: string): string | undefined {
  const rest = path.trim().replace(/^\$/u, "");
  const full = /^[.[]|^$/u.test(rest) ? rest : `.${rest}`;
  const steps = [...full.matchAll(STEP)];
  if (steps.reduce((size, [step]) => size + step.length, 0) !== full.length) return undefined;
  return steps
    .map(({ groups = {} }) => groups["name"] ?? groups["index"] ?? groups["single"] ?? groups["double"] ?? "")
    .map((step) => `/${step.replaceAll("~", "~0").replaceAll("/", "~1")}`)
    .join("");
}
