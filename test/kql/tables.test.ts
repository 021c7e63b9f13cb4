import { expect, test } from "vitest";
import type { ColumnType } from "../../src/format/types.ts";
import type { KqlTable } from "../../src/query/kql/contract.ts";
import { Translated } from "./translated.test-kit.ts";

/** Operators that name stored tables by patterns, or look into several. */
const column = (name: string, kind: ColumnType["kind"]): KqlTable["columns"][number] => ({
  name,
  type: { kind } as ColumnType,
});

const TABLES: KqlTable[] = [
  { name: "TA", columns: [column("at", "timestamp"), column("s", "string"), column("n", "long")] },
  { name: "TB", columns: [column("s", "string"), column("n", "int"), column("p", "dynamic")] },
];

const SET_UP = [
  'CREATE TABLE TA ("at" TIMESTAMP_NS, s VARCHAR, n BIGINT)',
  "INSERT INTO TA VALUES ('2024-01-01', 'one two', 1), (NULL, NULL, NULL)",
  "CREATE TABLE TB (s VARCHAR, n INTEGER, p JSON)",
  `INSERT INTO TB VALUES ('two', 2, '{"a":[1,2]}')`,
];

const translated = await Translated.open(TABLES);

test.for<[query: string, rows: Record<string, unknown>[]]>([
  ["union T* | count", [{ Count: 3 }]],
  ["union * | count", [{ Count: 3 }]],
  [
    "union withsource=src T* | project src, s, n_long, n_int | sort by src asc, s asc",
    [
      { src: "TA", s: "", n_long: null, n_int: null },
      { src: "TA", s: "one two", n_long: 1, n_int: null },
      { src: "TB", s: "two", n_long: null, n_int: 2 },
    ],
  ],
  [
    "search in (T*) 'two' | project ['$table'], s | sort by s asc",
    [
      { $table: "TA", s: "one two" },
      { $table: "TB", s: "two" },
    ],
  ],
  ["find in (T*) where s == 'two' project s, n: long", [{ source_: "TB", s: "two", n: 2 }]],
  ["TB | evaluate bag_unpack(p)", [{ s: "two", n: 2, a: [1, 2] }]],
  // A NULL that is stored in a string is the empty string, also as a key.
  ["TA | join kind=inner (TA) on s | count", [{ Count: 2 }]],
  ["TA | union TB | where s == '' | project at, n_int", [{ at: null, n_int: null }]],
])("%s", async ([query, rows]) => {
  const outcome = await translated.run(query, SET_UP);
  expect(outcome).toMatchObject({ rows });
});

test.for([
  ["union X*", "'X*'"],
  ["let v = view () { TA }; union v*", "a wildcard does not reach views"],
  ["search 'two'", "search in (…)"],
  ["find 'two'", "find in (…)"],
  ["find in (TA, TB) where n == 1", "n has several types"],
] as const)("%s is refused", async ([query, message]) => {
  const outcome = await translated.run(query, SET_UP);
  expect(outcome).toMatchObject({ refused: { code: "invalid_query", message: expect.stringContaining(message) } });
});
