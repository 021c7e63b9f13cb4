import type { KqlType } from "../contract.ts";
import { Column, columnExpr, expr, sql } from "../plan/expression.ts";
import { computed, distinct, type Named, type Rel } from "../plan/rel.ts";
import { UnnestPlan } from "../plan/unnest.ts";
import { literal } from "../values/coerce.ts";
import { the } from "../bind/library.ts";
import { boundColumns } from "./columns.ts";
import { elementAs } from "./expand.ts";
import { argumentOf, columnOf, keysOf, tellColumns, type PluginCall } from "./plugin.ts";
import { jsonIn } from "../values/literal-nodes.ts";

/** `bag_unpack`: a column for each member of bags. */
export function bagUnpacked(call: PluginCall): Rel {
  const { node, input, context } = call;
  const bag = columnOf(call, call.args[0]);
  const options = optionsOf(call);
  const kept = input.columns.filter(({ column }) => column !== bag);
  const isTold = node.Schema === null || context.translator.isInserted(node.Schema);
  const fromBag = isTold ? told(call, bag, kept, options) : declared(call, kept, options);
  const shape = boundColumns(node);
  const items = shape.map(({ name, type }) => {
    const own = kept.find((one) => one.name === name);
    const isMember = own === undefined || fromBag.has(name);
    const member = sql`kql_member(${bag}, ${literal("string", name.slice(options.prefix.length))})`;
    return { name, value: isMember ? elementAs(expr("dynamic", member), type) : columnExpr(own.column) };
  });
  const made = computed(input, items);
  return made.rel.showing(shape.map(({ name }, i): Named => ({ name, column: the(made.columns[i]) }))).unordered();
}

type Options = { prefix: string; conflict: string; ignored: ReadonlySet<string> };

const ARGUMENTS = ["column", "column_prefix", "columnsConflict", "ignoredProperties"];

function optionsOf({ args, call, context: { translator, scope } }: PluginCall): Options {
  const values = new Map<string, string>();
  for (const [i, arg] of args.entries()) {
    const { name = ARGUMENTS[i] ?? "", value } = argumentOf(arg);
    if (i > 0) values.set(name.toLowerCase(), String(translator.constant(value, { variables: scope.variables }) ?? ""));
  }
  const conflict = values.get("columnsconflict") ?? "error";
  if (!["error", "replace_source", "keep_source"].includes(conflict)) {
    throw translator.refuse(`columnsConflict is error, replace_source or keep_source, and not ${conflict}`, call);
  }
  const ignored = jsonIn(values.get("ignoredproperties"));
  return {
    prefix: values.get("column_prefix") ?? values.get("outputcolumnprefix") ?? "",
    conflict,
    ignored: new Set(Array.isArray(ignored) ? ignored.map(String) : []),
  };
}

/** The columns that the rows decide: the binder is told of them. Gives the names of those that come from the bag. */
function told(call: PluginCall, bag: Column, kept: readonly Named[], options: Options): ReadonlySet<string> {
  const members = membersOf(keysOf(call, () => membersIn(call.input, bag)))
    .filter(({ name }) => !options.ignored.has(name))
    .map(({ name, type }) => ({ name: `${options.prefix}${name}`, type }));
  const names = new Set(kept.map(({ name }) => name));
  const both = members.filter(({ name }) => names.has(name));
  if (both.length > 0 && options.conflict === "error") {
    const { translator } = call.context;
    throw translator.refuse(`there is a column ${both[0]?.name ?? ""} already: say columnsConflict`, call.call);
  }
  const isReplaced = options.conflict === "replace_source";
  const shown = members.filter(({ name }) => isReplaced || !names.has(name));
  const fromBag = new Set(shown.map(({ name }) => name));
  const others = kept.map(({ name, column: { type } }) => shown.find((one) => one.name === name) ?? { name, type });
  tellColumns(call, [...others, ...shown.filter(({ name }) => !names.has(name))]);
  return fromBag;
}

/** The columns that the text declares behind the call. */
function declared(
  { node, call, context: { translator } }: PluginCall,
  kept: readonly Named[],
  { conflict }: Options,
): ReadonlySet<string> {
  const hasStar = node.Schema?.Schema?.AsteriskToken !== null;
  const named = boundColumns(node).slice(hasStar ? kept.length : 0);
  const both = named.find(({ name }) => kept.some((one) => one.name === name));
  if (both !== undefined && (hasStar || conflict === "error")) {
    throw translator.refuse(`there is a column ${both.name} already: write * for it, or say columnsConflict`, call);
  }
  return new Set(conflict === "replace_source" ? named.map(({ name }) => name) : []);
}

/** Each name of a member with each kind of value that it has, as JSON. */
function membersIn(input: Rel, bag: Column): Rel {
  const name = new Column("name", "string");
  const opened = input
    .unordered()
    .over(new UnnestPlan(input.plan, new Map([[name, expr("dynamic", sql`kql_member_names(${bag})`)]])));
  const kind = sql`kql_shown_kind(kql_member(${bag}, ${name}))`;
  const made = computed(opened, [
    { name: "member", value: expr("string", sql`CAST(json_array(${name}, ${kind}) AS VARCHAR)`) },
  ]);
  return distinct(made.rel, [{ name: "member", column: the(made.columns[0]) }]);
}

/** By name; those whose values are of several types are dynamic, and a null is of any. */
function membersOf(keys: readonly string[]): { name: string; type: KqlType }[] {
  const kinds = new Map<string, Set<string>>();
  for (const key of keys) {
    const [name, kind] = JSON.parse(key) as [string, string | null];
    const known = kinds.get(name) ?? new Set();
    kinds.set(name, kind === null ? known : known.add(kind));
  }
  return [...kinds]
    .map(([name, own]) => ({ name, type: own.size === 1 ? ([...own][0] as KqlType) : "dynamic" }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
