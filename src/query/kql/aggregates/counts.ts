import { expr, sql, type Expr } from "../plan/expression.ts";
import { str } from "../values/coerce.ts";
import { aggregate, arg, where, type AggregateTable } from "./table.ts";

/** Aggregates that count rows and values. `dcount` is exact, whatever accuracy is asked for. */
export const COUNTS: AggregateTable = {
  count: aggregate((args, call) => {
    if (args.length > 0) throw call.refuse("count() of an expression is not supported: use countif()");
    return counted();
  }),
  cnt: aggregate(() => counted()),
  countif: aggregate((args) => counted(arg(args, 0))),
  dcount: aggregate((args) => countedOnce(arg(args, 0))),
  dcountif: aggregate((args) => countedOnce(arg(args, 0), arg(args, 1))),
  count_distinct: aggregate((args) => countedOnce(arg(args, 0))),
  count_distinctif: aggregate((args) => countedOnce(arg(args, 0), arg(args, 1))),
};

function counted(condition?: Expr): Expr {
  return expr("long", sql`count(*)${where(condition)}`, { nullable: false });
}

function countedOnce(value: Expr, condition?: Expr): Expr {
  const own = value.type === "string" ? str(value) : value;
  return expr("long", sql`count(DISTINCT ${own})${where(condition)}`, { nullable: false });
}
