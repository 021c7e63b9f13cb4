import { expr, sql, type Expr } from "../plan/expression.ts";
import { num } from "../values/coerce.ts";
import type { Call } from "../scope.ts";
import { aggregate, arg, where, type AggregateRule, type AggregateTable } from "./table.ts";

/** Deviations and variances, which are 0 of fewer values than they need, and covariances, which are null then. */
export const DEVIATIONS: AggregateTable = {
  stdev: spread("stddev_samp"),
  stdevif: spread("stddev_samp"),
  stdevp: spread("stddev_pop"),
  variance: spread("var_samp"),
  varianceif: spread("var_samp"),
  variancep: spread("var_pop"),
  variancepif: spread("var_pop"),
  covariance: together("covar_samp"),
  covarianceif: together("covar_samp"),
  covariancep: together("covar_pop"),
  covariancepif: together("covar_pop"),
};

/** Of a value, and of a condition if there is a second argument. */
function spread(name: string): AggregateRule {
  return aggregate(([value, condition], call) => {
    const own = real(value, call);
    if (own.type === "real" && value?.type === "real") return spreadOfReals(name, own, condition);
    return expr("real", sql`coalesce(${name}(${own})${where(condition)}, 0)`, { nullable: false });
  });
}

/** DuckDB fails on NaN and infinities, where the language gives NaN. */
function spreadOfReals(name: string, value: Expr, condition: Expr | undefined): Expr {
  const isFinite = sql`isfinite(${value})`;
  const isOdd = sql`bool_or(NOT isfinite(${value}))${where(condition)}`;
  const spreadOut = sql`${name}(${value})${where(condition, isFinite)}`;
  return expr("real", sql`CASE WHEN ${isOdd} THEN CAST('nan' AS DOUBLE) ELSE coalesce(${spreadOut}, 0) END`, {
    nullable: false,
  });
}

/** Of two values, and of a condition if there is a third argument. */
function together(name: string): AggregateRule {
  return aggregate((args, call) => {
    const [a, b] = [real(arg(args, 0), call), real(arg(args, 1), call)];
    return expr("real", sql`${name}(${a}, ${b})${where(args[2])}`);
  });
}

function real(value: Expr | undefined, call: Call): Expr {
  if (value === undefined || value.type === "datetime" || value.type === "timespan") {
    throw call.refuse(`${call.name}() of ${value?.type ?? "nothing"} is not supported: convert it to a number first`);
  }
  return num(value, "real");
}
