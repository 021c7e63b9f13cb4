import type { Random } from "../../../src/core/random.ts";
import { Chooser } from "../../../src/format/ndjson/generate-values.test-kit.ts";
import { specs } from "../../../src/format/ndjson/generate-cases.test-kit.ts";
import type { ColumnSpec, ExtentFormat } from "../../../src/format/types.ts";
import type { FixtureRow } from "../../../src/io/duckdb/tlm.test-kit.ts";
import type { ExtentFixture } from "../../../src/query/query.test-kit.ts";

/**
 * The tables of the differential test. Rows arrive in three snapshots; those of the first lack the columns that came
 * later. Values are chosen to be awkward and yet never to make a query fail on some of them: whether DuckDB meets an
 * error depends on the order in which it evaluates conditions, which is nobody's promise.
 */
export type DataTable = {
  name: string;
  columns: readonly ColumnSpec[];
  /** What was added at each snapshot, the first one being 1, and the columns that existed then. */
  versions: readonly { columns: readonly ColumnSpec[]; rows: readonly FixtureRow[] }[];
};

const LOGS = specs(
  "n:int, at:timestamp, label:string, body:string, i:int, l:long, r:real, ok:bool, props:dynamic, seen:timestamp, v:vector(3), extra:string",
);
const USERS = specs("at:timestamp, label:string, name:string, score:real, level:int, tags:dynamic");

/** 2024-01-01T00:00:00Z. */
const START_NS = 1_704_067_200_000_000_000n;
const SECOND_NS = 1_000_000_000n;

export const LABELS = ["alpha", "beta", "gamma", "Ärger", "", "日本語", "o'hara", "a label of more than twelve bytes"];
const RARE_LABELS = ["😀 smile", "two\nlines", 'say "hi"', "nul\0byte", "%_\\", "NULL", "nan"];
export const WORDS = ["error", "timeout", "Connection", "reset", "by", "peer", "straße", "id=42", "GET", "/index.html"];

export function makeTables(random: Random): DataTable[] {
  const choose = new Chooser(random);
  const logs = Array.from({ length: 300 }, (_, n) => logRow(choose, n));
  const users = Array.from({ length: 24 }, (_, n) => userRow(choose, n));
  return [
    {
      name: "logs",
      columns: LOGS,
      versions: [
        { columns: LOGS.slice(0, 9), rows: logs.slice(0, 110) },
        { columns: LOGS.slice(0, 11), rows: logs.slice(110, 200) },
        { columns: LOGS, rows: logs.slice(200) },
      ],
    },
    {
      name: "users",
      columns: USERS,
      versions: [
        { columns: USERS, rows: users.slice(0, 10) },
        { columns: USERS, rows: users.slice(10) },
      ],
    },
    { name: "nothing", columns: LOGS.slice(0, 6), versions: [] },
  ];
}

function maybe<T>(choose: Chooser, value: T, missing = 0.12): T | null {
  return choose.chance(missing) ? null : value;
}

function instant(choose: Chooser, n: number): bigint {
  // Some before 1970, where rounding down and rounding towards zero part.
  const base = choose.chance(0.1) ? BigInt(-choose.int(1, 400_000)) : START_NS / SECOND_NS + BigInt(n * 2_220);
  return (
    base * SECOND_NS + BigInt(choose.pick([0, 1, 999_999_999, 500_000_000, 123_456_789, choose.int(0, 999_999_999)]))
  );
}

function logRow(choose: Chooser, n: number): FixtureRow {
  const at = instant(choose, n);
  const label = choose.chance(0.15) ? choose.pick(RARE_LABELS) : choose.pick(LABELS);
  return {
    n,
    at,
    label: maybe(choose, label),
    body: maybe(choose, choose.times(choose.int(0, 6), () => choose.pick(WORDS)).join(" ")),
    i: maybe(choose, choose.chance(0.3) ? choose.int(-3, 3) : choose.int(-1_000, 1_000)),
    l: maybe(choose, longValue(choose)),
    // Eighths add up exactly in any order.
    r: maybe(choose, choose.int(-8_000, 8_000) / 8),
    ok: maybe(choose, choose.chance(0.5)),
    props: maybe(choose, JSON.stringify(props(choose, n))),
    seen: maybe(choose, at + BigInt(choose.int(-90_000, 90_000)) * SECOND_NS + BigInt(choose.int(-999, 999))),
    v: [choose.int(-8, 8) + 0.5, choose.int(-8, 8) / 4, 1],
    extra: maybe(choose, choose.pick(WORDS), 0.4),
  };
}

function longValue(choose: Chooser): bigint {
  const edges = [2n ** 63n - 1n, -(2n ** 63n) + 1n, 2n ** 53n + 1n, 2n ** 53n - 1n, 0n, -1n, 2n ** 31n];
  return choose.chance(0.3) ? choose.pick(edges) : BigInt(choose.int(-1_000_000, 1_000_000)) * 1_000_003n;
}

function props(choose: Chooser, n: number): Record<string, unknown> {
  const all: Record<string, unknown> = {
    a: choose.int(-50, 50),
    b: choose.pick([...LABELS, ...RARE_LABELS]).replaceAll("\0", ""),
    list: choose.times(choose.int(0, 4), () => choose.int(0, 9)),
    deep: { x: choose.int(0, 40) / 8, y: choose.pick([null, true, "t", { z: n }]), items: [{ k: "a" }, { k: "b" }] },
    "odd key": choose.chance(0.5),
    "": "empty",
    at: "not a time",
  };
  return Object.fromEntries(Object.entries(all).filter(() => !choose.chance(0.2)));
}

function userRow(choose: Chooser, n: number): FixtureRow {
  return {
    // One each: the nearest earlier user of an ASOF join is never a matter of chance.
    at: START_NS + BigInt(n) * 30_000n * SECOND_NS + BigInt(n),
    label: maybe(choose, choose.pick(LABELS)),
    name: `user ${n}`,
    score: maybe(choose, choose.int(0, 800) / 8),
    level: maybe(choose, choose.int(0, 4)),
    tags: maybe(choose, JSON.stringify(choose.pick([["x", "y"], [], [1, null, "z"], "text", 7, null, { k: [1] }]))),
  };
}

/** How the extents of a side are cut, and what they are. */
export type Side = { name: string; extentRows: number; format: (index: number) => ExtentFormat };

export const SIDES: readonly Side[] = [
  { name: "fresh", extentRows: 17, format: () => "tlm" },
  { name: "sealed", extentRows: 60, format: () => "parquet" },
  { name: "mixed", extentRows: 33, format: (index) => (index % 2 === 0 ? "tlm" : "parquet") },
];

/** The table's rows as the extents of a side. */
export function extentsOf(table: DataTable, side: Side): ExtentFixture[] {
  const extents: ExtentFixture[] = [];
  for (const [i, { columns, rows }] of table.versions.entries()) {
    for (let start = 0; start < rows.length; start += side.extentRows) {
      const part = rows.slice(start, start + side.extentRows);
      extents.push({ format: side.format(extents.length), columns, rows: part, snapshot: i + 1 });
    }
  }
  return extents;
}
