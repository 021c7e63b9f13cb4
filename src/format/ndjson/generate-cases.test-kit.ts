import { parseColumnType, type ColumnSpec } from "../types.ts";
import {
  Chooser,
  integer,
  json,
  manyKeys,
  member,
  nested,
  number,
  space,
  string,
  time,
} from "./generate-values.test-kit.ts";
import type { NdjsonBody } from "./scanner.ts";
import type { Random } from "../../core/random.ts";

/** Cases for differential tests: a table, and bodies that are scanned into one extent, one after the other. */
export type Case = { kind: CaseKind; columns: ColumnSpec[]; bodies: NdjsonBody[] };

const ARRIVED_AT_NS = 1_767_225_600_000_000_007n;

export function specs(text: string): ColumnSpec[] {
  return text.split(/,\s*(?![^(]*\))/).map((part) => {
    const [name = "", type = ""] = part.split(":");
    const parsed = parseColumnType(type);
    if (parsed === undefined) throw new Error(`no type: ${part}`);
    return { name: name.trim(), type: parsed };
  });
}

export function bodyOf(text: string | Uint8Array, evolve = true): NdjsonBody {
  const bytes = new Uint8Array(typeof text === "string" ? Buffer.from(text) : text);
  return { bytes, evolve, arrivedAtNs: ARRIVED_AT_NS };
}

/** What a generator makes: the lines of bodies of one table. */
type Lines = { columns: ColumnSpec[]; lines: string[][]; evolve?: boolean; inferTypes?: boolean };

/** `{…}` of `key, value` pairs. */
function row(choose: Chooser, fields: readonly (readonly [key: string, value: string])[], gaps = 0.01): string {
  const members = fields.map(([key, value]) => member(choose, `"${key}"`, value, gaps));
  return `${space(choose, gaps)}{${members.join(",")}}${space(choose, gaps)}`;
}

/** A few bodies of a few lines each. */
function bodies(choose: Chooser, line: (n: number) => string, most = 8): string[][] {
  return choose.times(choose.int(1, 3), () => choose.times(choose.int(1, most), line));
}

const TYPED = "at:timestamp, i:int, l:long, r:real, b:bool, s:string, t:timestamp, d:dynamic, props:dynamic";

/** A value that fits the column's type. */
function fitting(choose: Chooser, { type }: ColumnSpec): string {
  switch (type.kind) {
    case "bool":
      return choose.pick(["true", "false"]);
    case "int":
      return choose.pick(["", "-"]) + integer(choose, 9);
    case "long":
      return choose.pick(["", "-"]) + integer(choose, 18);
    case "real":
      return number(choose);
    case "timestamp":
      return time(choose);
    case "string":
      return string(choose);
    case "dynamic":
      return json(choose, 3);
    case "vector":
      return `[${choose.times(type.dimensions, () => space(choose) + number(choose) + space(choose)).join(",")}]`;
  }
}

function value(choose: Chooser, column: ColumnSpec): string {
  if (column.name !== "at" && choose.chance(0.05)) return "null";
  return choose.nasty(0.08) ? json(choose, 3) : fitting(choose, column);
}

/** Rows of the table's own fields, nearly always in one order. */
function typedRow(choose: Chooser, columns: readonly ColumnSpec[], presence = 0.9, gaps = 0.01): string {
  const present = columns.filter(() => choose.chance(presence));
  const ordered = choose.chance(0.1) ? choose.shuffled(present) : present;
  return row(choose, ordered.map((column) => [column.name, value(choose, column)]), gaps); // oxfmt-ignore
}

function typed(choose: Chooser): Lines {
  const columns = specs(choose.chance(0.85) ? TYPED : TYPED.replace(", props:dynamic", ""));
  const gaps = choose.pick([0, 0.01, 0.3]);
  return { columns, lines: bodies(choose, () => typedRow(choose, columns, 0.9, gaps)) };
}

/** Number tokens of every length into every column that takes numbers. */
function numbers(choose: Chooser): Lines {
  const columns = specs("at:timestamp, i:int, l:long, r:real, s:string, d:dynamic, v:vector(2), props:dynamic");
  const token = (name: string) => {
    if (name === "v") return `[${number(choose)},${number(choose)}]`;
    return name === "i" ? integer(choose, 10) : name === "l" ? integer(choose, 19) : number(choose);
  };
  const names = ["i", "l", "r", "s", "d", "v"].filter((name) => name === "v" || choose.chance(0.6));
  return { columns, lines: bodies(choose, () => row(choose, names.map((name) => [name, token(name)]), 0)) }; // oxfmt-ignore
}

function times(choose: Chooser): Lines {
  const columns = specs("at:timestamp, t:timestamp, props:dynamic");
  const name = choose.pick(["at", "at", "timestamp", "_timestamp"]);
  const line = () => row(choose, [[name, time(choose)], ["t", time(choose)]], 0); // oxfmt-ignore
  return { columns, lines: bodies(choose, line) };
}

function strings(choose: Chooser): Lines {
  const columns = specs("at:timestamp, s:string, d:dynamic, body:string, props:dynamic");
  const line = () => row(choose, ["s", "d", "body"].map((name) => [name, string(choose)] as const), 0); // oxfmt-ignore
  return { columns, lines: bodies(choose, line) };
}

/** Documents inside columns: deep, wide, with duplicates. */
function documents(choose: Chooser): Lines {
  const columns = specs("at:timestamp, s:string, d:dynamic, props:dynamic");
  const document = () => {
    if (choose.chance(0.03)) return nested(choose, choose.pick([500, choose.int(990, 1_002)]));
    return choose.chance(0.1) ? manyKeys(choose, choose.pick([20, 63, 64, 65, 130])) : json(choose);
  };
  const line = () => row(choose, choose.pick([["d"], ["s", "d"], ["d", "props"]]).map((name) => [name, document()])); // oxfmt-ignore
  return { columns, lines: bodies(choose, line, 4) };
}

const WIDE_TYPES = ["int", "string", "real", "long", "bool", "timestamp", "dynamic"];

/** Many columns with keys of all lengths; rows in one order, in another, in part, with a key twice or spelled otherwise. */
function wide(choose: Chooser): Lines {
  const count = choose.pick([33, 100, 300]);
  const keyOf = (i: number) => `${"k".repeat(choose.pick([1, 1, 2, 3, 6, 30, 240]))}${i}`;
  const columns = specs(["at:timestamp", ...choose.times(count, (i) => `${keyOf(i)}:${choose.pick(WIDE_TYPES)}`), "props:dynamic"].join(", ")); // oxfmt-ignore
  const line = () => {
    const present = choose.chance(0.6) ? columns : columns.filter(() => choose.chance(choose.pick([0.1, 0.9])));
    const ordered = choose.chance(0.2) ? choose.shuffled(present) : present;
    const fields = ordered.map((column): [string, string] => [column.name, fitting(choose, column)]);
    const twice = choose.nasty(0.2) ? fields[choose.int(0, fields.length - 1)] : undefined;
    if (twice !== undefined) fields.push([choose.pick([twice[0], twice[0].toUpperCase()]), twice[1]]);
    return row(choose, fields, 0);
  };
  return { columns, lines: bodies(choose, line, 4) };
}

const NARROW = "at:timestamp, label:string, props:dynamic";

/** New columns around the cap of a request, in bodies of which some fail and take their columns with them. */
function evolving(choose: Chooser): Lines {
  const columns = specs(choose.chance(0.8) ? NARROW : "at:timestamp, label:string");
  const prefix = () => choose.pick(["n", "n", "m", "N", "long".repeat(60)]);
  const lines = choose.times(choose.int(2, 5), () => {
    const name = prefix();
    const count = choose.pick([1, 3, 31, 32, 33, 40]);
    const fields = choose.times(count, (i): [string, string] => [
      `${name}${i}`,
      choose.pick(["1", '"x"', "null", "{}", " [ 1 ] "]),
    ]);
    const some = () => row(choose, choose.chance(0.5) ? fields : fields.filter(() => choose.chance(0.5)), 0);
    const rows = choose.times(choose.int(1, 5), some);
    if (choose.chance(0.3))
      rows.splice(choose.int(0, rows.length), 0, choose.pick(['{"n1":', "[]", '{"z":1}}', '{"zz":"\\ud800"}']));
    return rows;
  });
  return { columns, lines };
}

const VALUES = {
  bool: (choose: Chooser) => choose.pick(["true", "false"]),
  small: (choose: Chooser) => integer(choose, 4),
  long: (choose: Chooser) => choose.pick(["", "-"]) + integer(choose, 19),
  real: (choose: Chooser) => `${integer(choose, 5)}.${integer(choose, 3)}`,
  number,
  time: (choose: Chooser) => `"2026-01-${choose.int(10, 31)}T03:04:05${choose.pick(["", ".5", ".123456789"])}Z"`,
  anyTime: time,
  text: string,
  json: (choose: Chooser) => json(choose, 2),
  null: () => "null",
};

/** New columns whose values are of one kind, nearly always, and of another in the next body. */
function inferring(choose: Chooser): Lines {
  const columns = specs(choose.chance(0.8) ? NARROW : "at:timestamp, label:string");
  const kinds = Object.keys(VALUES) as (keyof typeof VALUES)[];
  const names = choose.times(choose.int(1, 5), (i) => choose.pick([`f${i}`, `f${i}`, "body", "x", "X"]));
  const own = new Map(names.map((name) => [name, choose.pick(kinds)]));
  const lines = choose.times(choose.int(1, 4), () => {
    if (choose.chance(0.3)) for (const name of names) own.set(name, choose.pick(kinds));
    const other = choose.chance(0.5) ? 0 : 0.1;
    const valueOf = (name: string) => VALUES[choose.chance(other) ? choose.pick(kinds) : (own.get(name) ?? "null")];
    const line = () =>
      row(choose, names.filter(() => choose.chance(0.9)).map((name) => [name, valueOf(name)(choose)]), 0.01); // oxfmt-ignore
    return choose.times(choose.int(1, 12), line);
  });
  return { columns, lines, evolve: choose.chance(0.95), inferTypes: true };
}

/** Made once per size: 2,000 columns take their time. */
const fullTables = new Map<number, ColumnSpec[]>();

function fullTable(count: number): ColumnSpec[] {
  const known = fullTables.get(count);
  if (known !== undefined) return known;
  const made = specs(
    ["at:timestamp", "props:dynamic", ...Array.from({ length: count - 2 }, (_, i) => `c${i}:int`)].join(", "),
  );
  fullTables.set(count, made);
  return made;
}

/** Tables at and just below the most columns that one may have. */
function full(choose: Chooser): Lines {
  const columns = fullTable(choose.pick([1_998, 1_999, 2_000]));
  const line = () => {
    const known = choose.times(choose.int(0, 4), (): [string, string] => [
      `c${choose.int(0, 1_990)}`,
      integer(choose, 9),
    ]);
    const unknown = choose.chance(0.4)
      ? choose.times(choose.int(1, 4), (i): [string, string] => [`new${i}`, '"x"'])
      : [];
    return row(choose, [...known, ...unknown], 0);
  };
  return { columns, lines: bodies(choose, line, 3) };
}

const TIME_TABLES = [
  "at:timestamp, label:string, props:dynamic",
  "at:timestamp, label:string",
  "at:timestamp, timestamp:timestamp, props:dynamic",
  "at:timestamp, timestamp:string, props:dynamic",
  "at:timestamp, _timestamp:timestamp, props:dynamic",
  "S:string, at:timestamp, timestamp:timestamp, _timestamp:long, props:string",
  "AT:timestamp, Timestamp:timestamp, props:dynamic",
  "at:timestamp, props:int",
];

/** The fields that may tell the time, in every combination: there or not, null, unreadable, spelled otherwise. */
function standIns(choose: Chooser): Lines {
  const columns = specs(choose.pick(TIME_TABLES));
  const names = choose.shuffled(["at", "timestamp", "_timestamp"]);
  const presence = choose.pick([0.35, 0.7]);
  const line = () => {
    const fields: [string, string][] = [];
    for (const name of names) {
      if (!choose.chance(presence)) continue;
      const spelled = choose.chance(0.1)
        ? choose.pick([name.toUpperCase(), `${name.charAt(0).toUpperCase()}${name.slice(1)}`])
        : name;
      const kind = choose.int(0, choose.nasty(1) ? 5 : 30);
      fields.push([
        spelled,
        kind === 0 ? "null" : kind === 1 ? choose.pick(['"no time"', "true", "{}", "1e30"]) : time(choose),
      ]);
      if (choose.nasty(0.1)) fields.push([name, time(choose)]);
    }
    if (choose.chance(0.3)) fields.push(["label", string(choose)]);
    return row(choose, fields, 0);
  };
  return { columns, lines: bodies(choose, line), evolve: choose.chance(0.5) };
}

function vectors(choose: Chooser): Lines {
  const columns = specs(
    choose.pick(["at:timestamp, v:vector(3), w:vector(1), props:dynamic", "v:vector(2), at:timestamp, i:int"]),
  );
  const line = () => {
    if (choose.chance(0.03))
      return choose.pick(['{"v":[1,2,3]}', '{"v":null,"w":[1]}', '{"v":[1,2,null],"w":[1]}', '{"v":[],"w":[]}']);
    if (choose.nasty(0.04)) return '{"v":[1,2,3,4],"w":[1]}';
    return typedRow(choose, columns, 1, 0.1);
  };
  return { columns, lines: bodies(choose, line, 4) };
}

/** Fields of the same name but for case, and names that no column can have. */
function spellings(choose: Chooser): Lines {
  const columns = specs(
    choose.pick(["at:timestamp, s:string, Body:string, props:dynamic", "at:timestamp, s:string, Body:string"]),
  );
  const names = choose.pick([
    ["s", "S", "body"],
    ["Body", "body", "BODY"],
    ["x", "X"],
    ["props", "Props"],
    ["", "a\\u0062", "é"],
    ["s", "Body"],
  ]);
  const line = () =>
    row(
      choose,
      choose.times(choose.int(1, 4), () => [choose.pick(names), string(choose)] as const),
    );
  return { columns, lines: bodies(choose, line) };
}

/** Fields that no column takes, without evolution: they are read and dropped. */
function dropping(choose: Chooser): Lines {
  const columns = specs("at:timestamp, s:string, i:int, props:dynamic");
  const line = () => {
    const unknown = choose.times(choose.int(0, 4), (i): [string, string] => [
      `u${choose.chance(0.9) ? i : choose.int(0, 1e6)}`,
      json(choose, 2),
    ]);
    return row(choose, choose.shuffled([["s", string(choose)], ["i", integer(choose, 9)], ...unknown]), 0.02);
  };
  return { columns, lines: bodies(choose, line), evolve: false };
}

const ODD_LINES = ["", " ", "\r", "\t \r", "[1]", "1", "null", "{}", "{ }", "\ufeff{}", '{"a":1', "{}}", "{} {}", "{},", '{"a":1,}', "{,}", '{"a"}', '{"a":}', "{a:1}", '"{}"', "{\"a\":1 \"b\":2}", "\u00a0{}", "\f{}"]; // oxfmt-ignore

function odd(choose: Chooser): Lines {
  const columns = specs(TYPED);
  const line = () => (choose.chance(0.15) ? choose.pick(ODD_LINES) : typedRow(choose, columns, 0.3));
  return { columns, lines: bodies(choose, line) };
}

const GENERATORS = {
  typed, numbers, times, strings, documents, wide, evolving, inferring, full, standIns, vectors, spellings, dropping, odd,
} as const; // oxfmt-ignore

export type CaseKind = keyof typeof GENERATORS;

export const CASE_KINDS = Object.keys(GENERATORS) as CaseKind[];

/** Wide and full tables cost a hundred times what the others do. */
const RARE: Partial<Record<CaseKind, number>> = { wide: 0.2, full: 0.03 };

/** A case of a random kind, or of the given one. */
export function randomCase(random: Random, only?: CaseKind): Case {
  const choose = new Chooser(random);
  const kind = only ?? randomKind(choose);
  const made = GENERATORS[kind](choose);
  const evolve = made.evolve ?? choose.chance(0.8);
  const inferTypes = made.inferTypes ?? choose.chance(0.3);
  const ends = choose.pick(["\n", "\n", "\r\n"]);
  return {
    kind,
    columns: choose.chance(0.3) ? made.columns.map(asInferred) : made.columns,
    bodies: made.lines.map((lines) => {
      const text = lines.join(ends) + (choose.chance(0.8) ? ends : "");
      const body = bodyOf(mutated(choose, Buffer.from(text)), choose.chance(0.9) ? evolve : !evolve);
      return Object.assign(body, { inferTypes: choose.chance(0.9) ? inferTypes : !inferTypes });
    }),
  };
}

/** The column as it would be if data had made it; those that it cannot make stay declared. */
function asInferred(column: ColumnSpec): ColumnSpec {
  const isDeclared = column.name.toLowerCase() === "at" || ["int", "vector"].includes(column.type.kind);
  return isDeclared ? column : { ...column, inferred: true };
}

function randomKind(choose: Chooser): CaseKind {
  for (;;) {
    const kind = choose.pick(CASE_KINDS);
    if (choose.chance(RARE[kind] ?? 1)) return kind;
  }
}

/** Now and then the bytes with something changed, put in, taken out, or moved. */
function mutated(choose: Chooser, bytes: Uint8Array): Uint8Array {
  if (bytes.length === 0 || !choose.nasty(0.16)) return bytes;
  const at = choose.int(0, bytes.length - 1);
  const to = Math.min(bytes.length, at + choose.int(1, 6));
  const before = bytes.subarray(0, at);
  switch (choose.int(0, 4)) {
    case 0:
      return Buffer.concat([before, Uint8Array.of(choose.int(0, 255)), bytes.subarray(at + 1)]);
    case 1:
      return Buffer.concat([before, bytes.subarray(to)]);
    case 2:
      return Buffer.concat([before, bytes.subarray(at, to), bytes.subarray(at)]);
    case 3:
      return Buffer.concat([before, Buffer.from(choose.pick(['"', "{", "}", "[", "]", ",", ":", "\\", "\n", "0", "\u0000", " "])), bytes.subarray(at)]); // oxfmt-ignore
    default:
      return before;
  }
}
