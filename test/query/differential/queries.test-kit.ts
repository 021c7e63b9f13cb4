import { aggregate, windowed, type Keyed } from "./aggregates.test-kit.ts";
import { expression, literal, OUTPUT_KINDS, PLAIN_KINDS, type Column, type Kind } from "./expressions.test-kit.ts";
import { both, join, sql, type Sql } from "./sql.test-kit.ts";
import {
  derived,
  joinable,
  joined,
  quoted,
  table,
  type Context,
  type NamedColumn,
  type Select,
  type Source,
} from "./sources.test-kit.ts";
import { specialQuery } from "./special.test-kit.ts";

/** One random query of any shape. */
export function randomQuery(context: Context): Select {
  const { choose } = context;
  const shape = choose.int(0, 19);
  if (shape < 4) return finished(context, plainSelect(context, source(context, 0)));
  if (shape < 9) return finished(context, groupedSelect(context, source(context, 0)));
  if (shape < 12) return finished(context, windowSelect(context, source(context, 0)));
  if (shape < 14) return setQuery(context);
  if (shape < 17) return cteQuery(context);
  return specialQuery(context);
}

const MAX_NESTING = 2;

function source(context: Context, depth: number): Source {
  const { choose } = context;
  const shape = choose.int(0, 9);
  if (depth < MAX_NESTING && shape < 3) return inBrackets(context, anySelect(context, source(context, depth + 1)));
  if (depth < MAX_NESTING && shape < 6) return joined(context);
  return table(context, choose.pick(["logs", "logs", "logs", "logs", "users", "nothing"]));
}

const inBrackets = (context: Context, select: Select): Source => derived(context, select, sql`(${select.sql})`);

function anySelect(context: Context, from: Source): Select {
  return context.choose.pick([plainSelect, plainSelect, groupedSelect, windowSelect])(context, from);
}

const scopeOf = (context: Context, from: Source): Keyed => ({ choose: context.choose, ...from });

/** Names that mean something else elsewhere: quoting, aliases and the rewriting of instants must keep them apart. */
const NASTY_NAMES = ["at", "seen", "label", "Order", "a b", "ünï", "day", "count"];

function named(context: Context, columns: readonly Column[]): { items: Sql; columns: NamedColumn[] } {
  const { choose } = context;
  const taken = new Set<string>();
  const named = columns.map(({ kind, fuzzy = false }) => {
    const nasty = choose.pick(NASTY_NAMES);
    const name = choose.chance(0.06) && !taken.has(nasty) ? nasty : context.name("c");
    taken.add(name);
    return { name, kind, fuzzy };
  });
  const items = columns.map((column, i) => sql`${column.sql} AS ${quoted(named[i]?.name ?? "")}`);
  return { items: join(items), columns: named };
}

function plainSelect(context: Context, from: Source): Select {
  const { choose } = context;
  const scope = scopeOf(context, from);
  const outputs = choose.times(choose.int(1, 5), (): Column => {
    const kind = choose.pick(OUTPUT_KINDS);
    return { kind, sql: choose.chance(0.05) ? scalarSubquery(context, kind) : expression(scope, kind) };
  });
  const keys = from.key.map((key): Column => ({ kind: "other", sql: key }));
  if (choose.chance(0.2)) {
    const plain = outputs.filter(({ kind }) => PLAIN_KINDS.some((one) => one === kind));
    if (plain.length > 0) return selectOf(context, "DISTINCT ", plain, from, plain.length);
  }
  return selectOf(context, "", [...keys, ...outputs], from, keys.length);
}

/** The first `keys` of the columns tell rows apart. */
function selectOf(context: Context, distinct: string, outputs: readonly Column[], from: Source, keys: number): Select {
  const { items, columns } = named(context, outputs);
  const where = context.choose.chance(0.6) ? sql` WHERE ${condition(context, from)}` : both("");
  return {
    sql: sql`SELECT ${distinct}${items} FROM ${from.from}${where}`,
    columns,
    key: columns.slice(0, keys).map(({ name }) => name),
    ordered: false,
  };
}

/** A condition, with a subquery in it every now and then. */
function condition(context: Context, from: Source): Sql {
  const { choose } = context;
  const scope = scopeOf(context, from);
  // What extents can be left out for, every now and then.
  if (choose.chance(0.25))
    return join(
      choose.times(choose.int(1, 4), () => simpleTest(scope)),
      " AND ",
    );
  const plain = expression(scope, "bool");
  if (choose.chance(0.8)) return plain;
  const other = joinable(context, choose.pick(["users", "logs"]));
  const inner = { choose, columns: other.columns };
  const kind = choose.pick(["string", "int", "time"] as const);
  const outside = (): Sql => expression(scope, kind, 2);
  const inside = expression(inner, kind, 2);
  const filter = expression(inner, "bool", 2);
  const negated = choose.pick(["", "NOT "]);
  switch (choose.int(0, 4)) {
    case 0:
      return sql`${plain} OR ${outside()} ${negated}IN (SELECT ${inside} FROM ${other.from} WHERE ${filter})`;
    case 1:
      return sql`${negated}EXISTS (SELECT 1 FROM ${other.from} WHERE ${inside} = ${outside()} AND ${filter})`;
    case 2:
      return sql`${outside()} >= (SELECT ${choose.pick(["min", "max"])}(${inside}) FROM ${other.from} WHERE ${filter})`;
    case 3:
      return sql`${outside()} <= ${choose.pick(["ANY", "ALL"])} (SELECT ${inside} FROM ${other.from} WHERE ${filter})`;
    default:
      return sql`(SELECT count(*) FROM ${other.from} WHERE ${inside} = ${outside()}) ${choose.pick([">", "="])} ${choose.int(0, 3)}`;
  }
}

/** A column against a constant. */
function simpleTest({ choose, columns }: Keyed): Sql {
  const plain = columns.filter(({ kind, fuzzy }) => fuzzy !== true && PLAIN_KINDS.some((one) => one === kind));
  if (plain.length === 0) return both("true");
  const { kind, sql: column } = choose.pick(plain);
  const value = (): Sql => literal(choose, kind);
  switch (choose.int(0, kind === "string" ? 7 : 5)) {
    case 0:
      return sql`${column} IS ${choose.pick(["", "NOT "])}NULL`;
    case 1:
      return sql`${column} BETWEEN ${value()} AND ${value()}`;
    case 2:
      return sql`${column} ${choose.pick(["", "NOT "])}IN (${value()}, ${value()}, ${value()})`;
    case 3:
      return sql`${value()} ${choose.pick(["<", "<=", "=", ">"])} ${column}`;
    case 6:
      return sql`${column} LIKE '%${choose.pick(["timeout", "Connection", "reset by", "alpha"])}%'`;
    case 7:
      return sql`contains(${column}, '${choose.pick(["timeout", "straße", "id=42", "label"])}')`;
    default:
      return sql`${column} ${choose.pick(["=", "=", "<>", "<", "<=", ">", ">="])} ${value()}`;
  }
}

function scalarSubquery(context: Context, kind: Kind): Sql {
  const from = joinable(context, "logs");
  const scope = { choose: context.choose, columns: from.columns };
  return sql`(SELECT ${expression(scope, kind, 2)} FROM ${from.from} ORDER BY ${from.alias}.n LIMIT 1 OFFSET ${context.choose.int(0, 9)})`;
}

function groupedSelect(context: Context, from: Source): Select {
  const { choose } = context;
  const scope = scopeOf(context, from);
  const keys = choose.times(choose.int(0, 2), (): Column => {
    const kind = choose.pick(PLAIN_KINDS);
    return { kind, sql: expression(scope, kind, 1) };
  });
  const aggregates = choose.times(choose.int(1, 4), () => aggregate(scope));
  const { items, columns } = named(context, [...keys, ...aggregates]);
  const names = columns.slice(0, keys.length).map(({ name }) => name);
  const where = choose.chance(0.5) ? sql` WHERE ${condition(context, from)}` : both("");
  const having = choose.chance(0.2) ? sql` HAVING count(*) > ${choose.int(0, 4)}` : both("");
  const group = groupBy(context, keys);
  return {
    sql: sql`SELECT ${items} FROM ${from.from}${where}${group.sql}${having}`,
    columns,
    key: group.unique ? names : [],
    ordered: false,
  };
}

function groupBy({ choose }: Context, keys: readonly Column[]): { sql: Sql; unique: boolean } {
  if (keys.length === 0) return { sql: both(""), unique: false };
  const all = join(keys.map((key) => key.sql));
  switch (choose.int(0, 5)) {
    case 0:
      return { sql: both(" GROUP BY ALL"), unique: true };
    case 1:
      return { sql: sql` GROUP BY ${keys.map((_, i) => i + 1).join(", ")}`, unique: true };
    case 2:
      // A subtotal looks like the group of NULLs.
      return { sql: sql` GROUP BY ${choose.pick(["ROLLUP", "CUBE"])} (${all})`, unique: false };
    default:
      return { sql: sql` GROUP BY ${all}`, unique: true };
  }
}

function windowSelect(context: Context, from: Source): Select {
  const { choose } = context;
  const scope = scopeOf(context, from);
  const keys = from.key.map((key): Column => ({ kind: "other", sql: key }));
  const outputs = choose.times(choose.int(1, 3), () => windowed(scope));
  const select = selectOf(context, "", [...keys, ...outputs], from, keys.length);
  if (choose.chance(0.75)) return select;
  const row = sql`row_number() OVER (PARTITION BY ${expression(scope, "string", 2)} ORDER BY ${join(from.key)})`;
  return { ...select, sql: sql`${select.sql} QUALIFY ${row} <= ${choose.int(1, 4)}` };
}

/** Orders by the key every now and then, and only then cuts. */
function finished({ choose }: Context, select: Select): Select {
  if (select.key.length === 0 || choose.chance(0.4)) return select;
  const order = choose.pick([" ASC", " DESC", "", " DESC NULLS LAST", " NULLS FIRST"]);
  const limit = choose.chance(0.5)
    ? ` LIMIT ${choose.int(0, 40)}${choose.chance(0.4) ? ` OFFSET ${choose.int(0, 30)}` : ""}`
    : "";
  const keys = select.key.map((name) => `${quoted(name)}${order}`).join(", ");
  return { ...select, sql: sql`${select.sql} ORDER BY ${keys}${limit}`, ordered: true };
}

function setQuery(context: Context): Select {
  const { choose } = context;
  const kinds = choose.times(choose.int(1, 3), () => choose.pick(PLAIN_KINDS));
  const names = kinds.map(() => context.name("c"));
  const branch = (): Sql => {
    const from = source(context, 1);
    const items = kinds.map((kind, i) => {
      const value = choose.chance(0.1) ? literal(choose, kind) : expression(scopeOf(context, from), kind, 1);
      return sql`${value} AS ${names[i] ?? ""}`;
    });
    return sql`SELECT ${join(items)} FROM ${from.from} WHERE ${condition(context, from)}`;
  };
  const operators = ["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL", "UNION BY NAME"];
  const first = sql`${branch()} ${choose.pick(operators)} ${branch()}`;
  const text = choose.chance(0.2) ? sql`(${first}) ${choose.pick(operators)} ${branch()}` : first;
  const columns = kinds.map((kind, i) => ({ name: names[i] ?? "", kind, fuzzy: false }));
  if (choose.chance(0.5)) return { sql: text, columns, key: [], ordered: false };
  // Rows that tie on all of their columns are the same.
  return { sql: sql`${text} ORDER BY ALL LIMIT ${choose.int(1, 60)}`, columns, key: [], ordered: true };
}

function cteQuery(context: Context): Select {
  const { choose } = context;
  const [first, second] = [context.name("q"), context.name("q")];
  const one = anySelect(context, source(context, 1));
  const two = anySelect(context, derived(context, one, both(first)));
  const hint = choose.pick(["", "", "MATERIALIZED ", "NOT MATERIALIZED "]);
  const definition = choose.chance(0.3)
    ? // One inside the other.
      sql`${second} AS (WITH ${first} AS (${one.sql}) ${two.sql})`
    : sql`${first} AS ${hint}(${one.sql}), ${second} AS (${two.sql})`;
  const last = finished(context, anySelect(context, derived(context, two, both(second))));
  return { ...last, sql: sql`WITH ${definition} ${last.sql}` };
}
