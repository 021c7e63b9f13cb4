import type { Chooser } from "../../../src/format/ndjson/generate-values.test-kit.ts";
import { expression, type Column, type Kind } from "./expressions.test-kit.ts";
import { travelName } from "./oracle.test-kit.ts";
import { both, sql, type Sql } from "./sql.test-kit.ts";

/** Something to select from. `key` names columns that tell its rows apart (rows that share it are equal). */
export type Source = { from: Sql; columns: readonly Column[]; key: readonly Sql[] };

/** A generated query. `key` names output columns that tell its rows apart; none where nothing does. */
export type Select = { sql: Sql; columns: readonly NamedColumn[]; key: readonly string[]; ordered: boolean };
export type NamedColumn = { name: string; kind: Kind; fuzzy: boolean };

/** What a query is generated with. */
export class Context {
  readonly choose: Chooser;
  /** The newest snapshot of the data. */
  readonly newest: number;
  #names = 0;

  constructor(choose: Chooser, newest: number) {
    this.choose = choose;
    this.newest = newest;
  }

  name(prefix: string): string {
    return `${prefix}${++this.#names}`;
  }
}

const KINDS: Readonly<Record<string, Readonly<Record<string, Kind>>>> = {
  logs: {
    n: "int",
    at: "time",
    label: "string",
    body: "string",
    i: "int",
    l: "long",
    r: "real",
    ok: "bool",
    props: "json",
    seen: "time",
    v: "vector",
    extra: "string",
  },
  users: { at: "time", label: "string", name: "string", score: "real", level: "int", tags: "json" },
  nothing: { n: "int", at: "time", label: "string", body: "string", i: "int", l: "long" },
};

export const quoted = (name: string): string => (/^[a-z_][a-z0-9_]*$/.test(name) && name !== "at" ? name : `"${name}"`);

/** A column as people write it: `at` needs no quotes here. */
function reference(choose: Chooser, owner: string, name: string): Sql {
  const prefix = owner === "" ? "" : `${owner}.`;
  if (name !== "at") return both(`${prefix}${choose.chance(0.1) ? name.toUpperCase() : name}`);
  return { ours: `${prefix}${choose.pick(["at", "at", "At", '"at"'])}`, plain: `${prefix}"at"` };
}

export function table(context: Context, name: string): Source {
  const { choose } = context;
  const alias = context.name("t");
  const owner = choose.chance(0.7) ? alias : "";
  const version = choose.chance(0.12) ? choose.int(0, context.newest) : undefined;
  const from: Sql =
    version === undefined
      ? both(`${name} AS ${alias}`)
      : {
          ours: `${name} AS ${alias} AT (VERSION => ${version})`,
          plain: `${travelName(name, version)} AS ${alias}`,
        };
  return { from, ...columnsOf(choose, owner, name) };
}

function columnsOf(choose: Chooser, owner: string, name: string): Omit<Source, "from"> {
  const kinds = Object.entries(KINDS[name] ?? {});
  const columns = kinds.map(([column, kind]) => ({ kind, sql: reference(choose, owner, column) }));
  return { columns, key: [reference(choose, owner, name === "users" ? "name" : "n")] };
}

/** A table whose columns are always qualified, as in joins. */
export function joinable(context: Context, name: string): Source & { alias: string } {
  const alias = context.name("t");
  return { alias, from: both(`${name} AS ${alias}`), ...columnsOf(context.choose, alias, name) };
}

/** A query in brackets, or the name of a CTE, as a source. */
export function derived(context: Context, select: Select, from: Sql): Source {
  const alias = context.name("d");
  const renamed = context.choose.chance(0.25);
  const names = new Map(select.columns.map(({ name }) => [name, renamed ? context.name("e") : name]));
  const owned = (name: string): Sql => both(`${alias}.${quoted(names.get(name) ?? name)}`);
  const list = renamed ? `(${[...names.values()].join(", ")})` : "";
  const columns = select.columns.map(({ name, kind, fuzzy }) => ({ kind, fuzzy, sql: owned(name) }));
  const certain = [...select.columns].sort((a, b) => Number(a.fuzzy) - Number(b.fuzzy)).map(({ name }) => name);
  return {
    from: sql`${from} AS ${alias}${list}`,
    columns,
    key: (select.key.length > 0 ? select.key : certain).map(owned),
  };
}

export function joined(context: Context): Source {
  const { choose } = context;
  const shape = choose.int(0, 8);
  if (shape === 0) return asof(context);
  if (shape === 1) return selfJoined(context);
  if (shape === 2) return unnested(context);
  if (shape === 3) return lateral(context);
  const left = joinable(context, "logs");
  const right = joinable(context, "users");
  if (shape === 4) {
    const from = sql`${left.from} ${choose.pick(["SEMI", "ANTI"])} JOIN ${right.from} ON ${left.alias}.label = ${right.alias}.label`;
    return { ...left, from };
  }
  const type = choose.pick(["", "INNER ", "LEFT ", "RIGHT ", "FULL OUTER "]);
  const bool = expression({ choose, columns: [...left.columns, ...right.columns] }, "bool", 2);
  const on = choose.pick([
    sql`ON ${left.alias}.label = ${right.alias}.label`,
    sql`ON ${left.alias}.i = ${right.alias}.level`,
    // DuckDB takes other conditions only in joins that need no match to be remembered.
    ["", "INNER "].includes(type) ? sql`ON ${left.alias}.label = ${right.alias}.label AND ${bool}` : sql`USING (label)`,
  ]);
  return sideBySide(sql`${left.from} ${type}JOIN ${right.from} ${on}`, left, right);
}

function sideBySide(from: Sql, left: Source, right: Source): Source {
  return { from, columns: [...left.columns, ...right.columns], key: [...left.key, ...right.key] };
}

function asof(context: Context): Source {
  const { choose } = context;
  const [left, right] = [joinable(context, "logs"), joinable(context, "users")];
  const label = choose.chance(0.5) ? `${left.alias}.label = ${right.alias}.label AND ` : "";
  const from = sql`${left.from} ASOF ${choose.pick(["", "LEFT "])}JOIN ${right.from} ON ${label}${left.alias}.at >= ${right.alias}.at`;
  return sideBySide(from, left, right);
}

function selfJoined(context: Context): Source {
  const { choose } = context;
  const [left, right] = [joinable(context, "logs"), joinable(context, "logs")];
  const on = choose.pick([
    `${left.alias}.n = ${right.alias}.n + ${choose.int(1, 3)}`,
    `${left.alias}.i = ${right.alias}.i AND ${left.alias}.n < ${right.alias}.n`,
    `${left.alias}.at = ${right.alias}.at`,
  ]);
  return sideBySide(sql`${left.from} ${choose.pick(["", "LEFT "])}JOIN ${right.from} ON ${on}`, left, right);
}

function unnested(context: Context): Source {
  const { choose } = context;
  const left = joinable(context, "logs");
  const alias = context.name("u");
  const [list, kind] = choose.pick<readonly [string, Kind]>([
    [`string_split(${left.alias}.body, ' ')`, "string"],
    [`CAST(${left.alias}.props->'$.list' AS INTEGER[])`, "int"],
    [`generate_series(1, ${left.alias}.n % 4)`, "long"],
    [`json_extract(${left.alias}.props, '$.deep.items[*].k')`, "json"],
    [`CAST(${left.alias}.v AS FLOAT[])`, "other"],
  ]);
  const from = sql`${left.from}, unnest(${list}) WITH ORDINALITY AS ${alias}(item, place)`;
  const place = both(`${alias}.place`);
  const columns: Column[] = [
    { kind, sql: both(`${alias}.item`) },
    { kind: "long", sql: place },
  ];
  return { from, columns: [...left.columns, ...columns], key: [...left.key, place] };
}

function lateral(context: Context): Source {
  const { choose } = context;
  const left = joinable(context, "users");
  const alias = context.name("x");
  const inner = joinable(context, "logs");
  const from = sql`${left.from}, LATERAL (SELECT count(*) AS c, max(${inner.alias}.at) AS m FROM ${inner.from} WHERE ${inner.alias}.label = ${left.alias}.label AND ${expression({ choose, columns: inner.columns }, "bool", 2)}) AS ${alias}`;
  const columns: Column[] = [
    { kind: "long", sql: both(`${alias}.c`) },
    { kind: "time", sql: both(`${alias}.m`) },
  ];
  return { from, columns: [...left.columns, ...columns], key: left.key };
}
