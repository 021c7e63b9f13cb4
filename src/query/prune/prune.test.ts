import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EngineError } from "../../core/errors.ts";
import type { ColumnSpec } from "../../format/types.ts";
import type { FixtureRow, FixtureValue } from "../../io/duckdb/tlm.test-kit.ts";
import { createQueryHarness, type ExtentFixture, type QueryHarness } from "../query.test-kit.ts";

const COLUMNS = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "id", type: { kind: "int" } },
  { name: "i", type: { kind: "int" } },
  { name: "l", type: { kind: "long" } },
  { name: "r", type: { kind: "real" } },
  { name: "s", type: { kind: "string" } },
  { name: "b", type: { kind: "bool" } },
  { name: "ts", type: { kind: "timestamp" } },
  { name: "d", type: { kind: "dynamic" } },
] as const satisfies ColumnSpec[];

const LONG = "common-prefix-of-more-than-sixty-four-bytes-in-every-single-one-of-these-";
const TEXTS = [
  "",
  "a",
  "ab",
  "b",
  "é",
  "Z",
  `${LONG}a`,
  `${LONG}b`,
  `${LONG}ab`,
  LONG,
  "\u{10ffff}".repeat(17),
  "\u{10ffff}",
];
const MORE_TEXTS = ["\ue000x", "\u{1f600}", "\ud7ff", "z%_", "1", "true", "2024-01-01", "a\0b", "needle in hay"];
const LONGS = [
  0n,
  1n,
  -1n,
  2n ** 53n,
  2n ** 53n + 1n,
  2n ** 53n + 2n,
  2n ** 63n - 1n,
  -(2n ** 63n),
  -(2n ** 53n) - 1n,
  7n,
];
const REALS = [0, -0, 0.1, 1.5, -1.5, 1e300, -1e300, 5e-324, Infinity, -Infinity, NaN, 2 ** 53, 9007199254740994, 7];
const INTS = [0, 1, -1, 2, 7, 2_147_483_647, -2_147_483_648, 100];
const DAY = 86_400_000_000_000n;
const TIMES = [0n, 1n, -1n, DAY, 19_723n * DAY, 19_723n * DAY + 1n, 19_723n * DAY - 1n, 20_000n * DAY];

/** A small generator of its own, so that the tables are the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Extents whose values come from a few of all values each, so that there is something to leave out. */
function extentsOf(seed: number, count: number): ExtentFixture[] {
  const next = numbers(seed);
  const few = <T>(all: readonly T[]): T[] => Array.from({ length: 1 + next(3) }, () => all[next(all.length)] as T);
  return Array.from({ length: count }, (_, e) => {
    const values: Record<string, FixtureValue[]> = {
      i: few(INTS),
      l: few(LONGS),
      r: few(REALS),
      s: few([...TEXTS, ...MORE_TEXTS]),
      b: few([true, false]),
      ts: few(TIMES),
      d: few(['{"a":1}', '"needle"', "null"]),
    };
    const columns = COLUMNS.filter(({ name }) => name === "at" || name === "id" || next(5) > 0);
    const nulls = next(3);
    const rows = Array.from({ length: 1 + next(5) }, (_row, n): FixtureRow => {
      const row: Record<string, FixtureValue> = { at: BigInt(e) * DAY + BigInt(n), id: e * 100 + n };
      for (const { name } of columns) {
        const own = values[name];
        if (own !== undefined)
          row[name] = nulls === 2 || (nulls === 1 && next(2) === 0) ? null : (own[next(own.length)] ?? null);
      }
      return row;
    });
    return { format: e % 2 === 0 ? "tlm" : "parquet", columns, rows };
  });
}

const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`;
const texts = [...TEXTS, ...MORE_TEXTS].filter((text) => !text.includes("\0")).map(quote);
const integers = [
  ...LONGS.map(String),
  ...INTS.map(String),
  "9223372036854775808",
  "-170141183460469231731687303715884105728",
];
const decimals = ["0.1", "1.5", "-1.5", "6.999", "9007199254740992.5", "123456789012345678901234567890.5", "7.0"];
const doubles = [
  "1e0",
  "9007199254740992e0",
  "9007199254740994e0",
  "9223372036854775807e0",
  "-1e30",
  "0.1e0",
  "'nan'::DOUBLE",
  "'inf'::DOUBLE",
  "'-inf'::DOUBLE",
];
const others = ["5::TINYINT", "0.1::FLOAT", "7::FLOAT", "1 + 6", "'7'", "NULL"];
const moments = [
  "'2024-01-01'",
  "TIMESTAMP '2024-01-01'",
  "DATE '1970-01-02'",
  "TIMESTAMPTZ '2024-01-01 00:00:00.000001+00'",
  "'1969-12-31 23:59:59.999999999'",
  "make_timestamp_ns(1)",
];

const constantsOf: Readonly<Record<string, readonly string[]>> = {
  i: [...integers, ...decimals, ...doubles, ...others],
  l: [...integers, ...decimals, ...doubles, ...others],
  r: [...integers, ...decimals, ...doubles, "0.1::FLOAT", "'1.5'"],
  s: [...texts, "'a' || 'b'", "NULL"],
  b: ["true", "false", "'true'", "1 = 1"],
  ts: [...moments, "NULL"],
  at: moments,
};

const column = fc.constantFrom(...Object.keys(constantsOf));
const comparison = fc.constantFrom("=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM", "IS DISTINCT FROM");
const constantFor = (name: string) => fc.constantFrom(...(constantsOf[name] ?? []));
const pattern = fc
  .array(fc.constantFrom("%", "_", "a", "b", "needle", LONG, "é", "\u{10ffff}", "\ud7ff", "z%"), { maxLength: 4 })
  .map((parts) => quote(parts.join("")));

const leaf = fc.oneof(
  column.chain((name) =>
    fc
      .tuple(comparison, constantFor(name), fc.boolean())
      .map(([operator, constant, flip]) =>
        flip ? `${constant} ${operator} "${name}"` : `"${name}" ${operator} ${constant}`,
      ),
  ),
  column.chain((name) =>
    fc.array(constantFor(name), { minLength: 1, maxLength: 4 }).map((list) => `"${name}" IN (${list.join(", ")})`),
  ),
  column.chain((name) =>
    fc.tuple(constantFor(name), constantFor(name)).map(([a, b]) => `"${name}" BETWEEN ${a} AND ${b}`),
  ),
  fc
    .tuple(fc.constantFrom("i", "s", "d", "b", "r"), fc.constantFrom("IS NULL", "IS NOT NULL"))
    .map((parts) => parts.join(" ")),
  fc.tuple(fc.constantFrom("s LIKE", "s NOT LIKE", "s ILIKE", "d LIKE"), pattern).map((parts) => parts.join(" ")),
  fc
    .tuple(fc.constantFrom("starts_with", "contains", "ends_with"), fc.constantFrom(...texts))
    .map(([name, text]) => `${name}(s, ${text})`),
  fc.constantFrom("b", "NOT b", "contains(d, 'needle')", "id < 1000"),
);
const predicate = fc.oneof(
  { weight: 3, arbitrary: leaf },
  { weight: 1, arbitrary: fc.tuple(leaf, fc.constantFrom("AND", "OR"), leaf).map((parts) => parts.join(" ")) },
  { weight: 1, arbitrary: fc.tuple(leaf, leaf, leaf).map(([a, b, c]) => `${a} OR (${b} AND ${c})`) },
  { weight: 1, arbitrary: leaf.map((part) => `NOT (${part})`) },
);
const queries = fc.oneof(
  { weight: 6, arbitrary: predicate.map((where) => `SELECT id FROM t WHERE ${where}`) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"), fc.constantFrom("u", "t"), leaf)
      .map(([join, owner, where]) => {
        const own = where.replace(/"(\w+)"|\b([isdb])\b(?= |,|$)/g, (name) => `${owner}.${name}`);
        return `SELECT t.id, u.id AS other FROM t ${join} u ON t.id = u.id WHERE ${own}`;
      }),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(leaf, leaf)
      .map(([a, b]) => `SELECT id FROM t WHERE ${a} UNION ALL SELECT id FROM t WHERE ${b}`),
  },
);

let pruned: QueryHarness;
let whole: QueryHarness;
const T = extentsOf(7, 30);
const U = extentsOf(99, 10);

beforeAll(async () => {
  pruned = createQueryHarness();
  whole = createQueryHarness({ service: { prune: false } });
  for (const harness of [pruned, whole]) {
    await harness.addTable("default", "t", COLUMNS, T);
    await harness.addTable("default", "u", COLUMNS, U);
  }
});

afterAll(async () => {
  await pruned.close();
  await whole.close();
});

/** What a query answers, in an order of its own; its error where it has one. */
async function answerOf(harness: QueryHarness, sql: string): Promise<string> {
  try {
    return (await harness.text(`SELECT * FROM (${sql}) ORDER BY ALL`)).trimEnd();
  } catch (error) {
    return `error ${(error as EngineError).code}`;
  }
}

test("a random predicate with pruning answers as without", async () => {
  let kept = 0;
  let all = 0;
  let answered = 0;
  const property = fc.asyncProperty(queries, async (sql) => {
    pruned.opened.length = 0;
    whole.opened.length = 0;
    const expected = await answerOf(whole, sql);
    const answer = await answerOf(pruned, sql);
    kept += pruned.opened.length;
    all += whole.opened.length;
    // Rows that are never read cannot fail to be cast.
    if (expected.startsWith("error")) return;
    expect(answer).toBe(expected);
    answered++;
  });
  const numRuns = Number(process.env["ENGINE_TEST_RUNS"] ?? 100);
  await fc.assert(property, { numRuns });
  expect(answered).toBeGreaterThan(numRuns / 2);
  expect(kept).toBeLessThan(all * 0.8);
}, 600_000);

// What would be answered wrong if it were taken for something else.
test.each([
  "SELECT t.id, u.id AS other FROM t RIGHT JOIN u ON t.id = u.id WHERE t.i IS NULL",
  "SELECT t.id, u.id AS other FROM t FULL JOIN u ON t.id = u.id WHERE u.b IS NULL OR u.b",
  "SELECT t.id FROM t ANTI JOIN u ON t.id = u.id WHERE t.i = 7",
  "SELECT id FROM t WHERE l IN (9223372036854775807e0)",
  "SELECT id FROM t WHERE l = 9007199254740992e0",
  "SELECT id FROM t WHERE l > 9007199254740992e0 OR l <= -9223372036854775808e0",
  "SELECT id FROM t WHERE l BETWEEN 9007199254740993 AND 9007199254740993e0",
  "SELECT id FROM t WHERE r > 1e308",
  "SELECT id FROM t WHERE r >= 'nan'::DOUBLE OR r < '-1e299'::DOUBLE",
  "SELECT id FROM t WHERE r = 0.1 OR r = -0.0 OR r = 9007199254740994",
  "SELECT id FROM t WHERE i = 7::FLOAT OR i = '7'",
  `SELECT id FROM t WHERE s > '${LONG}aa'`,
  `SELECT id FROM t WHERE s LIKE '${LONG}%b'`,
  "SELECT id FROM t WHERE s > '\u{10ffff}'",
  "SELECT id FROM t WHERE s BETWEEN '\ue000' AND '\u{1f600}'",
  "SELECT id FROM t WHERE s IN ('1', 'true') OR s COLLATE NOCASE = 'z'",
  "SELECT id FROM t WHERE s = 'Z' COLLATE NOCASE",
  "SELECT id FROM t WHERE ts >= TIMESTAMP '2024-01-01' AND ts <= '2024-01-01 00:00:00.000000001'",
  "SELECT id FROM t WHERE i IS DISTINCT FROM 7",
  "SELECT count(*) AS n FROM (SELECT id FROM t WHERE i = 7 USING SAMPLE 100%)",
])("with pruning as without: %s", async (sql) => {
  const expected = await answerOf(whole, sql);
  expect(expected).not.toContain("error");
  expect(await answerOf(pruned, sql)).toBe(expected);
});

/** Ids of the extents of `t` that a WHERE clause leaves over. */
async function leftBy(where: string): Promise<string[]> {
  pruned.opened.length = 0;
  await pruned.text(`SELECT id FROM t WHERE ${where}`);
  return pruned.opened;
}

const extentsWith = (test: (row: FixtureRow, columns: readonly string[]) => boolean): number =>
  T.filter(({ rows, columns }) =>
    rows.some((row) =>
      test(
        row,
        columns.map(({ name }) => name),
      ),
    ),
  ).length;

describe("extents that cannot matter are left out", () => {
  test.each([
    ["i > 2147483647", 0],
    ["l > 9223372036854775807", 0],
    ["l < -9223372036854775808", 0],
    ["l = 9223372036854775807", extentsWith((row) => row["l"] === 2n ** 63n - 1n)],
    ["i IS NOT NULL", extentsWith((row) => (row["i"] ?? null) !== null)],
    ["d IS NULL", extentsWith((row) => (row["d"] ?? null) === null)],
    ["d LIKE '%'", extentsWith((row) => (row["d"] ?? null) !== null)],
    ["b AND NOT b", extentsWith((row) => (row["b"] ?? null) !== null)],
    ["i = 0.5", 0],
    ["i IN (-2147483649, 2147483648, NULL)", 0],
    ["i BETWEEN 2 AND 1 AND i = 0.25", 0],
  ])("%s", async (where, most) => {
    expect((await leftBy(where)).length).toBeLessThanOrEqual(most);
  });

  test("a name that is no column says nothing", async () => {
    pruned.opened.length = 0;
    await pruned.text("SELECT i AS alias, id FROM t WHERE alias > 2147483647");
    expect(pruned.opened).toHaveLength(T.length);
  });

  test("by each rule on its own, and shown by EXPLAIN", async () => {
    const day = "TIMESTAMP '1970-01-11'";
    expect(await leftBy(`at < ${day}`)).toHaveLength(10);
    for (const explain of ["EXPLAIN", "EXPLAIN ANALYZE"]) {
      const rows = await pruned.rows(
        `${explain} SELECT id FROM t WHERE at < ${day} AND i IS NOT NULL AND d IS NOT NULL`,
      );
      const text = String(rows.find((row) => row["explain_key"] === "extents")?.["explain_value"]);
      const number = (name: string): number => Number(new RegExp(`${name} +(\\d+) extents`).exec(text)?.[1]);
      expect(text).toMatch(/^table t at snapshot 1\n/);
      expect([number("total"), number("pruned by time"), number("pruned by filter")]).toEqual([30, 20, 0]);
      expect(number("pruned by min/max")).toBeGreaterThan(0);
      expect(number("read")).toBe(10 - number("pruned by min/max"));
    }
    const rows = await pruned.rows("EXPLAIN SELECT 1 FROM t, u");
    expect(rows.filter((row) => row["explain_key"] === "extents")).toHaveLength(2);
  });
});

describe("time travel", () => {
  let harness: QueryHarness;
  const AT: ColumnSpec[] = [{ name: "at", type: { kind: "timestamp" } }];
  const failure = (sql: string) => harness.failure(sql);
  const countAt = async (travel: string): Promise<unknown> =>
    (await harness.rows(`SELECT count(*) AS n FROM t AT (${travel})`))[0]?.["n"];

  beforeAll(async () => {
    harness = createQueryHarness();
    const extents = Array.from({ length: 5 }, (_, i): ExtentFixture => ({
      format: "tlm",
      columns: AT,
      rows: [{ at: 0n }],
      snapshot: i + 1,
    }));
    await harness.addTable("default", "t", AT, extents);
  });
  afterAll(() => harness.close());

  // Snapshot n is of n seconds after the epoch.
  test.each([
    ["TIMESTAMP => '1970-01-01 00:00:02'", 2],
    ["TIMESTAMP => TIMESTAMP '1970-01-01 00:00:02.999999'", 2],
    ["TIMESTAMP => '1970-01-01T00:00:03Z'", 3],
    ["TIMESTAMP => TIMESTAMPTZ '1970-01-01 01:00:04+01'", 4],
    ["TIMESTAMP => to_timestamp(1)", 1],
    ["TIMESTAMP => make_timestamp_ns(4999999999)", 4],
    ["TIMESTAMP => now() - INTERVAL 1 SECOND", 5],
    ["TIMESTAMP => DATE '1970-01-01' + INTERVAL 3 SECOND", 3],
    ["VERSION => 2", 2],
  ])("%s", async (travel, rows) => {
    expect(await countAt(travel)).toBe(rows);
  });

  test("several moments in one query, and the present", async () => {
    const sql = `SELECT (SELECT count(*) FROM t AT (TIMESTAMP => '1970-01-01 00:00:01')) AS a,
      (SELECT count(*) FROM t AT (TIMESTAMP => '1970-01-01 00:00:03')) AS b, (SELECT count(*) FROM t) AS c,
      (SELECT count(*) FROM "default".t AT (VERSION => 4)) AS d`;
    expect(await harness.rows(sql)).toEqual([{ a: 1, b: 3, c: 5, d: 4 }]);
  });

  test.each([
    ["TIMESTAMP => 5", "takes a moment"],
    ["TIMESTAMP => 'yesterday'", "takes a moment"],
    ["TIMESTAMP => NULL", "takes a moment"],
    ["TIMESTAMP => '1970-01-01 00:00:00.5'", "no snapshot yet"],
    ["TIMESTAMP => '1900-01-01'", "no snapshot yet"],
    ["VERSION => -1", "no snapshot -1"],
    ["VERSION => 6", "the newest is 5"],
    ["VERSION => NULL", "takes the number"],
  ])("refused: %s", async (travel, message) => {
    const error = await failure(`SELECT * FROM t AT (${travel})`);
    expect(error).toMatchObject({ code: "invalid_query", message: expect.stringContaining(message) as string });
    expect(error.details).toMatchObject({ line: 1, column: expect.any(Number) as number });
  });

  test("a snapshot that has expired", async () => {
    harness.expireSnapshots(3);
    for (const travel of ["VERSION => 2", "VERSION => 0", "TIMESTAMP => '1970-01-01 00:00:02.9'"]) {
      const error = await failure(`SELECT * FROM t AT (${travel})`);
      expect(error).toMatchObject({ code: "snapshot_expired", status: 410, details: { line: 1, column: 15 } });
      expect(error.message).toContain("the oldest that can is 3");
    }
    expect(await countAt("VERSION => 3")).toBe(3);
    expect(await countAt("TIMESTAMP => '1970-01-01 00:00:03'")).toBe(3);
    expect(await harness.rows("SELECT count(*) AS n FROM t")).toEqual([{ n: 5 }]);
  });
});
