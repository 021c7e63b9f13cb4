import { quoteText } from "../../../io/duckdb/duckdb.ts";
import type { KqlType } from "../contract.ts";
import { expr, sql, type Constant, type Expr, type Sql } from "../plan/expression.ts";
import { MAX_NS, MIN_NS } from "../types/literals.ts";
import { SQL_TYPES } from "../types/types.ts";
import { inTry } from "./bound.ts";

/** A value that is known, as SQL of its type. What is beyond the range of a datetime is null. */
export function literal(type: KqlType, constant: Constant): Expr {
  if (constant === null || (type === "datetime" && !isDatetime(constant)))
    return expr(type, [`CAST(NULL AS ${SQL_TYPES[type]})`], { constant: null });
  return expr(type, [textOf(type, constant)], { nullable: false, constant });
}

function isDatetime(value: Constant): boolean {
  return typeof value === "bigint" && value >= MIN_NS && value <= MAX_NS;
}

function textOf(type: KqlType, value: Exclude<Constant, null>): string {
  switch (type) {
    case "string":
      return stringText(String(value));
    case "datetime":
      return `make_timestamp_ns(${value})`;
    case "bool":
      return value === true ? "true" : "false";
    case "real":
      return realText(Number(value));
    case "int":
      return `CAST(${value} AS INTEGER)`;
    case "long":
    case "timespan":
      return bigintText(BigInt(value));
    case "decimal":
      return `CAST(${quoteText(String(value))} AS ${SQL_TYPES.decimal})`;
    case "guid":
      return `CAST(${quoteText(String(value))} AS UUID)`;
    case "dynamic":
      return `CAST(${quoteText(String(value))} AS JSON)`;
  }
}

/** SQL ends at the character NUL. */
function stringText(value: string): string {
  const parts = value.split("\0").map(quoteText);
  return parts.length === 1 ? quoteText(value) : `(${parts.join(" || chr(0) || ")})`;
}

/** The smallest 64-bit number has no literal of its own in SQL. */
function bigintText(value: bigint): string {
  return `CAST(${value < 0n ? `'${value}'` : value} AS BIGINT)`;
}

function realText(value: number): string {
  if (Number.isFinite(value)) return `CAST(${Object.is(value, -0) ? "'-0.0'" : `'${value}'`} AS DOUBLE)`;
  return `CAST('${value}' AS DOUBLE)`;
}

/** The value as a string that is never NULL. */
export function str(value: Expr): Expr {
  if (value.type !== "string") return toText(value);
  return value.nullable ? expr("string", sql`coalesce(${value}, '')`, { nullable: false }) : value;
}

/** What `tostring()` makes of a value; a null becomes the empty string. */
export function toText(value: Expr): Expr {
  const text = textSql(value);
  const own = value.nullable ? sql`coalesce(${text}, '')` : text;
  return expr("string", own, { nullable: false });
}

function textSql(value: Expr): Sql {
  switch (value.type) {
    case "string":
      return value.sql;
    case "bool":
      return sql`CASE ${value} WHEN true THEN 'True' WHEN false THEN 'False' END`;
    case "timespan":
      return sql`kql_timespan_text(${value})`;
    case "datetime":
      return sql`kql_datetime_text(${value})`;
    case "real":
      return sql`kql_real_text(${value})`;
    case "dynamic":
      return dynamicText(value);
    case "int":
    case "long":
    case "guid":
      return sql`CAST(${value} AS VARCHAR)`;
    case "decimal":
      return sql`kql_decimal_text(${value})`;
  }
}

/** A number of one of the types; a dynamic that holds none is null. */
export function num(value: Expr, type: "int" | "long" | "real" | "decimal"): Expr {
  if (value.type === type) return value;
  const { constant } = value;
  if (type === "real" && typeof constant === "bigint") return literal("real", Number(constant));
  if (value.type === "dynamic") return fromDynamic(value, type);
  if (value.type === "bool")
    return expr(
      type,
      sql`CAST(CAST(${value} AS INTEGER) AS ${SQL_TYPES[type]})`,
      value.nullable ? {} : { nullable: false },
    );
  if (!REACHES[type].includes(value.type)) return expr(type, sql`TRY_CAST(${value} AS ${SQL_TYPES[type]})`);
  return expr(type, sql`CAST(${value} AS ${SQL_TYPES[type]})`, { nullable: value.nullable });
}

/** Whose numbers each type has all of, if not to the last digit: a number of another one may be beyond it, or be none. */
const REACHES: Readonly<Record<"int" | "long" | "real" | "decimal", readonly KqlType[]>> = {
  int: [],
  long: ["int"],
  real: ["int", "long", "decimal"],
  decimal: ["int", "long"],
};

/** What a dynamic value holds, as a value of the type; null where it is of another kind. */
export function fromDynamic(value: Expr, type: KqlType): Expr {
  switch (type) {
    case "dynamic":
      return value;
    case "string":
      return expr("string", dynamicText(value));
    case "bool":
      return expr("bool", sql`kql_bool_in(${dynamicText(value)})`);
    case "int":
      return expr("int", sql`TRY_CAST(kql_long_in(${dynamicText(value)}) AS INTEGER)`);
    case "long":
      return expr("long", sql`kql_long_in(${dynamicText(value)})`);
    case "real":
      return expr("real", sql`TRY_CAST(${dynamicText(value)} AS DOUBLE)`);
    case "decimal":
      return expr("decimal", sql`TRY_CAST(${dynamicText(value)} AS ${SQL_TYPES.decimal})`);
    case "datetime":
      return datetimeOf(expr("string", dynamicText(value)));
    case "timespan":
      return expr("timespan", sql`kql_timespan_of(${dynamicText(value)})`);
    case "guid":
      return expr("guid", sql`TRY_CAST(${dynamicText(value)} AS UUID)`);
  }
}

/** What a dynamic value holds as text: of a string without its quotes; NULL where it is null. */
function dynamicText(value: Expr): Sql {
  const { of, steps } = value.path ?? { of: value, steps: "$" };
  return sql`json_extract_string(${of}, ${literal("string", steps)})`;
}

/** Any value as dynamic. */
export function dyn(value: Expr): Expr {
  switch (value.type) {
    case "dynamic":
      return value;
    case "string":
      return expr("dynamic", sql`to_json(${str(value)})`, { nullable: false });
    case "datetime":
    case "timespan":
    case "guid":
      return expr("dynamic", sql`to_json(${value.nullable ? nullableText(value) : toText(value).sql})`);
    case "real":
      return expr("dynamic", sql`kql_real_json(${value})`);
    case "bool":
    case "int":
    case "long":
    case "decimal":
      return expr("dynamic", sql`to_json(${value})`, { nullable: value.nullable });
  }
}

function nullableText(value: Expr): Sql {
  return textSql(value);
}

/** The value as one of another type that values of both may be compared or joined in. */
export function as(value: Expr, type: KqlType): Expr {
  if (value.type === type) return value;
  if (value.constant === null) return literal(type, null);
  if (type === "dynamic") return dyn(value);
  if (value.type === "dynamic") return fromDynamic(value, type);
  if (type === "string") return toText(value);
  if (isNumeric(type) && isNumeric(value.type)) return num(value, type);
  return fromText(toText(value), type);
}

function isNumeric(type: KqlType): type is "int" | "long" | "real" | "decimal" {
  return type === "int" || type === "long" || type === "real" || type === "decimal";
}

/** What the text says, as a value of the type; null where it says none. */
function fromText(text: Expr, type: KqlType): Expr {
  if (type === "bool") return expr(type, sql`kql_bool_of(${text})`);
  if (type === "datetime") return datetimeOf(text);
  if (type === "timespan") return expr(type, sql`kql_timespan_of(${text})`);
  return expr(type, sql`TRY_CAST(${text} AS ${SQL_TYPES[type]})`);
}

function datetimeOf(text: Expr): Expr {
  return expr(
    "datetime",
    inTry([text], (one) => sql`kql_datetime_of(${one})`),
  );
}
