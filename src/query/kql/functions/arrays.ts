import { classOf } from "../bind/library.ts";
import { columnExpr, commaList, expr, raw, sql, type Expr, type Sql } from "../plan/expression.ts";
import type { Call } from "../scope.ts";
import { as, dyn, fromDynamic, literal, num } from "../values/coerce.ts";
import { arg, fn, no, type FunctionTable } from "./table.ts";

/** Functions over arrays. */
export const ARRAYS: FunctionTable = {
  array_length: fn((args) => length(arg(args, 0))),
  arraylength: fn((args) => length(arg(args, 0))),
  array_concat: fn((args) => json(sql`kql_concat(${lists(args)})`)),
  array_iff: fn((args) => json(sql`kql_iff(${args.map(dyn)})`)),
  array_iif: fn((args) => json(sql`kql_iff(${args.map(dyn)})`)),
  array_index_of: fn((args) => {
    const [start, length_, occurrence] = [number(args[2], 0n), number(args[3], -1n), number(args[4], 1n)];
    return expr("long", sql`kql_index_of(${[array(args, 0), item(args, 1), start, length_, occurrence]})`);
  }),
  array_reverse: fn((args) => json(sql`kql_reverse(${array(args, 0)})`)),
  array_rotate_left: fn((args) => json(sql`kql_rotate(${array(args, 0)}, ${number(args[1], 0n)})`)),
  array_rotate_right: fn((args) => json(sql`kql_rotate(${array(args, 0)}, kql_negate(${number(args[1], 0n)}))`)),
  array_shift_left: fn((args) => shifted(args, "")),
  array_shift_right: fn((args) => shifted(args, "kql_negate")),
  array_slice: fn((args) => {
    return json(sql`kql_slice(${[array(args, 0), number(args[1], 0n), number(args[2], -1n)]})`);
  }),
  array_split: fn((args) => {
    const at = arg(args, 1);
    const places =
      at.type === "dynamic"
        ? sql`list_transform(coalesce(kql_list(${at}), [${at}]), lambda v: kql_dynamic_long(v))`
        : sql`[${num(at, "long")}]`;
    return json(sql`kql_split(${array(args, 0)}, ${places})`);
  }),
  array_sum: fn((args) => expr("real", sql`kql_sum(${array(args, 0)})`)),
  array_sort_asc: { ...fn((args) => packed(sortedArrays("asc", args))), tuple: (args) => sortedArrays("asc", args) },
  array_sort_desc: { ...fn((args) => packed(sortedArrays("desc", args))), tuple: (args) => sortedArrays("desc", args) },
  pack_array: { special: packArray },
  zip: fn((args) => json(sql`kql_zip(${lists(args)})`)),
  repeat: fn((args) => json(sql`kql_repeat(${dyn(arg(args, 0))}, ${number(args[1], 0n)})`)),
  range: fn((args) => series(arg(args, 0), arg(args, 1), args[2])),

  set_union: fn((args) => json(sql`kql_union(${lists(args)})`)),
  set_intersect: fn((args) => json(sql`kql_intersect(${list(arg(args, 0))}, ${lists(args.slice(1))})`)),
  set_difference: fn((args) => json(sql`kql_difference(${list(arg(args, 0))}, ${lists(args.slice(1))})`)),
  set_has_element: fn((args) => {
    return expr("bool", sql`kql_index_of(${[array(args, 0), item(args, 1)]}, 0, -1, 1) >= 0`);
  }),
  set_equals: fn((args) => expr("bool", sql`kql_set_equals(${list(arg(args, 0))}, ${list(arg(args, 1))})`)),
  jaccard_index: fn((args) => {
    return as(expr("real", sql`kql_jaccard(${list(arg(args, 0))}, ${list(arg(args, 1))})`), "dynamic");
  }),
  treepath: no("the reference gives examples of its paths and no rule"),
};

function json(own: Sql, nullable = true): Expr {
  return expr("dynamic", own, { nullable });
}

function array(args: readonly Expr[], i: number): Expr {
  return as(arg(args, i), "dynamic");
}

function number(value: Expr | undefined, otherwise: bigint): Expr {
  return value === undefined ? literal("long", otherwise) : num(value, "long");
}

function list(value: Expr): Sql {
  return sql`kql_list(${as(value, "dynamic")})`;
}

/** A list of lists. */
function lists(values: readonly Expr[]): Sql {
  return sql`[${commaList(values.map(list))}]`;
}

/** What elements are compared with: numbers as they are written in arrays. */
function item(args: readonly Expr[], i: number): Expr {
  const value = arg(args, i);
  const { constant } = value;
  return typeof constant === "number" && Number.isInteger(constant)
    ? dyn(literal("long", BigInt(constant)))
    : dyn(value);
}

function length(value: Expr): Expr {
  return expr("long", sql`len(${list(value)})`);
}

function shifted(args: readonly Expr[], macro: "" | "kql_negate"): Expr {
  const filler = args[2] === undefined ? expr("dynamic", sql`kql_filler(${array(args, 0)})`) : dyn(args[2]);
  return json(sql`kql_shift(${array(args, 0)}, ${raw([macro])}(${number(args[1], 0n)}), ${filler})`);
}

/** Each array in the order of the first one; a bool at the end says whether nulls come last. */
function sortedArrays(order: "asc" | "desc", args: readonly Expr[]): Expr[] {
  const last = args.at(-1);
  const hasOrder = args.length > 1 && last?.type === "bool";
  const arrays = hasOrder ? args.slice(0, -1) : args;
  const nullsLast = hasOrder ? last : literal("bool", true);
  const places = sql`kql_places_${[order]}(${array(arrays, 0)}, ${nullsLast})`;
  return arrays.map((_, i) => json(sql`kql_in_places(${array(arrays, i)}, ${places})`));
}

/** What several arrays are as one value. */
function packed(values: readonly Expr[]): Expr {
  return values.length === 1 ? arg(values, 0) : json(sql`to_json([${values}])`);
}

/** Of all columns where `*` stands for them. */
function packArray({ argumentNodes, scope, translator }: Call): Expr {
  const values = argumentNodes.flatMap((node) => {
    if (classOf(node) !== "StarExpression") return [translator.scalar(node, scope)];
    return (scope.rel?.columns ?? []).map(({ column }) => columnExpr(column));
  });
  return json(sql`json_array(${values.map(dyn)})`, false);
}

/** `range(start, stop, step)`: at most 2^20 values. */
function series(start: Expr, stop: Expr, step: Expr | undefined): Expr {
  const types = new Set([start.type, stop.type]);
  if (types.has("datetime")) {
    const [low, high] = [as(start, "datetime"), as(stop, "datetime")];
    const width = step === undefined ? literal("timespan", 36_000_000_000n) : as(step, "timespan");
    const moments = sql`kql_series_long(CAST(epoch_ns(${low}) AS HUGEINT), epoch_ns(${high}), CAST(${width} AS HUGEINT) * 100)`;
    return json(sql`to_json(list_transform(${moments}, lambda n: kql_datetime_text(kql_datetime_at(n))))`);
  }
  if (types.has("timespan")) {
    const [low, high] = [as(start, "timespan"), as(stop, "timespan")];
    const width = step === undefined ? literal("timespan", 36_000_000_000n) : as(step, "timespan");
    const spans = sql`kql_series_long(${[low, high, width]})`;
    return json(sql`to_json(list_transform(${spans}, lambda n: kql_timespan_text(n)))`);
  }
  const values = [start, stop, step ?? literal("long", 1n)];
  const isWhole = values.every(({ type }) => type === "long" || type === "int");
  const numbers = values.map((one) =>
    one.type === "dynamic" ? fromDynamic(one, "real") : num(one, isWhole ? "long" : "real"),
  );
  return json(sql`to_json(kql_series_${[isWhole ? "long" : "real"]}(${numbers}))`);
}
