import type { Random } from "../../../src/core/random.ts";
import { below, pick } from "../fuzz/mutate.test-kit.ts";
import { datatable, drawExpression, drawTable, type Expression } from "./draw.test-kit.ts";
import { Undecided, written, type Row, type Rows, type Type, type Value } from "./values.test-kit.ts";

/** A part of a pipe: its text, and the rows that it makes of others. `isOrdered`: the rows come in this order. */
export type Stage = {
  text: string;
  columns: Rows["columns"];
  rows: (rows: readonly Row[]) => Row[];
  isOrdered?: boolean;
};

type Columns = Rows["columns"];

const SCALARS: readonly Type[] = ["bool", "long", "real", "string", "datetime", "timespan"];

/** A stage over rows with these columns. */
export function drawStage(columns: Columns, random: Random): Stage {
  return pick(STAGES, random)(columns, random);
}

const STAGES: readonly ((columns: Columns, random: Random) => Stage)[] = [
  where,
  where,
  extend,
  project,
  projectAway,
  summarize,
  summarize,
  distinct,
  sorted,
  count,
  join,
  join,
  union,
];

function where(columns: Columns, random: Random): Stage {
  const condition = drawExpression("bool", columns, 3, random);
  return {
    text: `where ${condition.text}`,
    columns,
    rows: (rows) => rows.filter((row) => condition.valueIn(row) === true),
  };
}

function fresh(columns: Columns, prefix: string): string {
  for (let i = 1; ; i++)
    if (!Object.keys(columns).some((name) => name.startsWith(`${prefix}${i}`))) return `${prefix}${i}`;
}

/** A new column, or one in the place of another. */
function extend(columns: Columns, random: Random): Stage {
  const value = drawExpression(pick(SCALARS, random), columns, 3, random);
  const isNew = random.next() < 0.7;
  const name = isNew ? fresh(columns, "x") : pick(Object.keys(columns), random);
  return {
    text: `extend ${name} = ${value.text}`,
    columns: { ...columns, [name]: value.type },
    rows: (rows) => rows.map((row) => ({ ...row, [name]: value.valueIn(row) })),
  };
}

function project(columns: Columns, random: Random): Stage {
  const names = Object.keys(columns).filter(() => random.next() < 0.5);
  const value = drawExpression(pick(SCALARS, random), columns, 2, random);
  const name = fresh(columns, "y");
  const kept: Columns = {
    ...Object.fromEntries(names.map((one): [string, Type] => [one, columns[one] ?? "long"])),
    [name]: value.type,
  };
  return {
    text: `project ${[...names, `${name} = ${value.text}`].join(", ")}`,
    columns: kept,
    rows: (rows) =>
      rows.map((row) => ({
        ...Object.fromEntries(names.map((one) => [one, row[one] ?? null])),
        [name]: value.valueIn(row),
      })),
  };
}

function projectAway(columns: Columns, random: Random): Stage {
  const names = Object.keys(columns);
  const away = pick(names, random);
  if (names.length < 2) return where(columns, random);
  return {
    text: `project-away ${away}`,
    columns: without(columns, [away]),
    rows: (rows) => rows.map((row) => without(row, [away])),
  };
}

function without<T>(record: Readonly<Record<string, T>>, names: readonly string[]): Record<string, T> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)));
}

function count(): Stage {
  return { text: "count", columns: { Count: "long" }, rows: (rows) => [{ Count: BigInt(rows.length) }] };
}

/** One text for the values of a row, the same for equal ones. */
function keyOf(row: Row, columns: Columns): string {
  return JSON.stringify(Object.entries(columns).map(([name, type]) => exact(type, row[name] ?? null)));
}

/** As `written`, with all digits of a real. */
function exact(type: Type, value: Value): string {
  if (typeof value === "number") {
    if (Number.isNaN(value)) throw new Undecided("NaN as a key");
    return String(value === 0 ? 0 : value);
  }
  return written(type, value);
}

function distinct(columns: Columns, random: Random): Stage {
  const names = Object.keys(columns).filter((name) => columns[name] !== "dynamic");
  const chosen = names.filter(() => random.next() < 0.4);
  if (chosen.length === 0) return where(columns, random);
  const kept = Object.fromEntries(chosen.map((name): [string, Type] => [name, columns[name] ?? "long"]));
  return {
    text: `distinct ${chosen.join(", ")}`,
    columns: kept,
    rows: (rows) => [
      ...new Map(
        rows.map((row) => [keyOf(row, kept), Object.fromEntries(chosen.map((one) => [one, row[one] ?? null]))]),
      ).values(),
    ],
  };
}

/** By all columns, so that the order is one, and the first of them. */
function sorted(columns: Columns, random: Random): Stage {
  const names = Object.keys(columns).filter((name) => columns[name] !== "dynamic");
  if (names.length < Object.keys(columns).length || names.length === 0) return where(columns, random);
  const first = drawExpression(
    pick(["long", "string", "datetime", "timespan", "bool"] as const, random),
    columns,
    2,
    random,
  );
  const keys = [
    first,
    ...names.map((name): Expression => ({
      type: columns[name] ?? "long",
      text: name,
      valueIn: (row) => row[name] ?? null,
    })),
  ];
  const parts = keys.map((key) => {
    const direction = pick(["", " asc", " desc"], random);
    const nulls = pick(["", "", " nulls first", " nulls last"], random);
    const isDescending = direction !== " asc";
    return {
      key,
      text: `${key.text}${direction}${nulls}`,
      isDescending,
      nullsFirst: nulls === "" ? !isDescending : nulls === " nulls first",
    };
  });
  const limit = random.next() < 0.6 ? below(4, random) : undefined;
  return {
    text: `sort by ${parts.map(({ text }) => text).join(", ")}${limit === undefined ? "" : ` | take ${limit}`}`,
    columns,
    isOrdered: true,
    rows: (rows) => rows.toSorted((a, b) => compareBy(parts, a, b)).slice(0, limit),
  };
}

type Part = { key: Expression; isDescending: boolean; nullsFirst: boolean };

function compareBy(parts: readonly Part[], a: Row, b: Row): number {
  for (const { key, isDescending, nullsFirst } of parts) {
    const [x, y] = [key.valueIn(a), key.valueIn(b)];
    if (x === null && y === null) continue;
    if (x === null || y === null) return (x === null) === nullsFirst ? -1 : 1;
    const order = compare(x, y);
    if (order !== 0) return isDescending ? -order : order;
  }
  return 0;
}

function compare(a: Value, b: Value): number {
  if (typeof a === "number" && Number.isNaN(a)) throw new Undecided("the order of NaN");
  if (typeof a === "string" && typeof b === "string") return Buffer.compare(Buffer.from(a), Buffer.from(b));
  const [x, y] = [a as bigint, b as bigint];
  return x < y ? -1 : x > y ? 1 : 0;
}

type Aggregate = { type: Type; text: string; of: (rows: readonly Row[]) => Value };

function drawAggregate(columns: Columns, random: Random): Aggregate {
  const one = (type: Type): Expression => drawExpression(type, columns, 1, random);
  const made = (
    name: string,
    type: Type,
    value: Expression,
    of: (values: Exclude<Value, null>[]) => Value,
  ): Aggregate => ({
    type,
    text: `${name}(${value.text})`,
    of: (rows) => of(rows.map((row) => value.valueIn(row)).filter((own) => own !== null)),
  });
  const ordered = pick(["long", "datetime", "timespan"] as const, random);
  return pick<() => Aggregate>(
    [
      () => ({ type: "long", text: "count()", of: (rows) => BigInt(rows.length) }),
      () => made("countif", "long", one("bool"), (values) => BigInt(values.filter((own) => own === true).length)),
      () => made("sum", "long", one("long"), (values) => sum(values as bigint[])),
      () => made("sum", "real", one("real"), (values) => real((values as number[]).reduce((a, b) => a + b, 0))),
      () => made("avg", "real", one("long"), (values) => average((values as bigint[]).map(Number))),
      () => made("avg", "real", one("real"), (values) => average(values as number[])),
      () => made("min", ordered, one(ordered), (values) => extreme(values, -1)),
      () => made("max", ordered, one(ordered), (values) => extreme(values, 1)),
      () => made("dcount", "long", one("long"), (values) => BigInt(new Set(values).size)),
      () => made("dcount", "long", one("string"), (values) => BigInt(new Set(values).size)),
      () => set("make_set", one("string"), (values) => [...new Set(values)]),
      () => set("make_list", one("string"), (values) => values),
    ],
    random,
  )();
}

function set(name: string, value: Expression, of: (values: string[]) => string[]): Aggregate {
  return {
    type: "dynamic",
    text: `array_sort_asc(${name}(${value.text}))`,
    of: (rows) => ({ json: of(rows.map((row) => value.valueIn(row) as string)).toSorted((a, b) => compare(a, b)) }),
  };
}

function sum(values: readonly bigint[]): Value {
  const all = values.reduce((a, b) => a + b, 0n);
  if (BigInt.asIntN(64, all) !== all) throw new Undecided("a sum that overflows");
  return all;
}

/** Numbers that are far apart add up to something that depends on their order. */
function real(value: number): Value {
  if (Math.abs(value) > 1e12 || !Number.isFinite(value)) throw new Undecided("a sum of reals that are far apart");
  return value;
}

function average(values: readonly number[]): Value {
  return values.length === 0 ? null : real(values.reduce((a, b) => a + b, 0) / values.length);
}

function extreme(values: readonly Value[], sign: number): Value {
  return values.reduce<Value>((best, own) => (best === null || compare(own, best) * sign > 0 ? own : best), null);
}

function summarize(columns: Columns, random: Random): Stage {
  const names = Object.keys(columns).filter((name) => columns[name] !== "dynamic");
  const keys = names
    .filter(() => random.next() < 0.15)
    .map((name): { name: string; value: Expression } => ({
      name,
      value: { type: columns[name] ?? "long", text: name, valueIn: (row) => row[name] ?? null },
    }));
  if (random.next() < 0.4) {
    const value = drawExpression(pick(["long", "string", "datetime", "bool"] as const, random), columns, 2, random);
    keys.push({ name: fresh(columns, "k"), value });
  }
  const prefix = fresh(columns, "a");
  const aggregates = Array.from({ length: 1 + below(3, random) }, (_, i) => ({
    name: `${prefix}_${i}`,
    own: drawAggregate(columns, random),
  }));
  const keyColumns: Columns = Object.fromEntries(keys.map(({ name, value }): [string, Type] => [name, value.type]));
  const by = keys.map(({ name, value }) => (name === value.text ? name : `${name} = ${value.text}`)).join(", ");
  return {
    text: `summarize ${aggregates.map(({ name, own }) => `${name} = ${own.text}`).join(", ")}${by === "" ? "" : ` by ${by}`}`,
    columns: {
      ...keyColumns,
      ...Object.fromEntries(aggregates.map(({ name, own }): [string, Type] => [name, own.type])),
    },
    rows: (rows) => {
      const groups = new Map<string, { key: Row; rows: Row[] }>();
      for (const row of rows) {
        const key = Object.fromEntries(keys.map(({ name, value }): [string, Value] => [name, value.valueIn(row)]));
        const text = keyOf(key, keyColumns);
        const group = groups.get(text) ?? { key, rows: [] };
        group.rows.push(row);
        groups.set(text, group);
      }
      // Without keys there is one row, also of none.
      if (keys.length === 0 && groups.size === 0) groups.set("", { key: {}, rows: [] });
      return [...groups.values()].map((group) =>
        rowOf(
          group.key,
          Object.fromEntries(aggregates.map(({ name, own }): [string, Value] => [name, own.of(group.rows)])),
        ),
      );
    },
  };
}

const RIGHT: Columns = { key: "string", v: "long", w: "real" };

const KINDS = "innerunique inner leftouter rightouter fullouter leftsemi leftanti rightsemi rightanti".split(" ");

/** With a table of its own, on a string that is computed on the left side. */
function join(columns: Columns, random: Random): Stage {
  const kind = pick(KINDS, random);
  const table = drawTable(RIGHT, 5, random);
  if (["v", "w", "key", "key1"].some((name) => name in columns)) return where(columns, random);
  const value = drawExpression("string", columns, 1, random);
  const left: Columns = { ...columns, key: "string" };
  const right: Columns = { key1: "string", v: "long", w: "real" };
  const all =
    kind.startsWith("rights") || kind === "rightanti"
      ? RIGHT
      : kind.startsWith("lefts") || kind === "leftanti"
        ? left
        : { ...left, ...right };
  return {
    text: `extend key = ${value.text} | join kind=${kind} (${datatable(table)}) on key`,
    columns: all,
    rows: (rows) => {
      const keyed = rows.map((row): Row => ({ ...row, key: value.valueIn(row) }));
      const renamed = table.rows.map((row): Row => ({
        key1: row["key"] ?? null,
        v: row["v"] ?? null,
        w: row["w"] ?? null,
      }));
      return joined(kind, { columns: left, rows: keyed }, { columns: right, rows: renamed }).map((row) =>
        all === RIGHT ? { key: row["key1"] ?? null, v: row["v"] ?? null, w: row["w"] ?? null } : row,
      );
    },
  };
}

/** A row of nulls: a string is empty. */
function emptyRow(columns: Columns): Row {
  return Object.fromEntries(Object.entries(columns).map(([name, type]) => [name, type === "string" ? "" : null]));
}

function joined(kind: string, left: Rows, right: Rows): Row[] {
  const isPair = (a: Row, b: Row): boolean => a["key"] === b["key1"];
  const hasRight = (a: Row): boolean => right.rows.some((b) => isPair(a, b));
  const hasLeft = (b: Row): boolean => left.rows.some((a) => isPair(a, b));
  if (kind === "leftsemi") return left.rows.filter(hasRight);
  if (kind === "leftanti") return left.rows.filter((a) => !hasRight(a));
  if (kind === "rightsemi") return right.rows.filter(hasLeft);
  if (kind === "rightanti") return right.rows.filter((b) => !hasLeft(b));
  if (kind === "innerunique" && new Set(left.rows.map((row) => row["key"])).size < left.rows.length) {
    throw new Undecided("which of several rows innerunique takes");
  }
  const pairs = left.rows.flatMap((a) => right.rows.filter((b) => isPair(a, b)).map((b) => rowOf(a, b)));
  const lone = kind === "leftouter" || kind === "fullouter" ? left.rows.filter((a) => !hasRight(a)) : [];
  const others = kind === "rightouter" || kind === "fullouter" ? right.rows.filter((b) => !hasLeft(b)) : [];
  return [
    ...pairs,
    ...lone.map((a) => rowOf(a, emptyRow(right.columns))),
    ...others.map((b) => rowOf(emptyRow(left.columns), b)),
  ];
}

/** The columns of both; where they share one, the second's. */
function rowOf(a: Row, b: Row): Row {
  return { ...a, ...b };
}

/** With a table that has some of the columns, and another. */
function union(columns: Columns, random: Random): Stage {
  const shared = Object.entries(columns).filter(() => random.next() < 0.5);
  const name = fresh(columns, "u");
  const table = drawTable({ ...Object.fromEntries(shared), [name]: "string" }, 3, random);
  const all: Columns = { ...columns, [name]: "string" };
  return {
    text: `union (${datatable(table)})`,
    columns: all,
    rows: (rows) => [...rows, ...table.rows].map((row) => rowOf(emptyRow(all), row)),
  };
}
