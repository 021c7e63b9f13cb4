import { expr, raw, sql, type Expr, type Sql } from "../plan/expression.ts";
import { as, dyn, literal, num } from "../values/coerce.ts";
import { arg, fn, no, type FunctionRule, type FunctionTable } from "./table.ts";

const DECOMPOSED = "decomposition, spectra and forecasts of series are not";
const FITTED = "the reference does not say how it is fitted";

const BOTH_WHOLE = "kql_whole(v.a) IS NOT NULL AND kql_whole(v.b) IS NOT NULL";

/** Functions over arrays of numbers. */
export const SERIES: FunctionTable = {
  series_abs: each(
    "CASE WHEN kql_whole(v) IS NOT NULL THEN to_json(kql_abs(kql_whole(v))) ELSE kql_real_json(abs(kql_number(v))) END",
  ),
  series_sign: each("to_json(CAST(sign(kql_number(v)) AS BIGINT))"),
  series_ceiling: each("kql_real_json(ceil(kql_number(v)))"),
  series_floor: each("kql_real_json(floor(kql_number(v)))"),
  series_exp: each("kql_real_json(exp(kql_number(v)))"),
  series_log: each("kql_real_json(kql_log(ln(kql_number(v)), kql_number(v)))"),
  ...Object.fromEntries(
    ["sin", "cos", "tan", "asin", "acos"].map((name) => {
      return [`series_${name}`, each(`kql_real_json(kql_or_nan(${name}(kql_number(v)), kql_number(v)))`)];
    }),
  ),
  series_atan: each("kql_real_json(atan(kql_number(v)))"),
  series_add: pairs(arithmetic("add", "+")),
  series_subtract: pairs(arithmetic("subtract", "-")),
  series_multiply: pairs(arithmetic("multiply", "*")),
  series_divide: pairs("kql_real_json(kql_number(v.a) / kql_number(v.b))"),
  series_pow: pairs("kql_real_json(pow(kql_number(v.a), kql_number(v.b)))"),
  series_equals: pairs(comparison("=")),
  series_not_equals: pairs(comparison("<>")),
  series_greater: pairs(comparison(">")),
  series_greater_equals: pairs(comparison(">=")),
  series_less: pairs(comparison("<")),
  series_less_equals: pairs(comparison("<=")),

  series_sum: fn((args) => real(sql`kql_sum(${array(args, 0)})`)),
  series_product: fn((args) => real(sql`kql_product(${array(args, 0)})`)),
  series_magnitude: fn((args) => real(magnitude(array(args, 0)))),
  series_dot_product: fn((args) => real(dotProduct(arg(args, 0), arg(args, 1)))),
  series_cosine_similarity: fn((args) => {
    const [a, b] = [array(args, 0), array(args, 1)];
    const sizes = [a, b].map((one, i) =>
      args[i + 2] === undefined ? magnitude(one) : sql`${num(arg(args, i + 2), "real")}`,
    );
    return real(sql`kql_cosine(${a}, ${b}, ${raw(sizes[0] ?? [])}, ${raw(sizes[1] ?? [])})`);
  }),
  series_pearson_correlation: fn((args) => real(sql`kql_pearson(${array(args, 0)}, ${array(args, 1)})`)),
  series_stats: { ...fn((args) => json(sql`to_json([${statistics(args)}])`)), tuple: statistics },
  series_stats_dynamic: fn((args) => json(sql`to_json(kql_stats(${array(args, 0)}, ${lenient(args)}))`)),

  series_fill_const: fn((args, { refuse }) => {
    // The library lets the constant be left out, the reference does not.
    const constant = args[1];
    if (constant === undefined) throw refuse("series_fill_const() needs the constant that fills the gaps");
    return json(sql`kql_fill_const(${gaps(args, 2)}, ${dyn(constant)})`);
  }),
  series_fill_forward: fn((args) => json(sql`kql_fill_forward(${gaps(args, 1)}, ${placeholder(args, 1)})`)),
  series_fill_backward: fn((args) => json(sql`kql_fill_backward(${gaps(args, 1)}, ${placeholder(args, 1)})`)),
  series_fill_linear: fn((args) => {
    const edges = args[2] === undefined ? literal("bool", true) : as(arg(args, 2), "bool");
    const constant = dyn(args[3] ?? literal("long", 0n));
    return json(sql`kql_fill_linear(${gaps(args, 1)}, ${edges}, ${placeholder(args, 1)}, ${constant})`);
  }),
  series_iir: fn((args) => json(sql`kql_iir(${[array(args, 0), array(args, 1), array(args, 2)]})`)),

  series_fir: no("the reference does not say what stands before the beginning of a series"),
  series_fit_line: no(FITTED),
  series_fit_line_dynamic: no(FITTED),
  series_fit_2lines: no(FITTED),
  series_fit_2lines_dynamic: no(FITTED),
  series_fit_poly: no(FITTED),
  series_outliers: no("the reference does not say how its quantiles are found"),
  series_decompose: no(DECOMPOSED),
  series_decompose_anomalies: no(DECOMPOSED),
  series_decompose_forecast: no(DECOMPOSED),
  series_fft: no(DECOMPOSED),
  series_ifft: no(DECOMPOSED),
  series_periods_detect: no(DECOMPOSED),
  series_periods_validate: no(DECOMPOSED),
  series_seasonal: no(DECOMPOSED),
};

function json(own: Sql): Expr {
  return expr("dynamic", own);
}

function real(own: Sql): Expr {
  return expr("real", own);
}

function array(args: readonly Expr[], i: number): Expr {
  return as(arg(args, i), "dynamic");
}

/** Element by element; `own` is JSON of an element `v`. */
function each(own: string): FunctionRule {
  return fn((args) => json(sql`to_json(list_transform(kql_list(${array(args, 0)}), lambda v: ${own}))`));
}

/** Element by element of two arrays; `own` is JSON of `v.a` and `v.b`. */
function pairs(own: string): FunctionRule {
  return fn((args) => {
    return json(sql`to_json(list_transform(kql_pairs(${array(args, 0)}, ${array(args, 1)}), lambda v: ${own}))`);
  });
}

/** Whole numbers stay whole. */
function arithmetic(name: string, operator: string): string {
  return `CASE WHEN ${BOTH_WHOLE} THEN to_json(kql_${name}(kql_whole(v.a), kql_whole(v.b)))
    ELSE kql_real_json(kql_number(v.a) ${operator} kql_number(v.b)) END`;
}

function comparison(operator: string): string {
  return `to_json(CASE WHEN ${BOTH_WHOLE} THEN kql_whole(v.a) ${operator} kql_whole(v.b)
    ELSE kql_number(v.a) ${operator} kql_number(v.b) END)`;
}

function magnitude(value: Expr): Sql {
  return sql`sqrt(kql_dot(${value}, ${value}))`;
}

/** A number counts as an array of it that is as long as the other one. */
function dotProduct(a: Expr, b: Expr): Sql {
  if (a.type === "dynamic" && b.type === "dynamic") return sql`kql_dot(${a}, ${b})`;
  const [value, by] = a.type === "dynamic" ? [a, b] : [b, a];
  return sql`kql_scaled(${value}, ${num(by, "real")})`;
}

function lenient(args: readonly Expr[]): Expr {
  return args[1] === undefined ? literal("bool", false) : as(arg(args, 1), "bool");
}

function statistics(args: readonly Expr[]): Expr[] {
  const stats = sql`kql_stats(${array(args, 0)}, ${lenient(args)})`;
  return ["min", "min_idx", "max", "max_idx", "avg", "stdev", "variance"].map((name) => {
    const own = sql`${raw(stats)}."${name}"`;
    return name.endsWith("_idx") ? expr("long", sql`CAST(${own} AS BIGINT)`) : real(own);
  });
}

function placeholder(args: readonly Expr[], i: number): Expr {
  const value = args[i];
  return value === undefined || value.constant === null ? literal("dynamic", null) : dyn(value);
}

function gaps(args: readonly Expr[], i: number): Sql {
  return sql`kql_gaps(${array(args, 0)}, ${placeholder(args, i)})`;
}
