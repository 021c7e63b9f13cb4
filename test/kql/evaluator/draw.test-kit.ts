import type { Random } from "../../../src/core/random.ts";
import { below, pick } from "../fuzz/mutate.test-kit.ts";
import { OPERATIONS } from "./operations.test-kit.ts";
import { literalOf, written, type Row, type Rows, type Type, type Value } from "./values.test-kit.ts";

/** A scalar expression: its text, and what it gives in a row. */
export type Expression = { type: Type; text: string; valueIn: (row: Row) => Value };

const POOLS: Readonly<Record<Type, readonly Value[]>> = {
  bool: [true, false, null],
  long: [
    0n,
    1n,
    -1n,
    2n,
    5n,
    -7n,
    10n,
    100n,
    null,
    null,
    9223372036854775807n,
    -9223372036854775808n,
    4611686018427387904n,
  ],
  real: [0, 1.5, -2.25, 3, 100, -0.5, 1e10, 1e-5, null, null, Infinity, -Infinity],
  string: [
    "",
    "a",
    "b",
    "ab",
    "A",
    "aB c",
    "b_c-d",
    "foo bar",
    "Foo",
    "x,y",
    "12",
    "-5",
    "ü é",
    "it's",
    'q"q',
    "a%b",
    "\u{1f600}b",
  ],
  datetime: [
    0n,
    -1n,
    17_145_216_000_000_000n,
    17_145_216_123_456_789n,
    16_725_311_999_999_999n,
    -3_155_673_600_000_000n,
    -36_000_000_001n,
    null,
    null,
  ],
  timespan: [
    0n,
    1n,
    -1n,
    36_000_000_000n,
    864_000_000_000n,
    -864_000_000_001n,
    12_345_678_901n,
    315_360_000_000_000n,
    null,
  ],
  dynamic: [
    null,
    { json: { a: 1, "b c": "x" } },
    { json: { a: [1, 2, "z"], "b c": { a: null } } },
    { json: [10, "20", null] },
    { json: [] },
    { json: {} },
    { json: "text" },
    { json: 7 },
    { json: { a: "5" } },
    { json: [{ a: -3 }, [1]] },
  ],
};

export function drawValue(type: Type, random: Random): Value {
  return pick(POOLS[type], random);
}

export const COLUMNS: Readonly<Record<string, Type>> = {
  id: "long",
  b: "bool",
  n: "long",
  m: "long",
  r: "real",
  s: "string",
  t: "string",
  at: "datetime",
  d: "timespan",
  p: "dynamic",
};

/** A table of drawn values; `id` counts from one. */
export function drawTable(columns: Readonly<Record<string, Type>>, most: number, random: Random): Rows {
  const rows = Array.from({ length: below(most + 1, random) }, (_, i) =>
    Object.fromEntries(
      Object.entries(columns).map(([name, type]): [string, Value] => [
        name,
        name === "id" ? BigInt(i + 1) : drawValue(type, random),
      ]),
    ),
  );
  return { columns, rows };
}

/** The table as it is written in a query. */
export function datatable({ columns, rows }: Rows): string {
  const head = Object.entries(columns).map(([name, type]) => `${name}: ${type}`);
  const values = rows.flatMap((row) =>
    Object.entries(columns).map(([name, type]) => literalOf(type, row[name] ?? null)),
  );
  return `datatable(${head.join(", ")})[${values.join(", ")}]`;
}

/** An expression of the type over the columns. */
export function drawExpression(
  type: Type,
  columns: Readonly<Record<string, Type>>,
  depth: number,
  random: Random,
): Expression {
  // Of arrays that a query makes the binder knows the members, and refuses to look for others.
  const named = Object.entries(columns).flatMap(([name, own]) =>
    own === type && (own !== "dynamic" || name === "p") ? [name] : [],
  );
  const operations = OPERATIONS.filter(({ result }) => result === type);
  const choice = random.next();
  if (depth > 0 && operations.length > 0 && choice < 0.75) {
    const { args, text, value } = pick(operations, random);
    const own = args.map((arg) => drawExpression(arg, columns, depth - 1, random));
    return {
      type,
      text: text(...own.map((one) => one.text)),
      valueIn: (row) => value(...own.map((one) => one.valueIn(row))),
    };
  }
  if (named.length > 0 && choice < 0.95) {
    const name = pick(named, random);
    return { type, text: name, valueIn: (row) => row[name] ?? null };
  }
  const value = drawValue(type, random);
  // The binder knows what a literal bag has in it, and refuses to look for more.
  const isBag = type === "dynamic" && value !== null;
  const text = isBag ? `parse_json(${JSON.stringify(written(type, value))})` : literalOf(type, value);
  return { type, text, valueIn: () => value };
}
