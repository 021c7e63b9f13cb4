import { commaList, expr, raw, sql, type Expr } from "../plan/expression.ts";
import { as, literal, str } from "../values/coerce.ts";
import { arg, fn, type FunctionTable } from "./table.ts";

/** Conditions, and tests for null and empty. */
export const CONDITIONS: FunctionTable = {
  iff: fn((args, { type }) => choice(args, type)),
  iif: fn((args, { type }) => choice(args, type)),
  case: fn((args, { type }) => {
    const whens = [];
    for (let i = 0; i + 1 < args.length; i += 2) {
      whens.push(sql`WHEN ${arg(args, i)} THEN ${valueAs(arg(args, i + 1), type)} `);
    }
    return expr(type, sql`CASE ${raw(whens.flat())}ELSE ${valueAs(arg(args, args.length - 1), type)} END`);
  }),
  coalesce: fn((args, { type }) => {
    if (type === "string") {
      const texts = args.map((value) => sql`nullif(${str(as(value, "string"))}, '')`);
      return expr("string", sql`coalesce(${commaList(texts)}, '')`, { nullable: false });
    }
    return expr(type, sql`coalesce(${commaList(args.map((value) => as(value, type).sql))})`, {
      nullable: args.every(({ nullable }) => nullable),
    });
  }),
  not: fn((args) => expr("bool", sql`NOT ${as(arg(args, 0), "bool")}`, { nullable: arg(args, 0).nullable })),
  isnull: fn((args) => isNull(arg(args, 0))),
  isnotnull: fn((args) => negated(isNull(arg(args, 0)))),
  notnull: fn((args) => negated(isNull(arg(args, 0)))),
  isempty: fn((args) => isEmpty(arg(args, 0))),
  isnotempty: fn((args) => negated(isEmpty(arg(args, 0)))),
  notempty: fn((args) => negated(isEmpty(arg(args, 0)))),
};

function valueAs(value: Expr, type: Expr["type"]): Expr {
  return type === "string" ? str(as(value, "string")) : as(value, type);
}

function choice(args: readonly Expr[], type: Expr["type"]): Expr {
  const [yes, no] = [valueAs(arg(args, 1), type), valueAs(arg(args, 2), type)];
  return expr(type, sql`CASE WHEN ${as(arg(args, 0), "bool")} THEN ${yes} ELSE ${no} END`, {
    nullable: yes.nullable || no.nullable,
  });
}

/** A string is never null. */
function isNull(value: Expr): Expr {
  if (value.type === "string" || !value.nullable) return literal("bool", false);
  return expr("bool", sql`${value} IS NULL`, { nullable: false });
}

/** A null, or an empty string. */
function isEmpty(value: Expr): Expr {
  if (value.type !== "string" && value.type !== "dynamic") return isNull(value);
  return expr("bool", sql`${str(value)} = ''`, { nullable: false });
}

function negated(value: Expr): Expr {
  return expr("bool", sql`NOT ${value}`, { nullable: false });
}
