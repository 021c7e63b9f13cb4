import { library, textOf, type SyntaxExpression } from "../bind/library.ts";
import { columnExpr, commaList, expr, raw, sql, type Expr, type Sql } from "../plan/expression.ts";
import type { Call } from "../scope.ts";
import { as, dyn, literal, str } from "../values/coerce.ts";
import { arg, fn, type FunctionTable } from "./table.ts";
import { jsonIn } from "../values/literal-nodes.ts";

/** Functions over bags. */
export const BAGS: FunctionTable = {
  bag_pack: fn(packed),
  pack: fn(packed),
  pack_dictionary: fn(packed),
  pack_all: { special: packAll },
  bag_pack_columns: fn((args, call) => {
    return object(args.map((value, i) => ({ name: textSql(nameOf(call.argumentNodes[i])), value })));
  }),
  bag_keys: fn((args) => json(sql`kql_names_in_bag(${bag(args)})`)),
  bag_has_key: fn((args) => hasKey(bag(args), arg(args, 1))),
  bag_merge: fn((args) => {
    const entries = args.map((value) => sql`kql_entries(${as(value, "dynamic")})`);
    return json(sql`kql_merge(kql_all([${commaList(entries)}]))`);
  }),
  bag_remove_keys: fn((args, call) => withoutKeys(bag(args), arg(args, 1), call)),
  bag_set_key: fn((args, call) => {
    const key = arg(args, 1);
    const item = sql`${dyn(arg(args, 2))}`;
    if (typeof key.constant !== "string") return json(sql`kql_with(${bag(args)}, ${str(key)}, ${raw(item)})`);
    return json(setPath(sql`${bag(args)}`, stepsOf(key.constant, call), item));
  }),
  bag_zip: fn((args) => json(sql`kql_zip_bag(${bag(args)}, ${as(arg(args, 1), "dynamic")})`)),
  // DuckDB's normal form of a variant has the names of its objects sorted, at every depth.
  dynamic_to_json: fn((args) => {
    const value = arg(args, 0);
    return value.type === "dynamic" ? expr("string", sql`kql_canonical(${value})`) : str(value);
  }),
};

function json(own: Sql, nullable = true): Expr {
  return expr("dynamic", own, { nullable });
}

function bag(args: readonly Expr[]): Expr {
  return as(arg(args, 0), "dynamic");
}

function nameOf(node: SyntaxExpression | undefined): string {
  if (node === undefined) return "";
  return library().KustoFacts.GetExpressionResultName(node, null, null) ?? textOf(node);
}

function textSql(text: string): Sql {
  return literal("string", text).sql;
}

function object(members: readonly { name: Sql; value: Expr }[]): Expr {
  return json(sql`json_object(${commaList(members.flatMap(({ name, value }) => [name, dyn(value).sql]))})`, false);
}

function packed(args: readonly Expr[]): Expr {
  const members = [];
  for (let i = 0; i + 1 < args.length; i += 2)
    members.push({ name: sql`${str(arg(args, i))}`, value: arg(args, i + 1) });
  return object(members);
}

/** All columns of the rows as a bag; `pack_all(true)` leaves out what is null or empty. */
function packAll(call: Call): Expr {
  if (call.scope.aggregates === true) {
    throw call.refuse("pack_all() can stand here only inside of an aggregate");
  }
  const columns = call.scope.rel?.columns ?? [];
  const members = columns.map(({ name, column }) => ({ name: textSql(name), value: columnExpr(column) }));
  const [flag] = call.argumentNodes;
  if (flag === undefined || call.translator.constant(flag, call.scope) !== true) return object(members);
  const entries = members.map(({ name, value }) => sql`{'k': ${raw(name)}, 'v': ${dyn(value)}}`);
  return json(sql`kql_bag(kql_full_entries([${commaList(entries)}]))`, false);
}

/** The names that a key leads through: `name`, `$.a.b`, `$['a'].b`. */
function stepsOf(key: string, call: Call): string[] {
  if (!/^\$[.[]/.test(key)) return [key];
  const steps: string[] = [];
  let rest = key.slice(1);
  while (rest !== "") {
    const found = /^(?:\.([^.[\]'"]+)|\[\s*'([^']*)'\s*\]|\[\s*"([^"]*)"\s*\])/.exec(rest);
    if (found === null) throw call.refuse(`${call.name}() does not understand the path ${key}`);
    steps.push(found[1] ?? found[2] ?? found[3] ?? "");
    rest = rest.slice(found[0].length);
  }
  return steps;
}

function hasKey(value: Expr, key: Expr): Expr {
  const { constant } = key;
  if (typeof constant !== "string" || constant.startsWith("$"))
    return expr("bool", sql`kql_has_key(${value}, ${str(key)})`);
  return expr("bool", sql`list_contains(json_keys(${value}), ${key})`);
}

/** The bag with another value at the path; bags are made where there are none. */
function setPath(value: Sql, steps: readonly string[], item: Sql, depth = 0): Sql {
  const [first = "", ...rest] = steps;
  if (rest.length === 0) return sql`kql_with(${raw(value)}, ${literal("string", first)}, ${raw(item)})`;
  const own = `kqlbag${depth}`;
  const inner = sql`kql_bag_or_new(kql_member(${own}, ${literal("string", first)}))`;
  const made = setPath(inner, rest, item, depth + 1);
  return sql`list_transform([${raw(value)}], lambda ${own}: kql_with(${own}, ${literal("string", first)}, ${raw(made)}))[1]`;
}

function withoutKeys(value: Expr, keys: Expr, call: Call): Expr {
  const { constant } = keys;
  if (typeof constant !== "string") return json(sql`kql_without(${value}, kql_texts(${as(keys, "dynamic")}))`);
  const listed = jsonIn(constant);
  const texts = (Array.isArray(listed) ? listed : []).filter((one) => typeof one === "string");
  const paths = texts.map((one) => stepsOf(one, call));
  const names = paths.filter((steps) => steps.length === 1).map(([name = ""]) => textSql(name));
  const without = sql`kql_without(${value}, CAST([${commaList(names)}] AS VARCHAR[]))`;
  return json(paths.filter((steps) => steps.length > 1).reduce((own, steps) => removePath(own, steps), without));
}

/** The bag without what is at the path. */
function removePath(value: Sql, steps: readonly string[], depth = 0): Sql {
  const [first = "", ...rest] = steps;
  if (rest.length === 0) return sql`kql_without(${raw(value)}, [${literal("string", first)}])`;
  const own = `kqlbag${depth}`;
  const member = sql`kql_member(${own}, ${literal("string", first)})`;
  const made = removePath(member, rest, depth + 1);
  return sql`list_transform([${raw(value)}], lambda ${own}: CASE WHEN json_type(${member}) = 'OBJECT'
    THEN kql_with(${own}, ${literal("string", first)}, ${raw(made)}) ELSE ${own} END)[1]`;
}
