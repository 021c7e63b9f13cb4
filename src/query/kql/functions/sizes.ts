import { expr, sql } from "../plan/expression.ts";
import { literal, num, str } from "../values/coerce.ts";
import { arg, fn, type FunctionTable } from "./table.ts";

/** Sizes in bytes as people read them. */
export const SIZES: FunctionTable = {
  format_bytes: fn((args) => {
    const [size, digits, unit] = [arg(args, 0), args[1] ?? literal("long", 0n), args[2] ?? literal("string", "")];
    return expr("string", sql`kql_format_bytes(${num(size, "real")}, ${num(digits, "int")}, ${str(unit)})`);
  }),
};
