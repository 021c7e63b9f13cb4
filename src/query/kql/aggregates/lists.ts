import { expr, raw, sql, type Expr, type Sql } from "../plan/expression.ts";
import { orderSql } from "../plan/plan.ts";
import type { Call } from "../scope.ts";
import { dyn, str } from "../values/coerce.ts";
import { aggregate, arg, where, type AggregateRule, type AggregateTable } from "./table.ts";

/** The most elements that a list, set or bag has. */
const MAX_SIZE = 1_048_576n;
/** The most that the deprecated names give without being asked for more. */
const OLD_SIZE = 128n;

/** Aggregates that gather values into lists, sets, bags and schemas. */
export const LISTS: AggregateTable = {
  make_list: gathered(listOf, MAX_SIZE),
  makelist: gathered(listOf, OLD_SIZE),
  make_list_if: gatheredIf(listOf),
  make_list_with_nulls: aggregate((args, call) => {
    const { type, sql: own } = element(arg(args, 0));
    return sized(sql`list(${expr(type, own)}${order(call)})`, MAX_SIZE);
  }),
  make_set: gathered(setOf, MAX_SIZE),
  makeset: gathered(setOf, OLD_SIZE),
  make_set_if: gatheredIf(setOf),
  make_bag: gathered(bagOf, MAX_SIZE),
  make_dictionary: gathered(bagOf, OLD_SIZE),
  make_bag_if: gatheredIf(bagOf),
  buildschema: aggregate((args) => {
    const value = arg(args, 0);
    return expr("dynamic", sql`kql_schema_of(list(DISTINCT kql_skeleton(${value})))`);
  }),
};

type Gather = (value: Expr, condition: Expr | undefined, size: bigint, call: Call) => Expr;

/** `make_list(value, size)`. */
function gathered(gather: Gather, size: bigint): AggregateRule {
  return aggregate((args, call) => gather(arg(args, 0), undefined, sizeOf(args[1], size, call), call));
}

/** `make_list_if(value, condition, size)`. */
function gatheredIf(gather: Gather): AggregateRule {
  return aggregate((args, call) => gather(arg(args, 0), arg(args, 1), sizeOf(args[2], MAX_SIZE, call), call));
}

function sizeOf(value: Expr | undefined, otherwise: bigint, call: Call): bigint {
  if (value === undefined) return otherwise;
  const { constant } = value;
  if (typeof constant !== "bigint" || constant < 0n) {
    throw call.refuse(`the size that ${call.name}() takes is a whole number, known beforehand`);
  }
  return constant < MAX_SIZE ? constant : MAX_SIZE;
}

function sized(list: Sql, size: bigint): Expr {
  const text = sql`coalesce(to_json(list_slice(${raw(list)}, 1, ${String(size)})), CAST('[]' AS JSON))`;
  return expr("dynamic", text, { nullable: false });
}

/** What DuckDB writes as the language does stays as it is inside a list, which is quicker. */
const PLAIN: ReadonlySet<string> = new Set(["bool", "int", "long"]);

function element(value: Expr): Expr {
  if (value.type === "string") return str(value);
  return PLAIN.has(value.type) ? value : dyn(value);
}

function present(value: Expr): Sql | undefined {
  return value.nullable ? sql`${value} IS NOT NULL` : undefined;
}

function listOf(value: Expr, condition: Expr | undefined, size: bigint, call: Call): Expr {
  const own = element(value);
  return sized(sql`list(${own}${order(call)})${where(condition, present(own))}`, size);
}

/** ` ORDER BY …`: the list has the order of the rows, if they have one. */
function order(call: Call): { raw: Sql } {
  const keys = call.scope.rel?.order ?? [];
  if (keys.length === 0) return raw([]);
  return raw([" ORDER BY ", ...orderSql(keys)]);
}

/** Of arrays it has the elements. */
function setOf(value: Expr, condition: Expr | undefined, size: bigint): Expr {
  if (value.type === "dynamic") {
    return sized(sql`list_distinct(flatten(list(kql_elements(${value}))${where(condition)}))`, size);
  }
  const own = element(value);
  return sized(sql`list(DISTINCT ${own})${where(condition, present(own))}`, size);
}

/** Only bags count. */
function bagOf(value: Expr, condition: Expr | undefined, size: bigint): Expr {
  const isBag = sql`json_type(${value}) = 'OBJECT'`;
  const list = sql`list(${value})${where(condition, isBag)}`;
  const bag = sql`coalesce(kql_merged(${raw(list)}, ${String(size)}), CAST('{}' AS JSON))`;
  return expr("dynamic", bag, { nullable: false });
}
