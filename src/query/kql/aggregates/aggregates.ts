import { expr, sql } from "../plan/expression.ts";
import { num } from "../values/coerce.ts";
import { aggregate, arg, type AggregateTable } from "./table.ts";

/** All aggregates of the language, by name. Nulls do not count. */
export const AGGREGATES: AggregateTable = {
  count: aggregate(() => expr("long", ["count(*)"], { nullable: false })),
  countif: aggregate((args) => expr("long", sql`count(*) FILTER (WHERE ${arg(args, 0)})`, { nullable: false })),
  avg: aggregate((args) => expr("real", sql`avg(${num(arg(args, 0), "real")})`)),
};
