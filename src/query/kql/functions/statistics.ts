import { expr, sql, type Expr } from "../plan/expression.ts";
import { num } from "../values/coerce.ts";
import { fn, no, type FunctionTable } from "./table.ts";

const reals = (args: readonly Expr[]): Expr[] => args.map((one) => num(one, "real"));

/** Functions of statistics. */
export const STATISTICS: FunctionTable = {
  erf: fn((args) => expr("real", sql`kql_erf(${reals(args)})`)),
  erfc: fn((args) => expr("real", sql`kql_erfc(${reals(args)})`)),
  beta_cdf: fn((args) => expr("real", sql`kql_beta_cdf(${reals(args)})`)),
  beta_pdf: fn((args) => expr("real", sql`kql_beta_pdf(${reals(args)})`)),
  beta_inv: no("it is found only by search, and the reference contradicts itself on values out of range"),
  welch_test: fn((args) => expr("real", sql`kql_welch_test(${reals(args)})`)),
};
