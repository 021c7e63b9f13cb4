import { expr, sql } from "../plan/expression.ts";
import { str } from "../values/coerce.ts";
import { arg, fn, type FunctionTable } from "./table.ts";

/** Functions over strings. */
export const STRINGS: FunctionTable = {
  strlen: fn((args) => expr("long", sql`length(${str(arg(args, 0))})`, { nullable: false })),
  tolower: fn((args) => expr("string", sql`lower(${str(arg(args, 0))})`, { nullable: false })),
  toupper: fn((args) => expr("string", sql`upper(${str(arg(args, 0))})`, { nullable: false })),
  strcat: fn((args) => {
    const parts = args.flatMap((value, i) => [...(i === 0 ? [] : [" || "]), ...sql`${str(value)}`]);
    return expr("string", parts, { nullable: false });
  }),
};
