import { EngineError } from "../../../core/errors.ts";
import { quoteIdentifier } from "../../../io/duckdb/duckdb.ts";
import { uniqueNames } from "../../../io/duckdb/projection.ts";
import type { EngineColumn } from "../../contract/engines.ts";

/**
 * Trino's types as DuckDB has them, and its values as texts that DuckDB casts to them.
 *
 * Values come as JSON: numbers, texts, and arrays and objects of such. Every value becomes the text of one, since DuckDB's
 * casts are exact where a number of JavaScript is not; a list, a map or a struct becomes JSON in which each value is such a
 * text, for DuckDB's own texts of lists and structs take some values for the syntax around them.
 *
 * | Trino | DuckDB |
 * |---|---|
 * | `boolean`, `tinyint` … `bigint`, `real`, `double`, `decimal(p, s)` | the same |
 * | `varchar`, `char`, `ipaddress` | VARCHAR |
 * | `varbinary` | BLOB; in lists, maps and structs VARCHAR with base64 |
 * | `uuid`, `date`, `json` | the same |
 * | `time(p)`, `timestamp(p)` | TIME, TIMESTAMP up to microseconds |
 * | `timestamp(p) with time zone` | TIMESTAMPTZ up to microseconds, TIMESTAMP_NS up to nanoseconds: a moment, as with us |
 * | `time(p) with time zone` | TIMETZ up to microseconds |
 * | `interval …` | INTERVAL |
 * | `array`, `map`, `row` | LIST, MAP, STRUCT |
 * | `unknown` | VARCHAR, always NULL |
 *
 * All others are refused, by name: a wall clock with nanoseconds, which we would take for a moment, sketches, geometries.
 */
export type ForeignType = Pick<EngineColumn, "sqlType" | "isNested"> & {
  /**
   * The text of a value at the top; undefined for NULL. Throws `engine_failed` for what cannot be one, `invalid_query` for a
   * time in a zone other than UTC.
   */
  text: (value: unknown) => string | undefined;
};

/** A type as the protocol gives it. */
export type TypeSignature = { rawType: string; arguments?: readonly TypeArgument[] | undefined };
type TypeArgument =
  | { kind: "TYPE"; value: TypeSignature }
  | { kind: "LONG"; value: number }
  | { kind: "NAMED_TYPE"; value: { fieldName?: { name: string }; typeSignature: TypeSignature } }
  | { kind: string; value: unknown };

/** Throws `invalid_query` for a type that has no counterpart. */
export function foreignType(column: { name: string; type: string; typeSignature: TypeSignature }): ForeignType {
  const type = typeOf(column.typeSignature, () => {
    const { name, type: written } = column;
    return new EngineError(
      "invalid_query",
      `column ${JSON.stringify(name)} has the type ${written.slice(0, MAX_TYPE_CHARS)}, which has no counterpart here: ` +
        "have the query cast it",
    );
  });
  const isNested = type.kind !== "scalar";
  return {
    sqlType: isNested ? sqlTypeOf(type) : type.sqlType,
    isNested,
    text: (value) => (value === null ? undefined : isNested ? nested(type, value) : type.text(value)),
  };
}

const MAX_TYPE_CHARS = 200;
/** Trino knows no bound; our casts and the result's formats do. */
const MAX_DEPTH = 64;

type Scalar = {
  kind: "scalar";
  sqlType: string;
  text: (value: unknown) => string;
  /** Where it is another one inside of lists, maps and structs. */
  inside?: Pick<Scalar, "sqlType" | "text">;
};
type Type =
  | Scalar
  | { kind: "list"; of: Type }
  | { kind: "map"; key: Scalar; of: Type }
  | { kind: "struct"; fields: readonly { name: string; of: Type }[] };

function typeOf(signature: TypeSignature, refused: () => EngineError, depth = 0): Type {
  const { rawType, arguments: given = [] } = signature;
  if (depth > MAX_DEPTH) throw refused();
  const inner = (argument: TypeArgument | undefined): Type => {
    if (argument?.kind !== "TYPE") throw refused();
    return typeOf(argument.value as TypeSignature, refused, depth + 1);
  };
  switch (rawType) {
    case "array":
      return { kind: "list", of: inner(given[0]) };
    case "map": {
      const key = inner(given[0]);
      // A key is a text of the protocol's, which for these is no value that could be read again.
      if (key.kind !== "scalar" || ["BLOB", "JSON", "INTERVAL"].includes(key.sqlType)) throw refused();
      return { kind: "map", key, of: inner(given[1]) };
    }
    case "row": {
      if (given.length === 0) throw refused();
      const fields = given.map((argument, i) => {
        if (argument.kind !== "NAMED_TYPE") throw refused();
        const { fieldName, typeSignature } = argument.value as Extract<TypeArgument, { kind: "NAMED_TYPE" }>["value"];
        return { name: fieldName?.name ?? `field${i}`, of: typeOf(typeSignature, refused, depth + 1) };
      });
      const names = uniqueNames(fields.map(({ name }) => name));
      return { kind: "struct", fields: fields.map(({ of }, i) => ({ name: names[i] ?? "", of })) };
    }
    default:
      return scalarOf(rawType, given, refused);
  }
}

const PLAIN: Readonly<Record<string, string>> = {
  boolean: "BOOLEAN",
  tinyint: "TINYINT",
  smallint: "SMALLINT",
  integer: "INTEGER",
  bigint: "BIGINT",
  real: "FLOAT",
  double: "DOUBLE",
  varchar: "VARCHAR",
  char: "VARCHAR",
  ipaddress: "VARCHAR",
  unknown: "VARCHAR",
  uuid: "UUID",
  json: "JSON",
};

const MICROSECONDS = 6;
const NANOSECONDS = 9;
/** The protocol leaves the precision out where it is this. */
const DEFAULT_PRECISION = 3;

function scalar(sqlType: string, text: Scalar["text"] = plainText): Scalar {
  return { kind: "scalar", sqlType, text };
}

function scalarOf(rawType: string, given: readonly TypeArgument[], refused: () => EngineError): Scalar {
  const plain = Object.hasOwn(PLAIN, rawType) ? PLAIN[rawType] : undefined;
  if (plain !== undefined) return scalar(plain);
  const numbers = given.map(({ value }) => value);
  const [precision = DEFAULT_PRECISION] = numbers as number[];
  switch (rawType) {
    case "decimal": {
      const [digits, scale] = numbers;
      if (!Number.isInteger(digits) || !Number.isInteger(scale)) throw refused();
      return scalar(`DECIMAL(${Number(digits)}, ${Number(scale)})`);
    }
    case "varbinary":
      // JSON has no bytes.
      return {
        ...scalar("BLOB", (value) => blobText(plainText(value))),
        inside: { sqlType: "VARCHAR", text: plainText },
      };
    case "date":
      return scalar("DATE", (value) => withoutPlus(plainText(value)));
    case "time":
      if (precision > MICROSECONDS) throw refused();
      return scalar("TIME");
    case "time with time zone":
      if (precision > MICROSECONDS) throw refused();
      return scalar("TIMETZ");
    case "timestamp":
      if (precision > MICROSECONDS) throw refused();
      return scalar("TIMESTAMP", (value) => withoutPlus(plainText(value)));
    case "timestamp with time zone":
      if (precision > NANOSECONDS) throw refused();
      return scalar(precision > MICROSECONDS ? "TIMESTAMP_NS" : "TIMESTAMPTZ", (value) => momentText(plainText(value)));
    case "interval year to month":
      return scalar("INTERVAL", (value) => monthsText(plainText(value)));
    case "interval day to second":
      return scalar("INTERVAL", (value) => secondsText(plainText(value)));
    default:
      throw refused();
  }
}

function sqlTypeOf(type: Type): string {
  switch (type.kind) {
    case "scalar":
      return (type.inside ?? type).sqlType;
    case "list":
      return `${sqlTypeOf(type.of)}[]`;
    case "map":
      return `MAP(${type.key.sqlType}, ${sqlTypeOf(type.of)})`;
    case "struct":
      return `STRUCT(${type.fields.map(({ name, of }) => `${quoteIdentifier(name)} ${sqlTypeOf(of)}`).join(", ")})`;
  }
}

/** As JSON, in which every value is a text, or JSON itself. */
function nested(type: Type, value: unknown): string {
  if (value === null) return "null";
  switch (type.kind) {
    case "scalar":
      return type.sqlType === "JSON" ? rawJson(plainText(value)) : JSON.stringify((type.inside ?? type).text(value));
    case "list":
      return `[${itemsOf(value)
        .map((item) => nested(type.of, item))
        .join(",")}]`;
    case "map": {
      const entries = Object.entries(objectOf(value));
      return `{${entries.map(([key, item]) => `${JSON.stringify(type.key.text(key))}:${nested(type.of, item)}`).join(",")}}`;
    }
    case "struct": {
      const items = itemsOf(value);
      if (items.length !== type.fields.length) throw unlike("row");
      return `{${type.fields.map(({ name, of }, i) => `${JSON.stringify(name)}:${nested(of, items[i])}`).join(",")}}`;
    }
  }
}

/** As it is, once it is known to be JSON: to parse it would round its numbers. */
function rawJson(text: string): string {
  try {
    JSON.parse(text);
    return text;
  } catch {
    throw unlike("json");
  }
}

function itemsOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw unlike("list");
}

function objectOf(value: unknown): object {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw unlike("map");
}

function plainText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "bigint") return String(value);
  throw unlike("single value");
}

function unlike(what: string): EngineError {
  return new EngineError("engine_failed", `the query engine sent something else than the ${what} that it announced`);
}

function blobText(base64: string): string {
  return Buffer.from(base64, "base64")
    .toString("hex")
    .replaceAll(/../g, (pair) => `\\x${pair}`);
}

/** Years beyond 9999 have a sign. */
function withoutPlus(text: string): string {
  return text.startsWith("+") ? text.slice(1) : text;
}

/** `2020-01-01 00:00:00.5 +05:30`, or with `UTC` or the name of a zone. */
function momentText(text: string): string {
  const [, moment = "", zone = ""] = /^\+?(-?\d+-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) (.+)$/.exec(text) ?? [];
  if (zone === "UTC" || zone === "Z") return `${moment}+00:00`;
  if (/^[+-]\d\d:\d\d$/.test(zone)) return `${moment}${zone}`;
  // An hour that a zone has twice is written in one way: which of the two it is nobody can tell.
  throw new EngineError(
    "invalid_query",
    `the query engine sent a time in the zone ${zone.slice(0, 40) || "of no name"}: have the query ask for it ` +
      "AT TIME ZONE 'UTC'",
  );
}

/** `-2-3`: years and months. */
function monthsText(text: string): string {
  const [, sign = "", years, months] = /^(-?)(\d+)-(\d+)$/.exec(text) ?? [];
  if (months === undefined) throw unlike("interval");
  return `${sign}${Number(years) * 12 + Number(months)} months`;
}

/** `-2 03:04:05.678`: days and a time, all of them before or after. */
function secondsText(text: string): string {
  const [, sign = "", days, time] = /^(-?)(\d+) (\d\d:\d\d:\d\d\.\d+)$/.exec(text) ?? [];
  if (time === undefined) throw unlike("interval");
  return `${sign}${days} days ${sign}${time}`;
}
