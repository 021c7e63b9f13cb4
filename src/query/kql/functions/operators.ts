import type { KqlType } from "../contract.ts";
import { Column, expr, separated, sql, type Expr, type Sql } from "../plan/expression.ts";
import { SQL_TYPES } from "../types/types.ts";
import { inTry } from "../values/bound.ts";
import { as, fromDynamic, literal, num, str } from "../values/coerce.ts";
import { STRING_OPERATORS } from "./string-operators.ts";
import type { BinaryCall, BinaryRule } from "./table.ts";

/** Binary operators by the library's names. */
export const BINARY: Readonly<Record<string, BinaryRule | undefined>> = {
  And: (left, right) => combined("AND", left, right),
  Or: (left, right) => combined("OR", left, right),
  Equal: equals,
  NotEqual: notEquals,
  LessThan: (left, right) => compared("<", left, right),
  LessThanOrEqual: (left, right) => compared("<=", left, right),
  GreaterThan: (left, right) => compared(">", left, right),
  GreaterThanOrEqual: (left, right) => compared(">=", left, right),
  Add: (left, right, call) => added(left, right, call, 1n),
  Subtract: (left, right, call) => added(left, right, call, -1n),
  Multiply: multiplied,
  Divide: divided,
  Modulo: (left, right, { type }) => modulo(left, right, type),
  ...STRING_OPERATORS,
};

function bool(value: Expr): Expr {
  return value.type === "bool" ? value : as(value, "bool");
}

function combined(word: "AND" | "OR", left: Expr, right: Expr): Expr {
  const [a, b] = [bool(left), bool(right)];
  const filter: Sql = [...filterOf(a), ` ${word} `, ...filterOf(b)];
  return expr("bool", [...sql`${a}`, ` ${word} `, ...sql`${b}`], { nullable: a.nullable || b.nullable, filter });
}

function filterOf({ filter, sql: own }: Expr): Sql {
  return ["(", ...(filter ?? own), ")"];
}

/** Both as values of one type: what is dynamic becomes what the other one is. */
export function alike(left: Expr, right: Expr): [Expr, Expr] {
  if (left.type === "dynamic" && right.type !== "dynamic") return [fromDynamic(left, right.type), right];
  if (right.type === "dynamic" && left.type !== "dynamic") return [left, fromDynamic(right, left.type)];
  if (left.constant === null && left.type !== right.type) return [literal(right.type, null), right];
  if (right.constant === null && left.type !== right.type) return [left, literal(left.type, null)];
  if (left.type === "dynamic") return [as(left, "string"), as(right, "string")];
  if (left.type === "bool" && right.type !== "bool") return [as(left, right.type), right];
  if (right.type === "bool" && left.type !== "bool") return [left, as(right, left.type)];
  return [left, right];
}

/** The same for a comparison, where a whole number needs no cast: pruning reads a bare one without evaluating it. */
function comparable(left: Expr, right: Expr): [Expr, Expr] {
  const [a, b] = alike(left, right);
  return [bareNumber(a, b), bareNumber(b, a)];
}

function bareNumber(value: Expr, other: Expr): Expr {
  const { constant, type } = value;
  const isBare = typeof constant === "bigint" && (type === "int" || type === "long") && constant >= 0n;
  return isBare && other.constant === undefined ? { ...value, sql: [String(constant)] } : value;
}

export function equals(left: Expr, right: Expr): Expr {
  const [a, b] = comparable(left, right);
  if (a.type === "string" || b.type === "string") return textEquals(a, b);
  const plain = sql`${a} = ${b}`;
  if (!a.nullable && !b.nullable) return expr("bool", plain, { nullable: false });
  if (!a.nullable || !b.nullable)
    return expr("bool", sql`coalesce(${plain}, false)`, { nullable: false, filter: plain });
  const own = sql`CASE WHEN ${a} IS NULL AND ${b} IS NULL THEN NULL ELSE coalesce(${plain}, false) END`;
  return expr("bool", own, { filter: plain });
}

function textEquals(left: Expr, right: Expr): Expr {
  const [a, b] = [as(left, "string"), as(right, "string")];
  const own = sql`${str(a)} = ${str(b)}`;
  // A text that is not empty is no NULL's: the bare column is what pruning reads.
  const isBare = isText(a) || isText(b);
  return expr("bool", own, { nullable: false, ...(isBare && { filter: sql`${a} = ${b}` }) });
}

function isText({ constant }: Expr): boolean {
  return typeof constant === "string" && constant !== "";
}

export function notEquals(left: Expr, right: Expr): Expr {
  const [a, b] = comparable(left, right);
  if (a.type === "string" || b.type === "string") {
    const own = sql`${str(as(a, "string"))} <> ${str(as(b, "string"))}`;
    const isBare = a.type === b.type && (isText(a) || isText(b));
    return expr("bool", own, { nullable: false, ...(isBare && { filter: sql`${a} IS DISTINCT FROM ${b}` }) });
  }
  if (!a.nullable && !b.nullable) return expr("bool", sql`${a} <> ${b}`, { nullable: false });
  const plain = sql`${a} IS DISTINCT FROM ${b}`;
  if (!a.nullable || !b.nullable) return expr("bool", plain, { nullable: false });
  return expr("bool", sql`CASE WHEN ${a} IS NULL AND ${b} IS NULL THEN NULL ELSE ${plain} END`, { filter: plain });
}

export function compared(operator: "<" | "<=" | ">" | ">=", left: Expr, right: Expr): Expr {
  const [a, b] = comparable(left, right);
  if (a.type === "string" || b.type === "string") {
    return expr("bool", sql`${str(as(a, "string"))} ${operator} ${str(as(b, "string"))}`, { nullable: false });
  }
  return expr("bool", sql`${a} ${operator} ${b}`, { nullable: a.nullable || b.nullable });
}

const NS_PER_TICK = 100n;

function added(left: Expr, right: Expr, { type, refuse }: BinaryCall, sign: 1n | -1n): Expr {
  const operator = sign === 1n ? "+" : "-";
  const nullable = left.nullable || right.nullable;
  if (left.type === "datetime" && right.type === "datetime") {
    if (type !== "timespan") throw refuse("two datetimes cannot be added");
    const [a, b] = [left.constant, right.constant];
    if (typeof a === "bigint" && typeof b === "bigint") return literal("timespan", (a - b) / NS_PER_TICK);
    return expr("timespan", sql`kql_ticks_between(${right}, ${left})`, { nullable });
  }
  if (type === "datetime") {
    const [moment, span] = left.type === "datetime" ? [left, as(right, "timespan")] : [as(right, "datetime"), left];
    const [a, b] = [moment.constant, span.constant];
    if (typeof a === "bigint" && typeof b === "bigint") return literal("datetime", a + sign * b * NS_PER_TICK);
    const offset =
      sign === 1n
        ? span
        : expr(
            "timespan",
            inTry([span], (one) => sql`kql_negate(${one})`),
          );
    return expr("datetime", sql`kql_datetime_plus(${moment}, ${offset})`);
  }
  if (type === "timespan") {
    const [a, b] = [as(left, "timespan"), as(right, "timespan")];
    if (typeof a.constant === "bigint" && typeof b.constant === "bigint") {
      return literal("timespan", a.constant + sign * b.constant);
    }
    return expr(
      "timespan",
      inTry(
        [a, b],
        (both) =>
          sql`TRY(${separated(
            ` ${operator} `,
            both.map(({ sql: own }) => own),
          )})`,
      ),
    );
  }
  return arithmetic(operator, left, right, type);
}

type NumberType = "int" | "long" | "real" | "decimal";

function numberType(type: KqlType): NumberType {
  return type === "int" || type === "long" || type === "decimal" ? type : "real";
}

function arithmetic(operator: "+" | "-" | "*", left: Expr, right: Expr, type: KqlType): Expr {
  const own = numberType(type);
  const [a, b] = [num(left, own), num(right, own)];
  const nullable = a.nullable || b.nullable;
  if (own === "int" || own === "long") {
    const name = { "+": "add", "-": "subtract", "*": "multiply" }[operator];
    const macro = isPlain(a) && isPlain(b) ? `kql_plain_${name}` : `kql_${name}`;
    return expr(own, sql`${[macro]}(${num(left, "long")}, ${num(right, "long")})`, { nullable });
  }
  if (own === "decimal" && operator === "*") return expr(own, sql`kql_multiply_decimal(${a}, ${b})`, { nullable });
  if (own === "decimal") return expr(own, sql`CAST(${a} ${operator} ${b} AS ${SQL_TYPES.decimal})`, { nullable });
  return expr(own, sql`${a} ${operator} ${b}`, { nullable });
}

/** A column or a constant: it may be mentioned more than once. */
function isPlain({ sql: own, constant }: Expr): boolean {
  return constant !== undefined || (own.length === 1 && own[0] instanceof Column);
}

function multiplied(left: Expr, right: Expr, { type }: BinaryCall): Expr {
  if (type !== "timespan") return arithmetic("*", left, right, type);
  const [span, by] = left.type === "timespan" ? [left, right] : [right, left];
  if (typeof span.constant === "bigint" && typeof by.constant === "bigint" && by.type !== "real") {
    return literal("timespan", span.constant * by.constant);
  }
  // A double holds no more than 53 bits of the ticks.
  if (by.type === "int" || by.type === "long") {
    const nullable = span.nullable || by.nullable;
    return expr("timespan", sql`kql_multiply(${span}, ${num(by, "long")})`, { nullable });
  }
  return expr("timespan", sql`TRY_CAST(trunc(${span} * ${num(by, "real")}) AS BIGINT)`);
}

function divided(left: Expr, right: Expr, { type }: BinaryCall): Expr {
  if (left.type === "timespan" && right.type === "timespan") {
    return expr("real", sql`CAST(${left} AS DOUBLE) / CAST(${right} AS DOUBLE)`, {
      nullable: left.nullable || right.nullable,
    });
  }
  if (type === "timespan") {
    return expr("timespan", sql`TRY_CAST(trunc(${left} / ${num(right, "real")}) AS BIGINT)`);
  }
  const own = numberType(type);
  const [a, b] = [num(left, own), num(right, own)];
  if (own === "int" || own === "long") {
    const isSafe = typeof b.constant === "bigint" && b.constant !== 0n && b.constant !== -1n;
    return expr(own, isSafe ? sql`${a} // ${b}` : sql`kql_divide(${a}, ${b})`, { nullable: !isSafe || a.nullable });
  }
  if (own === "decimal") return expr(own, sql`CAST(${a} / nullif(${b}, 0) AS DECIMAL(38, 17))`);
  return expr(own, sql`${a} / ${b}`, { nullable: a.nullable || b.nullable });
}

function modulo(left: Expr, right: Expr, type: KqlType): Expr {
  const own = type === "timespan" ? type : numberType(type);
  const [a, b] = [as(left, own), as(right, own)];
  return expr(own, sql`${[own === "real" ? "kql_modulo_real" : "kql_modulo"]}(${a}, ${b})`);
}
