import type { ColumnSpec, ScalarTypeName } from "../../src/format/types.ts";
import { seededRandom, type Random } from "../../src/core/random.ts";
import { SYNTHETIC, type RowMaker } from "./row-makers.ts";

/**
 * The data of the benchmarks: shapes of rows, each with the columns that a careful user would declare and with what
 * every side must answer about it.
 *
 * Synthetic shapes are seeded, so that every run and every peer has the same bytes; real ones come from this machine
 * (`real-data.ts`). No row holds a null, so that sides that store nulls differently still agree.
 */
export type Dataset = {
  name: string;
  ndjson: Buffer;
  rows: number;
  columns: readonly ColumnSpec[];
  checks: Checks;
};

/** What is compared between the sides: the sum of an integer column, and a hash over a text column. */
export type Checks = { sumColumn: string; hashColumn: string };

export type Shape = { columns: readonly ColumnSpec[]; checks: Checks };

export type ShapeName = keyof typeof SHAPES;

export function columnsOf(types: Readonly<Record<string, ScalarTypeName>>): ColumnSpec[] {
  return Object.entries(types).map(([name, kind]) => ({ name, type: { kind } }));
}

function numbered(count: number, prefix: string, kind: ScalarTypeName): Record<string, ScalarTypeName> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`${prefix}${i}`, kind]));
}

const LOG_COLUMNS = {
  at: "timestamp",
  label: "string",
  body: "string",
  service: "string",
  host: "string",
  path: "string",
  status: "int",
  duration_ms: "real",
  bytes: "long",
  trace_id: "string",
} as const;

export const SHAPES = {
  logs: {
    columns: columnsOf(LOG_COLUMNS),
    checks: { sumColumn: "bytes", hashColumn: "trace_id" },
  },
  wide: {
    columns: columnsOf({
      at: "timestamp",
      id: "string",
      label: "string",
      ...numbered(20, "tag_", "string"),
      ...numbered(20, "count_", "long"),
      ...numbered(12, "ratio_", "real"),
      ...numbered(5, "flag_", "bool"),
    }),
    checks: { sumColumn: "count_0", hashColumn: "id" },
  },
  nested: {
    columns: columnsOf({
      at: "timestamp",
      id: "string",
      label: "string",
      size: "long",
      request: "dynamic",
      user: "dynamic",
      items: "dynamic",
    }),
    checks: { sumColumn: "size", hashColumn: "id" },
  },
  numbers: {
    columns: columnsOf({
      at: "timestamp",
      seq: "string",
      ...numbered(8, "long_", "long"),
      ...numbered(6, "real_", "real"),
      ...numbered(4, "int_", "int"),
    }),
    checks: { sumColumn: "int_0", hashColumn: "seq" },
  },
  text: {
    columns: columnsOf({ at: "timestamp", label: "string", size: "long", body: "string" }),
    checks: { sumColumn: "size", hashColumn: "body" },
  },
} as const satisfies Record<string, Shape>;

/** `rows` rows of a synthetic shape. */
export function synthetic(name: ShapeName, rows: number, seed = 1): Dataset {
  return dataset(name, SHAPES[name], (random, index) => SYNTHETIC[name](random, index), rows, seed);
}

/** Log rows of ten kinds in turn. */
export function tenKindsOfLogs(rows: number): Dataset {
  return logsOfKinds(rows, 10);
}

/**
 * Log rows of several kinds in turn: the fields of kind 3 end in `_3`, so that of ten kinds the table has ten times the
 * columns and a row a tenth of them.
 */
export function logsOfKinds(rows: number, count: number): Dataset {
  const own = SHAPES.logs.columns.filter(({ name }) => !SHARED_FIELDS.has(name));
  const shared = SHAPES.logs.columns.filter(({ name }) => SHARED_FIELDS.has(name));
  const kinds = Array.from({ length: count }, (_, kind) => {
    return own.map(({ name, type }) => ({ name: kindName(name, kind), type }));
  });
  const shape = { columns: [...shared, ...kinds.flat()], checks: SHAPES.logs.checks };
  const rowOf = (random: Random, index: number) => {
    const row = Object.entries(SYNTHETIC.logs(random, index));
    return Object.fromEntries(
      row.map(([name, value]) => [SHARED_FIELDS.has(name) ? name : kindName(name, index % count), value]),
    );
  };
  return dataset(`logs of ${count} kinds`, shape, rowOf, rows, 1);
}

/** Every table has `at`; the other two are what the sides are compared by. */
const SHARED_FIELDS = new Set(["at", SHAPES.logs.checks.sumColumn, SHAPES.logs.checks.hashColumn]);

function kindName(name: string, kind: number): string {
  return `${name}_${kind}`;
}

function dataset(name: string, shape: Shape, make: RowMaker, rows: number, seed: number): Dataset {
  const random = seededRandom(seed);
  const parts: Buffer[] = [];
  let text = "";
  for (let i = 0; i < rows; i++) {
    text += `${JSON.stringify(make(random, i))}\n`;
    // One string of everything would pass the longest that V8 makes.
    if (text.length > MAX_TEXT || i === rows - 1) {
      parts.push(Buffer.from(text));
      text = "";
    }
  }
  return { name, ndjson: Buffer.concat(parts), rows, ...shape };
}

const MAX_TEXT = 16 * 1024 * 1024;
