import { expr, sql, type Expr, type Sql } from "../plan/expression.ts";
import { SQL_TYPES } from "../types/types.ts";
import { as, literal, num, str } from "../values/coerce.ts";
import { STATISTICS } from "./statistics.ts";
import { arg, fn, no, type FunctionTable } from "./table.ts";
import { UNITS } from "./units.ts";

/** Functions over numbers. */
export const NUMBERS: FunctionTable = {
  ...STATISTICS,
  ...UNITS,
  abs: fn(([x], { type }) => whole(x, type) ?? ofReal(x, (value) => sql`abs(${value})`)),
  ceiling: fn(([x], { type }) => unchanged(x, type) ?? ofNumber(x, type, (value) => sql`ceil(${value})`)),
  round: fn((args, { type }) => rounded(arg(args, 0), args[1], type)),
  sign: fn(([x]) => ofReal(x, (value) => sql`CAST(sign(${value}) AS DOUBLE)`)),
  pow: fn((args) => {
    const [base, exponent] = [num(arg(args, 0), "real"), num(arg(args, 1), "real")];
    return expr("real", sql`pow(${base}, ${exponent})`, { nullable: base.nullable || exponent.nullable });
  }),
  sqrt: fn(([x]) => ofReal(x, (value) => sql`TRY(sqrt(${value}))`, true)),
  exp: fn(([x]) => ofReal(x, (value) => sql`exp(${value})`)),
  exp2: fn(([x]) => ofReal(x, (value) => sql`pow(2, ${value})`)),
  exp10: fn(([x]) => ofReal(x, (value) => sql`pow(10, ${value})`)),
  log: fn(([x]) => ofReal(x, (value) => sql`kql_log(ln(${value}), ${value})`, true)),
  log2: fn(([x]) => ofReal(x, (value) => sql`kql_log(log2(${value}), ${value})`, true)),
  log10: fn(([x]) => ofReal(x, (value) => sql`kql_log(log10(${value}), ${value})`, true)),
  gamma: fn(([x]) => ofReal(x, (value) => sql`TRY(gamma(${value}))`, true)),
  loggamma: fn(([x]) => ofReal(x, (value) => sql`TRY(lgamma(${value}))`, true)),
  ...Object.fromEntries(["sin", "cos", "tan", "asin", "acos"].map((name) => [name, orNan(name)])),
  atan: fn(([x]) => ofReal(x, (value) => sql`atan(${value})`)),
  atan2: fn((args) => expr("real", sql`atan2(${num(arg(args, 0), "real")}, ${num(arg(args, 1), "real")})`)),
  cot: fn(([x]) => ofReal(x, (value) => sql`kql_cot(${value})`, true)),
  degrees: fn(([x]) => ofReal(x, (value) => sql`degrees(${value})`)),
  radians: fn(([x]) => ofReal(x, (value) => sql`radians(${value})`)),
  pi: fn(() => literal("real", Math.PI)),
  rand: fn(([n]) => {
    const own = n === undefined ? sql`random()` : sql`floor(random() * ${num(n, "real")})`;
    return expr("real", own, { nullable: n?.nullable ?? false, isFixed: true });
  }),
  isnan: fn(([x]) => test(x, (value) => sql`isnan(${value})`)),
  isinf: fn(([x]) => test(x, (value) => sql`isinf(${value})`)),
  isfinite: fn(([x]) => test(x, (value) => sql`isfinite(${value})`)),
  max_of: fn((args, { type }) => extreme("greatest", args, type)),
  min_of: fn((args, { type }) => extreme("least", args, type)),
  around: fn((args) => around(arg(args, 0), arg(args, 1), arg(args, 2))),
  binary_and: bits((a, b) => sql`${a} & ${b}`),
  binary_or: bits((a, b) => sql`${a} | ${b}`),
  binary_xor: bits((a, b) => sql`xor(${a}, ${b})`),
  binary_shift_left: bits((a, b) => sql`kql_shift_left(${a}, ${b})`),
  binary_shift_right: bits((a, b) => sql`kql_shift_right(${a}, ${b})`),
  binary_not: fn(([x]) => expr("long", sql`~${long(x)}`)),
  bitset_count_ones: fn(([x]) => expr("long", sql`CAST(bit_count(${long(x)}) AS BIGINT)`)),
  tohex: fn((args) => hex(arg(args, 0), args[1])),
  bin_auto: no("its step comes from properties of the request, which do not exist here"),
};

function given(x: Expr | undefined): Expr {
  return arg(x === undefined ? [] : [x], 0);
}

function long(x: Expr | undefined): Expr {
  return num(given(x), "long");
}

/** A function of a real; `mayBeNull`: it is null for some values. */
function ofReal(x: Expr | undefined, own: (value: Expr) => Sql, mayBeNull = false): Expr {
  const value = num(given(x), "real");
  return expr("real", own(value), { nullable: mayBeNull || value.nullable });
}

function ofNumber(x: Expr | undefined, type: Expr["type"], own: (value: Expr) => Sql): Expr {
  if (type !== "decimal") return ofReal(x, own);
  const value = num(given(x), "decimal");
  return expr("decimal", sql`CAST(${own(value)} AS DECIMAL(38, 17))`, { nullable: value.nullable });
}

/** The absolute value of a whole number or a timespan. */
function whole(x: Expr | undefined, type: Expr["type"]): Expr | undefined {
  if (type !== "int" && type !== "long" && type !== "timespan" && type !== "decimal") return undefined;
  const value = as(given(x), type);
  return expr(type, sql`kql_abs(${value})`, { nullable: value.nullable });
}

function unchanged(x: Expr | undefined, type: Expr["type"]): Expr | undefined {
  return type === "int" || type === "long" ? num(given(x), type) : undefined;
}

function rounded(x: Expr, digits: Expr | undefined, type: Expr["type"]): Expr {
  const kept = digits === undefined ? unchanged(x, type) : undefined;
  if (kept !== undefined) return kept;
  const value = num(x, type === "int" || type === "long" || type === "decimal" ? type : "real");
  const places = digits === undefined ? ["0"] : sql`CAST(${num(digits, "int")} AS INTEGER)`;
  const own = sql`round(${value}, ${places})`;
  if (value.type === "real") return expr("real", own);
  return expr(value.type, sql`CAST(${own} AS ${SQL_TYPES[value.type]})`);
}

/** A function that has no value for some numbers. */
function orNan(name: string) {
  return fn(([x]) => ofReal(x, (value) => sql`kql_or_nan(${[name]}(${value}), ${value})`));
}

function test(x: Expr | undefined, own: (value: Expr) => Sql): Expr {
  const value = num(given(x), "real");
  const text = value.nullable ? sql`coalesce(${own(value)}, false)` : own(value);
  return expr("bool", text, { nullable: false });
}

/** Values that are not null come first. */
function extreme(name: "greatest" | "least", args: readonly Expr[], type: Expr["type"]): Expr {
  const values = args.map((value) => (type === "string" ? str(as(value, type)) : as(value, type)));
  return expr(type, sql`${name}(${values})`, { nullable: values.every(({ nullable }) => nullable) });
}

function around(value: Expr, center: Expr, delta: Expr): Expr {
  const [v, c] = [value, center.type === value.type ? center : as(center, value.type)];
  if (value.type === "datetime") {
    const span = as(delta, "timespan");
    return expr("bool", sql`abs(kql_ticks_between(${v}, ${c})) <= ${span}`);
  }
  if (value.type !== "timespan" && [value, center, delta].some(({ type }) => type === "real" || type === "decimal")) {
    const [a, b, d] = [num(value, "real"), num(center, "real"), num(delta, "real")];
    return expr("bool", sql`${a} BETWEEN ${b} - ${d} AND ${b} + ${d}`);
  }
  const own = value.type === "timespan" ? "timespan" : "long";
  const [a = [], b = [], d = []] = [value, center, delta].map((one) => sql`CAST(${as(one, own)} AS HUGEINT)`);
  return expr("bool", sql`${a} BETWEEN ${b} - ${d} AND ${b} + ${d}`);
}

function bits(own: (a: Expr, b: Expr) => Sql) {
  return fn((args) => expr("long", own(num(arg(args, 0), "long"), num(arg(args, 1), "long"))));
}

/** Negative numbers have the digits of their width. */
function hex(value: Expr, length: Expr | undefined): Expr {
  const digits =
    value.type === "int"
      ? sql`right(lower(to_hex(CAST(${value} AS BIGINT))), 8)`
      : sql`lower(to_hex(${num(value, "long")}))`;
  const own = length === undefined ? digits : sql`kql_pad_hex(${digits}, ${num(length, "long")})`;
  return expr("string", own);
}
